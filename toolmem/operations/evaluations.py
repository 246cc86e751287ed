"""retry_evaluations and rejudge: verdicts of calls that are kept already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from toolmem.models import FlowResponse
from toolmem.operations.operation import flow_operation
from toolmem.operations.results import Answer
from toolmem.operations.summarize import Names

Schemas = Annotated[Sequence[Mapping[str, Any]] | None, "The tools' JSON schemas."]
OnlyThese = Annotated[Names | None, "Only these tools."]


@flow_operation("retry_evaluations")
def retry_evaluations(
    answer: FlowResponse,
    /,
    tool_names: OnlyThese = None,
    *,
    tools: Schemas = None,
    workspace_id: str | None = None,
) -> Answer:
    """Judge the kept calls whose evaluation failed."""
    return Answer.of(answer)


@flow_operation("rejudge")
def rejudge(
    answer: FlowResponse,
    /,
    tool_names: OnlyThese = None,
    *,
    tools: Schemas = None,
    force: Annotated[bool | None, "Judge again even what this judge has judged before."] = None,
    workspace_id: str | None = None,
) -> Answer:
    """Judge all kept calls again, with the judge that is configured now."""
    return Answer.of(answer)
