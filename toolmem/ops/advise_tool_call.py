"""AdviseToolCallOp: what worked after errors like that of a failed call."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from toolmem.errors import RequestError
from toolmem.flow.op import Context, Op, register
from toolmem.formats.chat import read_arguments
from toolmem.guard.shown_guidance import permitted_lines
from toolmem.guidance.advice import BUDGET, advice_lines, known_of
from toolmem.guidance.shown import require_trusted, within
from toolmem.models.calls import ToolCallResult
from toolmem.text.error_lines import error_class_of, error_line

MAX_ERROR = 100_000  # characters of an error that are read


@register
class AdviseToolCallOp(Op):
    """Return lines that say what worked earlier after an error like the `error` of a call.

    No model is asked, and nothing is stored. The answer is "" if nothing is known or `error` is
    missing.
    """

    class Params(Struct, frozen=True):
        budget_tokens: Annotated[int, Meta(ge=1)] = BUDGET  # of all lines together

    reads = ("workspace", "tool_name")
    optional = ("input", "error", "conversation_id", "budget_tokens")
    params: Params

    def run(self, context: Context) -> None:
        budget = context.get("budget_tokens", self.params.budget_tokens)
        if budget < 1:
            raise RequestError("budget_tokens: expected at least 1", field="budget_tokens")
        error = (context.get("error") or "")[:MAX_ERROR]
        given: Any = read_arguments(context.get("input"))
        call = ToolCallResult(
            tool_name=context["tool_name"],
            create_time=context.services.clock.now(),
            input=given if isinstance(given, dict | list | str) else {},
            output=error,
            success=False,
            error_class=error_class_of(error_line(error)),
            metadata={"conversation_id": context.get("conversation_id") or ""},
        )
        store = context.services.store(self.settings)
        require_trusted(store)
        known = known_of(store, context.workspace, call.tool_name)
        language = context.language
        found = advice_lines(known, call, language) if error else []
        guards = [context.services.guard(context.workspace)]
        permitted = permitted_lines(found, call.tool_name, guards, language, call.conversation_id)
        lines = within(permitted, budget)
        context.response.answer = "\n".join(line.text for line in lines)
        context.response.metadata["lines"] = [
            {name: shown[name] for name in ("kind", "text", "k", "n", "call_ids") if name in shown}
            for shown in map(msgspec.to_builtins, lines)
        ]
