"""`ToolMem`: a configuration turned into stores, judges and models.

`toolmem` holds `ToolMem`, its workspaces, and the same methods as coroutines; `services` opens what
they need.
"""
