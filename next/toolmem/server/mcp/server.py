"""The MCP server over stdin and stdout, or over streamable HTTP.

Work runs in threads: what may ask a model under one limit, all else under another, so that a check
never waits behind an `add`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    ListPromptsResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    ReadResourceRequestParams,
)
from starlette.applications import Starlette

from toolmem import __version__
from toolmem.errors import RequestError, ToolMemError
from toolmem.memory.toolmem import ToolMem
from toolmem.server.access import Access
from toolmem.server.http import MAX_BODY, MAX_SHORT, MAX_WAITING, Gate
from toolmem.server.mcp.reading import PROMPT, PROMPTS, TEMPLATES, McpReading
from toolmem.server.mcp.tools import McpTools

Answer = TypeVar("Answer")
# Tools that ask no model.
_SHORT = ("check_tool_call", "advise_tool_call", "memory_tools_put", "memory_tools_list")
_INSTRUCTIONS = """\
A memory of your tools. At the start of a session read toolmem://{workspace}/rules (or the prompt
{prompt}): its rules are hard constraints. Before you use a tool that you are not sure of, ask
retrieve_tool_memory. Give finished calls to add_tool_call_result. Note what the user demands of you
with note_demand: without the user's approval it is kept as a proposal."""


class McpService:
    """One memory behind an MCP server. Raises ConfigError."""

    def __init__(self, memory: ToolMem, workspace: str = "default") -> None:
        self.memory = memory
        self._tools = McpTools(memory, workspace)
        self._reading = McpReading(memory, workspace)
        self._limits: tuple[CapacityLimiter, CapacityLimiter] | None = None
        told = _INSTRUCTIONS.format(workspace=workspace, prompt=PROMPT)
        self.server: Server[Any] = Server(
            "toolmem",
            version=__version__,
            instructions=told,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    async def serve_stdio(self) -> None:
        """Until the client closes stdin. The SDK keeps stray prints off the client's pipe."""
        async with stdio_server() as (requests, answers):
            await self.server.run(requests, answers, self.server.create_initialization_options())

    def application(self, access: Access) -> Starlette:
        """The ASGI application, at `/mcp`. `access` decides who is let in."""
        off = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # Gate does it
        app = self.server.streamable_http_app(
            transport_security=off, max_request_body_size=MAX_BODY
        )
        app.add_middleware(Gate, access=access)
        return app

    async def _list_tools(self, context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=self._tools.declared)

    async def _call_tool(self, context: Any, params: CallToolRequestParams) -> CallToolResult:
        known = context.session.client_params
        client = known.client_info.name[:100] if known is not None else ""
        work = partial(self._tools.call, params.name, params.arguments, client)
        return await self._in_thread(work, waits=params.name not in _SHORT)

    async def _list_resources(self, context: Any, params: Any) -> Any:
        return await self._in_thread(
            lambda: self._reading.resources(params.cursor if params else None)
        )

    async def _list_templates(self, context: Any, params: Any) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=TEMPLATES)

    async def _read_resource(self, context: Any, params: ReadResourceRequestParams) -> Any:
        return await self._in_thread(lambda: self._reading.read(params.uri))

    async def _list_prompts(self, context: Any, params: Any) -> ListPromptsResult:
        return ListPromptsResult(prompts=PROMPTS)

    async def _get_prompt(self, context: Any, params: GetPromptRequestParams) -> Any:
        return await self._in_thread(lambda: self._reading.prompt(params.name, params.arguments))

    async def _in_thread(self, work: Callable[[], Answer], *, waits: bool = False) -> Answer:
        """What toolmem raises on purpose reaches the client in its words."""
        if self._limits is None:
            self._limits = CapacityLimiter(MAX_WAITING), CapacityLimiter(MAX_SHORT)
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._limits[0 if waits else 1])
        except RequestError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        except ToolMemError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from error
