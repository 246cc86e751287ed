"""The flows and the memory for hosts that speak MCP.

    server                          the service: what it offers, and how a call is answered
    stdio, http                     its transports; `http` stands behind the access control of `toolmem.server.http`
    declarations, tool_calls        its tools, as they are declared and as they are run
    progress_notifications          how far a call has come
    resources, offered_prompts      what a host puts before its model

The SDK's package is called `mcp` as well; imports here are absolute, so `mcp` is always the SDK.
"""

from toolmem.server.mcp.server import McpService

__all__ = ["McpService"]
