"""`ToolMem`: a configuration turned into stores, judges and models.

`toolmem` holds `ToolMem` and its workspaces, `async_toolmem` the same methods as coroutines (apart,
because asyncio takes 50 ms to import), `services` opens what they need.
"""
