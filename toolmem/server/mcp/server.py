"""The MCP server: flows and memory tools, rules and guidance, for any host that speaks the protocol.

    await McpService(ToolMemApp()).serve_stdio()

`declarations` and `tools` hold the tools, `resources` and `prompts` what a host puts before its model, `stdio` and
`http` are the two transports.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    ListToolsResult,
    PaginatedRequestParams,
)

from toolmem import __version__
from toolmem.app import ToolMemApp
from toolmem.config.problems import added_to
from toolmem.errors import ConfigError, RequestError, ToolMemError
from toolmem.flow.checks import check_workspace
from toolmem.server.http.access import AccessControl
from toolmem.server.mcp.declarations import OFFERED, offered_tools
from toolmem.server.mcp.offered_prompts import PROMPT, PROMPTS, McpPrompts
from toolmem.server.mcp.progress_notifications import tell_progress
from toolmem.server.mcp.resources import TEMPLATES, McpResources, rules_uri
from toolmem.server.mcp.stdio import stdio_streams
from toolmem.server.mcp.tool_calls import McpTools, NotedByClient, Result, UnderWay

logger = logging.getLogger("toolmem.service")

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")


class McpService:
    """One app, served to any number of clients. `workspace`: the one that is meant where a client names none.
    `noted_by_client`: keeps a note of a demand where it is known what the client's user said.

    Raises ConfigError, with all problems, where a flow could not be offered or its model could not be asked.
    """

    def __init__(
        self, app: ToolMemApp, workspace: str = "default", *, noted_by_client: NotedByClient | None = None
    ) -> None:
        self.app = app
        self.workspace = check_workspace(workspace)
        _check(app, self.workspace)
        self._under_way = UnderWay()
        self._tools = McpTools(app, self.workspace, self._under_way, noted_by_client)
        self._resources = McpResources(app, self.workspace)
        self._prompts = McpPrompts(app, self.workspace)
        app.listeners.append(tell_progress)
        self.server = self._make_server()

    def _make_server(self) -> Server[Any]:
        server: Server[Any] = Server(
            "toolmem",
            version=__version__,
            title="toolmem",
            description="Tool memory for agents: what works with each tool, and what the user demands of it.",
            instructions=_instructions(self.workspace, [tool.name for tool in self._tools.declared]),
            on_list_tools=_one_page(ListToolsResult(tools=self._tools.declared)),
            on_list_resources=_answering(lambda params: self._resources.list(params.cursor if params else None)),
            on_list_resource_templates=_one_page(TEMPLATES),
            on_read_resource=_answering(lambda params: self._resources.read(params.uri)),
            on_list_prompts=_one_page(PROMPTS),
            on_get_prompt=_answering(lambda params: self._prompts.get(params.name, params.arguments)),
            on_completion=_answering(self._prompts.complete),
        )
        server.add_request_handler("tools/call", CallToolRequestParams, self._call_tool)
        return server

    # -- life

    async def __aenter__(self) -> Self:
        """Open the store, so that one that cannot be reached ends the start instead of the first call."""
        await self.app.services.store_named()
        self.app.services.require_trusted()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Cancel what is under way and wait for it (a started write finishes), then close the app."""
        try:
            await self._under_way.settled()
        finally:
            await self.app.close()

    async def serve_stdio(self) -> None:
        """Until the client closes stdin, or a SIGTERM or SIGINT comes. What was asked before is answered first."""
        async with self, stdio_streams() as (requests, answers):
            await self.server.run(requests, answers, self.server.create_initialization_options())
            await self._under_way.settled()

    async def _call_tool(self, context: Context, params: CallToolRequestParams) -> Result:
        wanted = context.meta is not None and context.meta.get("progress_token") is not None
        progress = context.session.report_progress if wanted else None
        return await self._tools.call(params.name, params.arguments, progress)


def _one_page(whole: T) -> Callable[[Context, PaginatedRequestParams | None], Awaitable[T]]:
    """The handler of a list that is one page."""

    async def handle(_: Context, params: PaginatedRequestParams | None) -> T:
        if params is not None and params.cursor is not None:
            raise MCPError(INVALID_PARAMS, "cursor: not one that this server gave")
        return whole

    return handle


def _answering(answer: Callable[[Any], Awaitable[T]]) -> Callable[[Context, Any], Awaitable[T]]:
    """The handler of a request that `answer` answers."""

    async def handle(_: Context, params: Any) -> T:
        with _errors_told():
            return await answer(params)

    return handle


@contextmanager
def _errors_told() -> Iterator[None]:
    """What toolmem raises on purpose reaches the client in its words; of anything else only its kind does."""
    try:
        yield
    except MCPError:
        raise
    except RequestError as error:
        raise MCPError(INVALID_PARAMS, str(error)) from error
    except ToolMemError as error:
        raise MCPError(INTERNAL_ERROR, str(error)) from error
    except Exception as error:
        logger.error("mcp request failed: %s", type(error).__name__)
        logger.debug("how it failed", exc_info=True)
        raise MCPError(INTERNAL_ERROR, f"internal error: {type(error).__name__}") from error


def _check(app: ToolMemApp, workspace: str) -> None:
    """Raises ConfigError with all that cannot be served: flows by name, models that cannot be asked, the address."""
    problems: list[str] = []
    asked = set(OFFERED)
    with added_to(problems):
        asked = {tool.name for tool in offered_tools(app, workspace)}
    for name in (each for each in app.flows if each in asked):
        with added_to(problems):
            app.check_models(name)
    if app.settings.mcp.transport != "stdio":
        with added_to(problems):
            AccessControl.of(app.settings, "mcp")
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))


def _instructions(workspace: str, offered: Collection[str]) -> str:
    told = (
        f"A memory of your tools. At the start of a session read {rules_uri(workspace)} (or the prompt {PROMPT}): its "
        "rules are hard constraints, what an agent noted is advice. Before you use a tool that you are not sure of, "
        "ask retrieve_tool_memory for its guidance. Give finished calls to add_tool_call_result. Note what you learn "
        "of a tool with memory_tools_put; a critical rule waits until the user approves it."
    )
    if "capture_tool_rules" in offered:
        told += " Give turns to capture_tool_rules."
    if "summary_tool_memory" in offered:
        told += " Call summary_tool_memory now and then to distil guidance."
    return told
