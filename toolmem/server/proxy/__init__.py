"""The proxy between an MCP host and one of its servers.

`relay` handles each message of a connection: it checks tool calls before they run and stores how
they ended, adds rules and guidance to the descriptions of tools, and passes everything else as the
bytes that came. `call` reads calls and their outcomes, and asks the user through the client;
`memory` is the memory behind it. `child` connects this process's pipes to a command, `remote` to a
URL (needs `toolmem[mcp]`).
"""
