"""The memory as a service for other programs: HTTP, JSON-RPC, MCP, and a proxy before MCP servers.

`http` is the application: flows and operations by name, JSON-RPC, health and an OpenAPI document.
`access` checks the headers of a request, `rpc` answers JSON-RPC 2.0, `openapi` writes the document.
`mcp/` is an MCP server over the memory, `proxy/` relays between an MCP host and another server.
`console/` has the pages for a person. `toolmem.cli.serve` and `toolmem.cli.mcp` start them.
"""
