"""summarize: distil guidance from the newest judged calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, Self

from toolmem.models import FlowResponse
from toolmem.operations.operation import flow_operation
from toolmem.operations.results import Listed

Names = str | Sequence[str]  # separated by commas, or a list (for names that hold a comma)


class Summary(NamedTuple):
    """What was done about one tool, and why."""

    tool: str
    action: Literal["summarized", "skipped", "failed", "not_found"]
    reason: str


class Summarized(Listed[Summary]):
    """One Summary per tool, in the order asked."""

    @classmethod
    def of(cls, answer: FlowResponse) -> Self:
        """From the answer of the flow."""
        told = answer.metadata.get("tools", [])
        rows = [Summary(row["tool_name"], row["action"], row.get("reason", "")) for row in told]
        return cls(rows, answer)


@flow_operation("summary_tool_memory")
def summarize(
    answer: FlowResponse,
    /,
    tool_names: Annotated[Names | None, "Names separated by commas, or a list of names; left out: all tools."] = None,
    *,
    force: Annotated[bool | None, "Summarize even where nothing is new."] = None,
    data_from: Annotated[str | None, "A time; only calls created since then are analyzed."] = None,
    workspace_id: str | None = None,
) -> Summarized:
    """Distil usage guidance from the newest judged calls of these tools, or all; one with nothing new is skipped."""
    return Summarized.of(answer)
