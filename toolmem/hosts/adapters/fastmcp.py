"""FastMCP: a middleware of a server.

    server.add_middleware(ToolMemServerMiddleware(mem))

Without `conversation` it is the client's session. A server sees neither the prompt nor what the user says.
"""

from __future__ import annotations

from typing import Any

from toolmem.app import AsyncToolMem, ToolMem
from toolmem.config.extras import need
from toolmem.hosts.adapters.common import AgentMemory

need("toolmem.hosts.adapters.fastmcp", "fastmcp")

from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import Middleware
from mcp_types import TextContent

_CALL_ID = "claudecode/toolUseId"  # in `_meta`: the id under which a hook of the client tells the same call


class ToolMemServerMiddleware(Middleware):
    """Holds and keeps the calls of a server's tools.

    Arguments as of `AgentMemory`.
    """

    def __init__(self, memory: ToolMem | AsyncToolMem, conversation: str | None = None, **options: Any) -> None:
        self._agent = AgentMemory(memory, conversation, **options)

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        """Around a call."""
        talk = self._agent.of(_session(context))
        call = await talk.begin(context.message.name, context.message.arguments, _call_id(context))
        if call.stops:
            raise ToolError(call.reason)
        try:
            result = await call_next(context)
        except BaseException as error:
            await talk.end(call, error=error)
            raise
        text = "\n".join(part.text for part in result.content if isinstance(part, TextContent))
        output = text or result.structured_content
        await talk.end(call, output, error=(text or "the tool failed") if result.is_error else None)
        if call.advice:
            result.content = [*result.content, TextContent(type="text", text=call.advice)]
        return result


def _session(context: Any) -> str:
    try:
        return str(context.fastmcp_context.session_id)
    except Exception:  # a request without a session
        return ""


def _call_id(context: Any) -> str:
    try:
        return str((context.fastmcp_context.request_context.meta or {}).get(_CALL_ID, ""))
    except Exception:  # no request, or one that says nothing
        return ""
