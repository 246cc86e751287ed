"""AdviseToolCallOp: a planned or failed call in, lines on what worked before out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolmem.errors import RequestError, StoreUntrusted
from toolmem.flow.op import Context, Op
from toolmem.formats.call_records import MAX_ID, MAX_TOOL_NAME
from toolmem.ops.check_tool_call import text_of_request
from toolmem.readers.written_arguments import opened_arguments

if TYPE_CHECKING:
    from toolmem.models import Claim
    from toolmem.protocols import Services

MAX_ERROR = 100_000  # characters of an error that are read
MAX_BUDGET = 4_000
_ASKED = ("input", "error", "conversation_id", "context_key", "budget_tokens")


class AdviseToolCallOp(Op):
    """What is known for a call: what then worked after its error, or that its arguments are such as failed.

    The answer is the text, a line each, "" where nothing is known; `metadata.lines` holds the lines with their counts
    and call ids. Nothing is run, and no model is asked.
    """

    reads = ("workspace_id", "tool_name")
    optional = _ASKED
    leaves = ("lines",)

    async def execute(self, context: Context) -> None:
        asked = {key: context[key] for key in ("tool_name", *_ASKED) if key in context}
        lines = await advice_on(context.services, self, context.workspace, asked)
        context["lines"] = lines
        context.response.answer = "\n".join(each.text for each in lines)
        context.response.metadata["lines"] = [line_of(each) for each in lines]


async def advice_on(services: Services, op: Op, workspace: str, asked: Mapping[str, Any]) -> list[Claim]:
    """The lines for a call. `asked`: as the request has it. Raises RequestError, StoreError, StoreUntrusted."""
    from toolmem.engine.advising import BUDGET, advice_from

    tool_name = text_of_request("tool_name", asked.get("tool_name"), MAX_TOOL_NAME)
    if not tool_name:
        raise RequestError("tool_name: blank; expected the name of the tool", field="tool_name")
    error = asked.get("error")
    if error is not None and not isinstance(error, str):
        raise RequestError(f"error: expected text, got {type(error).__name__}", field="error")
    given, budget = asked.get("input"), asked.get("budget_tokens", BUDGET)
    if not isinstance(budget, int) or not 1 <= budget <= MAX_BUDGET:
        raise RequestError(f"budget_tokens: expected 1 to {MAX_BUDGET:,}, got {budget!r}", field="budget_tokens")
    store = await services.store(op)
    if reason := services.untrusted(op.settings.vector_store):
        raise StoreUntrusted(reason)
    return await advice_from(
        store,
        workspace,
        tool_name,
        {} if given is None else opened_arguments(given),
        clock=services.clock,
        error=(error or "")[:MAX_ERROR],
        conversation_id=text_of_request("conversation_id", asked.get("conversation_id"), MAX_ID),
        context=text_of_request("context_key", asked.get("context_key"), MAX_ID),
        context_key=services.settings.guidance.context_key,
        budget=budget,
    )


def line_of(claim: Claim) -> dict[str, Any]:
    """A line as it travels."""
    return {**claim.model_dump(include={"kind", "text", "k", "n"}), "call_ids": list(claim.call_ids)}
