"""The memory as an MCP server, for hosts that speak the protocol with or without sessions.

`tools` has the tools that an agent calls, `reading` the resources and the prompt that a host gives
to its model. `server` serves them over stdin or streamable HTTP. Needs `toolmem[mcp]`.
"""
