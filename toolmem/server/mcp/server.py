"""The MCP server over stdin and stdout, or over streamable HTTP."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import mcp_types as types
from mcp.server import streamable_http
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect

from toolmem import __version__
from toolmem.errors import RequestError, ToolMemError
from toolmem.memory.toolmem import ToolMem
from toolmem.server.access import Access, Refused
from toolmem.server.http import MAX_BODY, Answer, Gate, Threads
from toolmem.server.mcp.reading import PROMPT, PROMPTS, TEMPLATES, McpReading
from toolmem.server.mcp.tools import McpTools

# Tools that ask no model.
_SHORT = ("check_tool_call", "advise_tool_call", "memory_tools_put", "memory_tools_list")
_INSTRUCTIONS = """\
This server remembers how calls of your tools ended, and what the user demands. At the start of a
session read toolmem://{workspace}/rules (or the prompt {prompt}): its rules are hard constraints.
Before you use a tool that you are not sure of, ask retrieve_tool_memory. Give finished calls to
add_tool_call_result. Note what the user demands of you with note_demand. A demand that the user has
not approved waits as a request."""


class McpService:
    """An MCP server for a memory. `workspace`: for calls that name none. Raises ConfigError."""

    def __init__(self, memory: ToolMem, workspace: str) -> None:
        self._tools = McpTools(memory, workspace)
        self._threads = Threads()
        tools = types.ListToolsResult(tools=[each.tool for each in self._tools.offers.values()])
        reading = McpReading(memory, workspace)
        templates = types.ListResourceTemplatesResult(resource_templates=TEMPLATES)
        self.server: Server[Any] = Server(
            "toolmem",
            version=__version__,
            instructions=_INSTRUCTIONS.format(workspace=workspace, prompt=PROMPT),
            on_list_tools=self._handler(lambda _: tools),
            on_call_tool=self._call_tool,
            on_list_resources=self._handler(lambda p: reading.resources(p.cursor if p else None)),
            on_list_resource_templates=self._handler(lambda _: templates),
            on_read_resource=self._handler(lambda p: reading.read(p.uri)),
            on_list_prompts=self._handler(lambda _: types.ListPromptsResult(prompts=PROMPTS)),
            on_get_prompt=self._handler(lambda p: reading.prompt(p.name, p.arguments)),
        )

    async def serve_stdio(self) -> None:
        """Serve until the client closes stdin. Until then, the SDK turns `print` to stderr."""
        async with stdio_server() as (requests, answers):
            await self.server.run(requests, answers, self.server.create_initialization_options())

    def application(self, access: Access) -> Starlette:
        """Make the ASGI application, which serves MCP at `/mcp`."""
        off = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # Gate does it
        app = self.server.streamable_http_app(
            transport_security=off, max_request_body_size=MAX_BODY
        )
        app.add_middleware(Gate, access=access)
        logging.getLogger(streamable_http.__name__).addFilter(_is_fault)
        return app

    def _handler(self, work: Callable[[Any], Any]) -> Callable[[Any, Any], Awaitable[Any]]:
        """The handler of a request that asks no model. `work` turns its params into the result."""

        async def handle(context: Any, params: Any) -> Any:
            return await self._run(partial(work, params))

        return handle

    async def _call_tool(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        client_params = context.session.client_params
        client = client_params.client_info.name[:100] if client_params is not None else ""
        work = partial(self._tools.call, params.name, params.arguments, client)
        return await self._run(work, waits=params.name not in _SHORT)

    async def _run(self, work: Callable[[], Answer], *, waits: bool = False) -> Answer:
        """Run in a thread. Errors of toolmem become errors of the protocol."""
        try:
            return await self._threads.run(work, waits=waits)
        except RequestError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        except ToolMemError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error


def _is_fault(record: logging.LogRecord) -> bool:
    """Whether the SDK logs more than that a client hung up, or that a request was refused."""
    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect | Refused))
