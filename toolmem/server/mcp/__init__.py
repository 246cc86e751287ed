"""The memory as an MCP server, for hosts of the protocol with sessions and of the stateless one.

`tools` has the tools that an agent calls, `reading` the resources and the prompt that a host puts
before its model; `server` serves them over stdin or streamable HTTP. Needs `toolmem[mcp]`.
"""
