"""Services: toolmem for programs that are not Python, or not in this process.

`rpc` takes JSON-RPC 2.0 as text and answers text; carrying it (HTTP, a pipe, a socket) is the host's affair.
"""
