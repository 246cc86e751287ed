"""What the MCP server says of its tools before any is called: names, input schemas, annotations.

It is sent with every session of every agent, so it is kept short, without schemas of outputs.
"""

from __future__ import annotations

from typing import Any

from mcp_types import Tool, ToolAnnotations

from toolmem import ops
from toolmem.app import ToolMemApp
from toolmem.config.nearest_names import hint
from toolmem.config.settings import Argument
from toolmem.config.sockets import LOCAL_EMBEDDERS
from toolmem.errors import ConfigError
from toolmem.flow.op import Node, Op
from toolmem.operations.agent_tools import agent_operations, input_schema
from toolmem.ops.vector_store_action import DELETE_WORKSPACE

WORKSPACE = "workspace_id"
RESULT = "result"  # what is no object stands under this key, as the SDK itself wraps it

# Flows that an agent is offered beside its memory tools where `mcp.tools` says nothing.
OFFERED = ("retrieve_tool_memory", "add_tool_call_result", "check_tool_call", "advise_tool_call")
ALL = "all"

# (reads only, may destroy, changes nothing more when called again with the same arguments)
_READS = (True, False, True)
_ADDS = (False, False, False)
_SETTLES = (False, False, True)
_REPLACES = (False, True, True)
_HINTS: dict[type[Op], tuple[bool, bool, bool]] = {
    ops.RetrieveToolMemoryOp: _READS,
    ops.ToolRulesPromptOp: _READS,
    ops.CheckToolCallOp: _READS,  # beside what is decided it logs the decision
    ops.ParseToolCallResultOp: _READS,  # judges; what it read is stored by the next op
    ops.AdviseToolCallOp: _READS,
    ops.UpdateVectorStoreOp: _ADDS,
    ops.SummaryToolMemoryOp: _SETTLES,
    ops.RetryEvaluationsOp: _SETTLES,
    ops.CaptureToolRulesOp: _SETTLES,
    ops.NoteDemandOp: _SETTLES,
    ops.LiftDemandOp: _SETTLES,
    ops.RejudgeOp: _REPLACES,
    ops.VectorStoreActionOp: _REPLACES,
}

# Arguments that are not for an agent to give.
_OF_THE_HOST: dict[type[Op], tuple[str, ...]] = {
    ops.VectorStoreActionOp: ("confirm",),
    ops.ParseToolCallResultOp: ("force",),
    ops.CheckToolCallOp: ("context", "tools"),
    ops.AdviseToolCallOp: ("context_key", "budget_tokens"),
}


def offered_tools(app: ToolMemApp, workspace: str) -> list[Tool]:
    """The default list and what `mcp.tools` adds: flows in the order of the configuration, then the memory tools.

    Raises ConfigError where a name of `mcp.tools` is none, or a flow has the name of a memory tool.
    """
    memory_tools = agent_tools(workspace)
    taken = {tool.name for tool in memory_tools}
    own_flows = {name for name, operation in agent_operations().items() if operation.flow == name}
    problems = [
        f"flow.{name}: the MCP server has a tool of this name; give the flow another one, or list it in disabled_flows"
        for name in app.flows
        if name in taken and name not in own_flows
    ]
    known = [*app.flows, *app.configured.left_out, *taken]
    added = app.settings.mcp.tools
    problems += [
        f"mcp.tools: {name!r} is no flow ({hint(name, known)})" for name in added if name != ALL and name not in known
    ]
    if problems:
        raise ConfigError(problems)
    chosen = known if ALL in added else [*OFFERED, *added]
    flows = [
        _flow_tool(app, name, node, workspace)
        for name, node in app.flows.items()
        if name in chosen and name not in taken
    ]
    return [*flows, *memory_tools]


def _flow_tool(app: ToolMemApp, name: str, node: Node, workspace: str) -> Tool:
    settings = app.settings.flow[name]
    hidden = {WORKSPACE, *(argument for op in node.ops() for argument in _OF_THE_HOST.get(type(op), ()))}
    arguments = {key: argument for key, argument in settings.input_schema.items() if key not in hidden}
    schema = {
        "type": "object",
        "properties": {
            **{key: _json_schema(each, node) for key, each in arguments.items()},
            WORKSPACE: _workspace(workspace),
        },
        "required": [key for key, argument in arguments.items() if argument.required],
        "additionalProperties": False,
    }
    return Tool(
        name=name,
        description=settings.description or None,
        input_schema=schema,
        annotations=_annotations(_hints_of(node), open_world=_asks_elsewhere(app, node)),
    )


def agent_tools(workspace: str) -> list[Tool]:
    """The tools by which an agent keeps rules and notes."""
    declared = []
    for name, operation in agent_operations().items():
        assert operation.agent is not None
        given = input_schema(operation)
        own = {**given, "properties": {**given["properties"], WORKSPACE: _workspace(workspace)}}
        declared.append(
            Tool(
                name=name,
                description=operation.agent.listed or operation.agent.description,
                input_schema=own,
                annotations=_annotations(_READS if operation.reads_only else _REPLACES, open_world=False),
            )
        )
    return declared


def _workspace(default: str) -> dict[str, Any]:
    return {"type": "string", "default": default}


def _acts_on_workspaces(node: Node) -> bool:
    return any(isinstance(op, ops.VectorStoreActionOp) for op in node.ops())


def _json_schema(argument: Argument, node: Node) -> dict[str, Any]:
    schema = argument.as_json_schema()
    if "enum" in schema and _acts_on_workspaces(node):
        schema["enum"] = [each for each in schema["enum"] if each != DELETE_WORKSPACE]
    return schema


def _hints_of(node: Node) -> tuple[bool, bool, bool] | None:
    """Of the whole flow; None where an op of somebody else is among its ops: then nothing is promised."""
    hints = [_HINTS.get(type(op)) for op in node.ops()]
    known = [each for each in hints if each is not None]
    if len(known) < len(hints):
        return None
    return all(h[0] for h in known), any(h[1] for h in known), all(h[2] for h in known)


def _annotations(hints: tuple[bool, bool, bool] | None, *, open_world: bool) -> ToolAnnotations | None:
    if hints is None:
        return None
    reads, destroys, settles = hints
    return ToolAnnotations(
        read_only_hint=reads,
        destructive_hint=destroys,
        idempotent_hint=settles,
        open_world_hint=open_world,
    )


def _asks_elsewhere(app: ToolMemApp, node: Node) -> bool:
    """Whether the flow may send texts to a model, or an embedder, that is not part of toolmem."""
    settings = app.settings
    return any(
        (op.asks_model and settings.llm[op.settings.llm].backend not in ("offline", "dry_run"))
        or settings.embedding_model[settings.vector_store[op.settings.vector_store].embedding_model].backend
        not in LOCAL_EMBEDDERS
        for op in node.ops()
    )
