"""What toolmem can be asked to do, each thing described once.

`operation` says what an operation is, one file per subject holds the operations themselves, `table` lists them. The
HTTP service and its document, JSON-RPC, the MCP tools, `ToolMem`, `Client`, `toolmem run` and the reference pages are
made from that table.
"""
