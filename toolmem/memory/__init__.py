"""`ToolMem`: a configuration turned into stores, judges and models.

`toolmem` has `ToolMem`, `Workspace` and `AsyncToolMem`, whose methods are coroutines. `services`
opens the stores, judges and models that they need.
"""
