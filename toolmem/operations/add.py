"""add: judge tool calls and keep them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from toolmem.models import FlowResponse, ToolCall, ToolCallResult
from toolmem.operations.operation import flow_operation
from toolmem.operations.results import Answer

Record = Mapping[str, Any] | ToolCall | ToolCallResult


class Added(Answer):
    """What became of calls that were handed over."""

    @property
    def stored(self) -> int:
        """Calls that are kept now and were not before."""
        told = self._told
        return int(told.get("requested", 0)) - int(told.get("failed", 0)) - int(told.get("duplicates", 0))

    @property
    def duplicates(self) -> int:
        """Calls whose id was known."""
        return int(self._told.get("duplicates", 0))

    @property
    def trimmed(self) -> dict[str, int]:
        """By tool: older calls that newer ones replaced."""
        return dict(self.metadata.get("trimmed", {}))

    @property
    def _told(self) -> dict[str, Any]:
        return dict(self.metadata.get("evaluation", {}))


def _all_have_ids(request: Mapping[str, Any]) -> bool:
    records = request["tool_call_results"]
    return isinstance(records, list) and bool(records) and all(map(_has_id, records))


def _has_id(record: Any) -> bool:  # whatever was given: a bad one is named by who reads it
    given = record.get("id") if isinstance(record, Mapping) else getattr(record, "id", None)
    return isinstance(given, str) and bool(given.strip())


@flow_operation("add_tool_call_result", sends={"calls": "tool_call_results"}, repeats=_all_have_ids)
def add(
    answer: FlowResponse,
    /,
    calls: Annotated[
        Sequence[Record],
        "The calls, oldest first. Each is an object with tool_name, input, output, success, create_time, "
        "time_cost, token_cost, metadata, and optionally id, conversation_id (repairs are told inside one "
        "conversation) and context (what the agent was asked).",
    ],
    *,
    tools: Annotated[
        Sequence[Mapping[str, Any]] | None,
        "The tools' JSON schemas, in OpenAI or MCP form. Parameters are checked against them.",
    ] = None,
    force: Annotated[bool | None, "Judge again what has been judged before."] = None,
    workspace_id: str | None = None,
) -> Added:
    """Judge tool calls and keep them with the memory of their tool.

    A bad record is named in `failures`, the others are kept. Where every call has an `id`, the same ids sent again are
    counted as duplicates and change nothing.
    """
    return Added.of(answer)
