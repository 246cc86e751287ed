"""The tools of the MCP server: the flows that are offered, and the agent's own memory tools."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, Tool

from toolmem.app import ToolMemApp
from toolmem.config.nearest_names import hint
from toolmem.errors import RequestError, ToolMemError, raised_by
from toolmem.flow.checks import check_workspace
from toolmem.models import FlowResponse
from toolmem.operations.agent_tools import AgentTools
from toolmem.readers.plain_text import plain_text
from toolmem.rules.speakers import speaking_as
from toolmem.server.mcp.declarations import RESULT, WORKSPACE, agent_tools, offered_tools
from toolmem.server.mcp.progress_notifications import ProgressNotifications, Send
from toolmem.server.mcp.tool_results import Result, answered, flow_answered
from toolmem.server.mcp.under_way import UnderWay

logger = logging.getLogger("toolmem.service")


class McpTools:
    """Answers `tools/list` and `tools/call`. `workspace`: the one that is meant where a call names none."""

    def __init__(self, app: ToolMemApp, workspace: str, under_way: UnderWay) -> None:
        self._app = app
        self._workspace = workspace
        self._under_way = under_way
        self._agent_tools = {tool.name for tool in agent_tools(workspace)}
        self.declared: list[Tool] = offered_tools(app, workspace)
        self._offered = {tool.name for tool in self.declared}

    async def call(self, name: str, arguments: Mapping[str, Any] | None, progress: Send | None = None) -> Result:
        """What the tool answered, or why it did not: a refusal and a failure are results that say so.

        `progress`: where the caller asked for it. Raises MCPError where there is no such tool.
        """
        work = self._work(name, dict(arguments or {}))
        begun = time.perf_counter()
        outcome = "cancelled"
        try:
            if progress is None:
                result = await self._under_way.run(work())
            else:
                async with ProgressNotifications(progress):
                    result = await self._under_way.run(work())
            outcome = "ok"
        except ToolMemError as error:
            outcome = type(error).__name__
            result = self._failed(name, str(error), error)
        except Exception as error:
            outcome = f"internal error {type(error).__name__}"
            logger.error("mcp tool=%s failed: %s", name, type(error).__name__)
            logger.debug("how it failed", exc_info=True)
            where = raised_by(error)
            result = self._failed(name, f"internal error: {type(error).__name__}{', ' if where else ''}{where}", error)
        finally:
            logger.info("mcp tool=%s outcome=%s seconds=%.4f", name, outcome, time.perf_counter() - begun)
        return result

    def _work(self, name: str, arguments: dict[str, Any]) -> Callable[[], Awaitable[Result]]:
        app = self._app
        if name in self._agent_tools:
            return lambda: self._use_memory(name, arguments)
        if name in self._offered or name in app.configured.left_out:
            return lambda: self._run_flow(name, arguments)
        if name in app.flows:
            raise MCPError(INVALID_PARAMS, f"{name!r} is not offered to agents here; an operator adds it to mcp.tools")
        raise MCPError(INVALID_PARAMS, f"unknown tool {name[:100]!r} ({hint(name, self._offered)})")

    async def _run_flow(self, name: str, arguments: dict[str, Any]) -> Result:
        if arguments.get(WORKSPACE) is None:
            arguments[WORKSPACE] = self._workspace
        with speaking_as("agent"):
            response = await self._app.run_flow(name, **arguments)
        return flow_answered(self._app.flows[name], response)

    async def _use_memory(self, name: str, arguments: dict[str, Any]) -> Result:
        given = arguments.pop(WORKSPACE, None)
        workspace = self._workspace if given is None else check_workspace(given)
        try:
            value = await AgentTools(self._app.services, workspace).call(name, arguments)
        except RequestError as error:
            if error.field is not None and str(error).startswith(f"{error.field}: unknown"):
                raise RequestError(f"{error} (beside them: {WORKSPACE})", field=error.field) from None
            raise
        return answered(value if isinstance(value, dict) else {RESULT: value})

    def _failed(self, name: str, reason: str, error: Exception) -> Result:
        """A tool error: its text is the reason; a flow's is a whole FlowResponse as well."""
        reason = plain_text(reason)  # it may quote what a call brought in
        result: Result = {"content": [{"type": "text", "text": reason}], "isError": True, "resultType": "complete"}
        if name not in self._agent_tools:
            field = getattr(error, "field", None)
            known = {} if field is None else {"field": field}
            metadata = {"error": type(error).__name__, **known}
            result["structuredContent"] = FlowResponse(answer=reason, success=False, metadata=metadata).model_dump()
        return result
