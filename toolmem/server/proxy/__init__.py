"""The MCP proxy: between a host and one of its servers, everything passes as it came but tools/call and tools/list.

`interception` decides what becomes of a message, whatever carries it; `child_server` carries the lines of a process.
"""
