"""What the MCP server says of its tools before any is called: names, input and output schemas, annotations."""

from __future__ import annotations

from typing import Any

from mcp_types import Tool, ToolAnnotations

from toolmem import ops
from toolmem.app import ToolMemApp
from toolmem.config.settings import Argument
from toolmem.errors import ConfigError
from toolmem.flow.op import Node, Op
from toolmem.rules.agent_tools import AgentMemoryTools
from toolmem.rules.general_memory import MemoryEntry
from toolmem.schema import ToolMemoryRule

WORKSPACE = "workspace_id"
RESULT = "result"  # what is no object stands under this key, as the SDK itself wraps it

FLOW_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "description": "What was done or found, as text."},
        "success": {
            "type": "boolean",
            "description": "Everything asked for was done or found. False with metadata.partial: some of it.",
        },
        "metadata": {"type": "object", "description": "Memories, names and counts behind the answer."},
    },
    "required": ["answer", "success", "metadata"],
}

# (reads only, may destroy, changes nothing more when called again with the same arguments)
_READS = (True, False, True)
_ADDS = (False, False, False)
_SETTLES = (False, False, True)
_REPLACES = (False, True, True)
_HINTS: dict[type[Op], tuple[bool, bool, bool]] = {
    ops.RetrieveToolMemoryOp: _READS,
    ops.ToolRulesPromptOp: _READS,
    ops.ParseToolCallResultOp: _READS,  # judges; what it read is stored by the next op
    ops.UpdateVectorStoreOp: _ADDS,
    ops.SummaryToolMemoryOp: _SETTLES,
    ops.RetryEvaluationsOp: _SETTLES,
    ops.CaptureToolRulesOp: _SETTLES,
    ops.RejudgeOp: _REPLACES,
    ops.VectorStoreActionOp: _REPLACES,
}
_AGENT_HINTS = {
    "memory_tools_put": _REPLACES,  # by id, and a text that is there already is not put twice
    "memory_tools_list": _READS,
    "memory_recall": _READS,
    "memory_store": _REPLACES,
    "memory_forget": _REPLACES,
}


def flow_tools(app: ToolMemApp, workspace: str) -> list[Tool]:
    """One per flow, in the order of the configuration. Raises ConfigError where a name is taken by an agent tool."""
    taken = {schema["name"] for schema in AgentMemoryTools.mcp_schemas()}
    problems = [
        f"flow.{name}: the MCP server has a tool of this name; give the flow another one, or list it in disabled_flows"
        for name in app.flows
        if name in taken
    ]
    if problems:
        raise ConfigError(problems)
    return [_flow_tool(app, name, node, workspace) for name, node in app.flows.items()]


def _flow_tool(app: ToolMemApp, name: str, node: Node, workspace: str) -> Tool:
    settings = app.settings.flow[name]
    arguments = {key: argument for key, argument in settings.input_schema.items() if key != WORKSPACE}
    schema = {
        "type": "object",
        "properties": {
            **{key: _json_schema(each) for key, each in arguments.items()},
            WORKSPACE: _workspace(workspace),
        },
        "required": [key for key, argument in arguments.items() if argument.required],
        "additionalProperties": False,
    }
    return Tool(
        name=name,
        title=_title(name),
        description=settings.description or None,
        input_schema=schema,
        output_schema=FLOW_OUTPUT,
        annotations=_annotations(name, _hints_of(node), open_world=_asks_elsewhere(app, node)),
    )


def agent_tools(workspace: str) -> list[Tool]:
    """The tools by which an agent keeps rules and notes."""
    outputs = {
        "memory_tools_put": _shape(ToolMemoryRule),
        "memory_tools_list": _wrapped({"type": "array", "items": _shape(ToolMemoryRule)}),
        "memory_recall": _wrapped({"type": "array", "items": _shape(MemoryEntry)}),
        "memory_store": _shape(MemoryEntry),
        "memory_forget": _wrapped({"type": "boolean", "description": "Whether it was there."}),
    }
    declared = []
    for schema in AgentMemoryTools.mcp_schemas():
        name, given = schema["name"], schema["inputSchema"]
        own = {**given, "properties": {**given["properties"], WORKSPACE: _workspace(workspace)}}
        declared.append(
            Tool(
                name=name,
                title=_title(name),
                description=schema["description"],
                input_schema=own,
                output_schema=outputs[name],
                annotations=_annotations(name, _AGENT_HINTS[name], open_world=False),
            )
        )
    return declared


def _workspace(default: str) -> dict[str, Any]:
    return {"type": "string", "description": "The workspace whose memory is meant.", "default": default}


def _json_schema(argument: Argument) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": argument.type if isinstance(argument.type, str) else list(argument.type)}
    if argument.description:
        schema["description"] = argument.description
    if argument.enum is not None:
        schema["enum"] = argument.enum
    if "array" in argument.types:
        schema["items"] = argument.items or {}  # some hosts refuse an array that does not say what it holds
    if argument.properties is not None:
        schema["properties"] = argument.properties
    return schema


def _shape(model: type[ToolMemoryRule] | type[MemoryEntry]) -> dict[str, Any]:
    return model.model_json_schema(mode="serialization") | {"required": [*_required(model)]}


def _required(model: type[ToolMemoryRule] | type[MemoryEntry]) -> list[str]:
    """Fields that may be None are left out where they are."""
    return [name for name, field in model.model_fields.items() if field.is_required()]


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {RESULT: schema}, "required": [RESULT]}


def _title(name: str) -> str:
    words = name.replace("_", " ").replace("-", " ")
    return words[:1].upper() + words[1:]


def _hints_of(node: Node) -> tuple[bool, bool, bool] | None:
    """Of the whole flow; None where an op of somebody else is among its ops: then nothing is promised."""
    hints = [_HINTS.get(type(op)) for op in node.ops()]
    known = [each for each in hints if each is not None]
    if len(known) < len(hints):
        return None
    return all(h[0] for h in known), any(h[1] for h in known), all(h[2] for h in known)


def _annotations(name: str, hints: tuple[bool, bool, bool] | None, *, open_world: bool) -> ToolAnnotations:
    if hints is None:
        return ToolAnnotations(title=_title(name))
    reads, destroys, settles = hints
    return ToolAnnotations(
        title=_title(name),
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
        != "hashing"
        for op in node.ops()
    )
