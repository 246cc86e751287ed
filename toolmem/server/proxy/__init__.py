"""The proxy between an MCP host and one of its servers.

`relay` handles each message of a connection: it checks tool calls before they run, stores how they
ended, adds rules and guidance to the descriptions of tools, and passes all other bytes unchanged.
`call` reads calls and their outcomes, and asks the user through the client; `memory` decides on
calls and stores them. `child` connects this process's pipes to a command, `remote` to a URL (needs
`toolmem[mcp]`).
"""
