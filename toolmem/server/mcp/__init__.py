"""The flows and the memory for hosts that speak MCP.

    server                          the service: what it offers, and how a call is answered
    stdio, http                     its transports; `http` stands behind the door of `toolmem.server.http`
    declarations, tools, progress   its tools: as they are declared, as they are run, and how far a run has come
    resources, prompts              what a host puts before its model
    under_way                       work that is seen to its end though the client leaves

The SDK's package is called `mcp` as well; imports here are absolute, so `mcp` is always the SDK.
"""

from toolmem.server.mcp.server import McpService

__all__ = ["McpService"]
