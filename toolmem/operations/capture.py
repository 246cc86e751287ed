"""capture_rules: what a turn gives as rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from toolmem.models import FlowResponse, ToolMemoryRule
from toolmem.operations.operation import flow_operation
from toolmem.operations.results import Answer, rules_of


class CapturedRules(Answer):
    """What a turn gave."""

    @property
    def rules(self) -> list[ToolMemoryRule]:
        """Kept for good."""
        return rules_of(self)

    @property
    def session(self) -> list[dict[str, str]]:
        """Demands on this session alone, each with `tool_name` and `rule`; not stored."""
        return list(self.metadata.get("session", []))

    @property
    def withdrawn(self) -> list[ToolMemoryRule]:
        """Rules that the user took back."""
        return [ToolMemoryRule.model_validate(rule) for rule in self.metadata.get("withdrawn", [])]

    @property
    def superseded(self) -> list[ToolMemoryRule]:
        """Rules in whose place a newer one stands."""
        return [ToolMemoryRule.model_validate(rule) for rule in self.metadata.get("superseded", [])]

    @property
    def notes(self) -> list[str]:
        """What to tell the user."""
        return list(self.metadata.get("notes", []))


@flow_operation("capture_tool_rules")
def capture_rules(
    answer: FlowResponse,
    /,
    user_message: Annotated[str | None, "What the user said in this turn."] = None,
    *,
    tool_calls: Annotated[
        Sequence[Mapping[str, Any]] | None,
        "The calls of the turn, in order. Each is an object with name, arguments, success, output_summary and "
        "duration_ms; only the name is needed. Where success is missing, a clear failure is read from the output.",
    ] = None,
    session_id: Annotated[str | None, "The session that the turn belongs to."] = None,
    tools: Annotated[
        Sequence[Any] | None, "All tools that the agent has, as names or as JSON schemas (OpenAI or MCP form)."
    ] = None,
    workspace_id: str | None = None,
) -> CapturedRules:
    """Keep what a turn gives as rules; standing demands of the user, and tools that failed again and again."""
    return CapturedRules.of(answer)
