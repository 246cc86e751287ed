"""The memory as an MCP server, for any host that speaks the protocol, in both of its eras.

`tools` is what an agent may call, `reading` what a host puts before its model (resources and a
prompt), `server` joins them to the SDK and serves stdin or streamable HTTP. Needs `toolmem[mcp]`.
"""
