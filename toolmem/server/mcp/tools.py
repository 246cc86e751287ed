"""The tools of the MCP server: operations for agents, and the flows that `mcp.tools` adds.

Every agent sends the list to its model in every session, so it is short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations
from msgspec import Struct
from msgspec.structs import replace

from toolmem.config.names import hint
from toolmem.errors import ConfigError, RequestError
from toolmem.flow.binding import Flow
from toolmem.flow.checks import WORKSPACE_KEY
from toolmem.flow.runner import OLD_NAMES
from toolmem.memory.toolmem import ToolMem, Workspace
from toolmem.models.decisions import Decision
from toolmem.models.tools import FlowResponse
from toolmem.operations import OPERATIONS
from toolmem.operations.operation import AgentTool, Operation
from toolmem.operations.results import Result
from toolmem.rules.changes import Actor
from toolmem.rules.notes.keep import NoteResult
from toolmem.rules.replies import without_ways_out
from toolmem.server.openapi import WORKSPACE, flow_schema
from toolmem.server.rpc import split_workspace

ALL = "all"  # in `mcp.tools`: every flow


class Offer(Struct):
    """A tool, and the function that runs it in a workspace with the given arguments."""

    tool: Tool
    run: Callable[[Workspace, dict[str, Any]], Any]


class McpTools:
    """Offers operations and flows as MCP tools. Raises ConfigError for an unknown `mcp.tools`."""

    def __init__(self, memory: ToolMem, workspace: str) -> None:
        self.memory = memory
        self.workspace = workspace
        self.offers = {
            operation.agent.name: _operation_offer(operation, operation.agent)
            for operation in OPERATIONS.values()
            if operation.agent is not None
        }
        flows = memory.engine.flows.ready
        chosen = memory.engine.configuration.settings.mcp.tools
        unknown = [name for name in chosen if name != ALL and name not in flows]
        if unknown:
            raise ConfigError([f"mcp.tools: {n!r} is no flow ({hint(n, flows)})" for n in unknown])
        for name in flows if ALL in chosen else chosen:
            self.offers.setdefault(name, _flow_offer(name, flows[name]))
        for offer in self.offers.values():
            schema = {**WORKSPACE, "default": workspace}
            offer.tool.input_schema["properties"][WORKSPACE_KEY] = schema

    def call(self, name: str, arguments: Mapping[str, Any] | None, client: str) -> CallToolResult:
        """Run a tool for the agent `client`. A RequestError is returned as a failed result."""
        sent = {key: value for key, value in (arguments or {}).items() if value is not None}
        try:
            workspace, given = split_workspace(sent, self.workspace)
            offer = self.offers.get(name)
            if offer is None:
                raise RequestError(f"there is no tool {name!r} ({hint(name, self.offers)})")
            known = offer.tool.input_schema["properties"]
            for key in sent:
                if known.keys().isdisjoint((key, OLD_NAMES.get(key, key))):
                    raise RequestError(f"{key}: unknown ({hint(key, known)})", key)
            actor = Actor("agent", name=client)
            done = offer.run(self.memory.workspace(workspace).acting_as(actor), given)
        except RequestError as error:
            return _result(str(error), failed=True)
        if isinstance(done, Result | FlowResponse):
            return _result(done.answer, failed=not done.success)
        return _result(msgspec.json.encode(_for_model(done)).decode())


def _for_model(done: Any) -> Any:
    """Remove from a result how to let a call through or lift a rule: only the user may read it."""
    if isinstance(done, Decision):
        return replace(done, notice="")
    if isinstance(done, NoteResult):
        return replace(done, told=without_ways_out(done.told), rules=[])
    return done


def _operation_offer(operation: Operation, agent: AgentTool) -> Offer:
    tool = Tool(
        name=agent.name,
        description=agent.description,
        input_schema=operation.schema(agent.hidden),
        annotations=ToolAnnotations(read_only_hint=operation.reads_only),
    )
    return Offer(tool, lambda memory, given: memory.perform(operation, given))


def _flow_offer(name: str, flow: Flow) -> Offer:
    """A flow as a tool. It has no `confirm`, as only the user may delete a workspace."""
    hidden = ("confirm", WORKSPACE_KEY)
    schema = flow_schema({key: each for key, each in flow.arguments.items() if key not in hidden})
    for each in schema["properties"].values():
        if "enum" in each:
            each["enum"] = [value for value in each["enum"] if value != "delete_workspace"]
    tool = Tool(name=name, description=flow.description, input_schema=schema)
    return Offer(tool, lambda memory, given: memory.run(name, **given))


def _result(text: str, *, failed: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=failed)
