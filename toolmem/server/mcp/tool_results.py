"""What the MCP server answers a call with: text for the model, and the same as structured content.

Hosts differ: some put the text before their model, others the structured content alone. So each of the two says all
that matters. What is null is left out of both, and nothing is said twice in one of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolmem import ops
from toolmem.flow.op import Node
from toolmem.models import FlowResponse

Result = dict[str, Any]  # a CallToolResult as it travels

_FOR_THE_MODEL = (ops.RetrieveToolMemoryOp, ops.ToolRulesPromptOp)  # their answer is the whole point
_OF_A_MEMORY = ("when_to_use", "memory_id", "score", "time_modified")
_FIGURES = ("calls", "failures", "success_rate", "avg_score", "avg_time_cost", "avg_token_cost")


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
    figures = {name: known[name] for name in ("new", "similarity") if name in known}
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
