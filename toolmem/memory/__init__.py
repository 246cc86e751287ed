"""`ToolMem`, and the stores, judges and models that its configuration describes.

`toolmem` has `ToolMem`, `Workspace` and `AsyncToolMem`, whose methods are coroutines. `services`
opens the stores, judges and models that they need.
"""
