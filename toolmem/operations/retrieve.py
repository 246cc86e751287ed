"""retrieve: the guidance and statistics of tools, as their memories or as the text for a prompt."""

from __future__ import annotations

from typing import Annotated

from toolmem.models import FlowResponse
from toolmem.operations.operation import flow_operation
from toolmem.operations.results import Answer, Memories
from toolmem.operations.summarize import Names


class GuidanceText(Answer):
    """Guidance as an agent is given it."""

    @property
    def text(self) -> str:
        """The guidance; empty where no tool that was asked for has any yet."""
        return self.answer if self.metadata.get("memory_list") else ""

    def __str__(self) -> str:
        return self.text


@flow_operation("retrieve_tool_memory", reads_only=True)
def retrieve(
    answer: FlowResponse,
    /,
    tool_names: Annotated[
        Names | None, "Names separated by commas, or a list of names. Optional where a query is given."
    ] = None,
    *,
    query: Annotated[str | None, "What the agent wants to do; the memories that fit it best are answered."] = None,
    top_k: Annotated[int | None, "How many memories a query answers at most."] = None,
    include_calls: Annotated[bool | None, "Answer the kept calls as well."] = None,
    workspace_id: str | None = None,
) -> Memories:
    """Answer the guidance and statistics of tools, by name or by what is asked.

    A tool without a memory is not in the list; the list's `not_found` names it.
    """
    return Memories.of(answer)


@flow_operation("retrieve_tool_memory", reads_only=True)
def guidance(
    answer: FlowResponse,
    /,
    tool_names: Names | None = None,
    *,
    query: str | None = None,
    top_k: int | None = None,
    workspace_id: str | None = None,
) -> GuidanceText:
    """The guidance of tools as text, by name or by what is asked."""
    return GuidanceText.of(answer)
