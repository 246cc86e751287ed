"""Services: toolmem for programs that are not Python, or not in this process.

`http` serves every flow as `POST /<flow>`, and JSON-RPC as `POST /rpc`; `preparing` checks a configuration before it is
served, `running` runs one process, `workers` several of them on one store. `access` decides who may come in.

`rpc` takes JSON-RPC 2.0 as text and answers text; carrying it (HTTP, a pipe, a socket) is the host's affair.

`mcp` serves flows, memory tools, rules and guidance to any host that speaks MCP, over stdio or streamable HTTP.
"""
