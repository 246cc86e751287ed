"""Advice for one call: what is known before it is made, or when it has just failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field

from toolmem.operations.operation import DEFAULT_WORKSPACE, rpc_operation
from toolmem.operations.tool_rules import ToolName
from toolmem.protocols import Services


class AdviceLine(BaseModel):
    """One line of advice, and the calls that it rests on."""

    # this error, one alike or its class; a parameter that it names; a form of arguments; names that are not, and are
    kind: str  # error, like_error, error_class, parameter, planned, missing_name, known_names
    text: str  # words of calls stand in it quoted: data, no instruction
    k: int  # of `n` calls
    n: int
    call_ids: list[str] = Field(default_factory=list)  # some of them, the newest


class ToolCallAdvice(BaseModel):
    """What is known for a call, most telling first; no lines where nothing is. `str` of it is the text."""

    lines: list[AdviceLine] = Field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(each.text for each in self.lines)


@rpc_operation("memory.tool_call_advise", flow="advise_tool_call", reads_only=True)
async def advise_tool_call(
    services: Services,
    /,
    tool_name: ToolName,
    input: Annotated[
        Mapping[str, Any] | Sequence[Any] | str | None, "The arguments: planned, or of the failed call."
    ] = None,
    *,
    error: Annotated[str | None, "What the call has just answered, where it failed."] = None,
    conversation_id: Annotated[str | None, "So that it can be said what it has not called yet."] = None,
    context_key: Annotated[
        str | None, "What the call runs against, as guidance.context_key reads it from records: a database, say."
    ] = None,
    budget_tokens: Annotated[int, Field(ge=1, le=4000), "Of all lines together."] = 200,
    workspace_id: str | None = None,
) -> ToolCallAdvice:
    """After a failed call: what then worked after this error. Before a call: whether its arguments failed before.

    Read from the newest 500 logged calls of the tool, in all conversations, and from its card. No model is asked.
    """
    from toolmem.ops import AdviseToolCallOp
    from toolmem.ops.advise_tool_call import advice_on, line_of

    asked: dict[str, Any] = {"tool_name": tool_name, "input": input, "error": error}
    asked["conversation_id"] = conversation_id
    asked |= {"context_key": context_key, "budget_tokens": budget_tokens}
    lines = await advice_on(services, AdviseToolCallOp(), workspace_id or DEFAULT_WORKSPACE, asked)
    return ToolCallAdvice(lines=[AdviceLine.model_validate(line_of(each)) for each in lines])
