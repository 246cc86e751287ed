"""The tools of the MCP server: the flows that are offered, and the agent's own memory tools."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, Tool

from toolmem import ops
from toolmem.app import ToolMemApp
from toolmem.config.nearest_names import hint
from toolmem.errors import RequestError, ToolMemError, raised_by
from toolmem.flow.checks import check_workspace
from toolmem.flow.op import Node
from toolmem.models import FlowResponse
from toolmem.operations.agent_tools import AgentTools, agent_operations, input_schema
from toolmem.operations.demand_notes import as_told
from toolmem.protocols import Services
from toolmem.readers.plain_text import plain_text
from toolmem.rules.noted_demands import NotedDemand
from toolmem.rules.speakers import speaking_as
from toolmem.server.mcp.declarations import RESULT, WORKSPACE, agent_tools, offered_tools
from toolmem.server.mcp.progress_notifications import ProgressNotifications, Send

logger = logging.getLogger("toolmem.service")

T = TypeVar("T")
Result = dict[str, Any]  # a CallToolResult as it travels
# A note of a client in a workspace, where the client is an agent whose user is heard; else None.
NotedByClient = Callable[[Services, str, Mapping[str, Any]], Awaitable[NotedDemand | None]]

_FOR_THE_MODEL = (ops.RetrieveToolMemoryOp, ops.ToolRulesPromptOp)  # their answer is the whole point
_OF_A_MEMORY = ("when_to_use", "memory_id", "score", "time_modified")
_FIGURES = ("calls", "failures", "success_rate", "avg_score", "avg_time_cost", "avg_token_cost")


class McpTools:
    """Answers `tools/list` and `tools/call`. `workspace`: the one that is meant where a call names none."""

    def __init__(
        self, app: ToolMemApp, workspace: str, under_way: UnderWay, noted_by_client: NotedByClient | None = None
    ) -> None:
        self._app = app
        self._workspace = workspace
        self._under_way = under_way
        self._noted_by_client = noted_by_client
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
        if name == "note_demand" and (noted := await self._noted(workspace, arguments)) is not None:
            return answered(noted)
        try:
            value = await AgentTools(self._app.services, workspace).call(name, arguments)
        except RequestError as error:
            if error.field is not None and str(error).startswith(f"{error.field}: unknown"):
                raise RequestError(f"{error} (beside them: {WORKSPACE})", field=error.field) from None
            raise
        return answered(value if isinstance(value, dict) else {RESULT: value})

    async def _noted(self, workspace: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """What became of a note whose words hooks heard the client's user say; None where they hold no client."""
        known = input_schema(agent_operations()["note_demand"])["properties"]
        stdio = self._app.settings.mcp.transport == "stdio"  # else the client is no process above this one
        if self._noted_by_client is None or not stdio or set(arguments) - set(known):
            return None
        noted = await self._noted_by_client(self._app.services, workspace, arguments)
        return None if noted is None else as_told(noted).model_dump(mode="json", exclude_none=True)

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


class UnderWay:
    """Runs each piece of work in a task of its own, and sees it to its end though the client leaves.

    When the one who waits is cancelled the work is cancelled once and left to end by itself: a write that was started
    finishes. (A cancel scope would cancel it again at each step.)
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    async def run(self, work: Awaitable[T]) -> T:
        """What the work answers."""
        task: asyncio.Task[T] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited was told, or has gone

    async def settled(self) -> None:
        """Cancel what is left, unless it was cancelled before, and wait until it has ended."""
        while self._tasks:
            for task in self._tasks:
                if not task.cancelling():
                    task.cancel()
            await asyncio.wait(self._tasks)


# ---------------------------------------------------------------- results
# Text for the model, and the same as structured content. Hosts differ: some put the text before their model, others the
# structured content alone. So each of the two says all that matters; what is null is left out, nothing is said twice.


def answered(value: Any) -> Result:
    """Of values that are read by programs as well: the text is the same JSON."""
    body = without_nulls(value)
    return _result(json.dumps(body, ensure_ascii=False), body)


def flow_answered(node: Node, response: FlowResponse) -> Result:
    """Of a flow that answers guidance or rules the text is that alone, and the rest is what it does not say."""
    body = response.model_dump(mode="json")
    if not all(isinstance(op, _FOR_THE_MODEL) for op in node.ops()):
        return answered(body)
    metadata = {name: value for name, value in body["metadata"].items() if name not in ("rules", "usage")}
    if "memory_list" in metadata:
        metadata["memory_list"] = [_beside_the_text(memory) for memory in metadata["memory_list"]]
    return _result(response.answer, without_nulls({**body, "metadata": metadata}))


def _beside_the_text(memory: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of a memory whose guidance the answer holds; its calls where they were asked for."""
    known = memory["metadata"]
    shown: dict[str, Any] = {name: memory[name] for name in _OF_A_MEMORY}
    if memory["tool_call_results"]:
        shown["tool_call_results"] = memory["tool_call_results"]
    figures = {name: known[name] for name in ("new", "similarity", "relevance") if name in known}
    figures["statistics"] = {name: known.get("statistics", {}).get(name) for name in _FIGURES}
    figures["lifetime"] = {name: known.get("lifetime", {}).get(name) for name in _FIGURES[:2]}
    return {**shown, "metadata": figures}


def _result(text: str, structured: dict[str, Any]) -> Result:
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": structured,
        "isError": False,
        "resultType": "complete",
    }


def without_nulls(value: Any) -> Any:
    """The value without the members of its objects that are None, at any depth."""
    if isinstance(value, Mapping):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [without_nulls(each) for each in value]
    return value
