"""The memory as a service for other programs: HTTP, JSON-RPC, MCP, and a proxy before MCP servers.

`http` is the application: flows and operations by name, JSON-RPC, health, and a description of all.
`access` decides from the headers of a request whether it is let in; `rpc` answers JSON-RPC 2.0;
`openapi` describes everything. `mcp/` serves agents that speak MCP, `proxy/` stands before an MCP
server of somebody else. `toolmem.cli.serve` and `toolmem.cli.mcp` start them.
"""
