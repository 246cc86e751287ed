"""The proxy between an MCP host and one of its servers.

`relay` decides on each message of a connection: calls of tools are held against the memory before
they run and kept when they ended, descriptions of tools gain what is known of them, and everything
else passes as the bytes that came. `call` reads calls and how they ended, and asks the user through
the client; `memory` is the memory behind it. `child` carries messages between this
process's pipes and a command, `remote` to an address (needs `toolmem[mcp]`).
"""
