"""Calls that an agent made for a guest: what others may learn of them.

A session that serves a guest marks its calls (`AgentSession.start(..., guest=...)`, `metadata["guest"]`). Whoever
writes guidance, by counting or with a model, sees the form of their values, and of what was answered whether it
worked, its class and its status.
"""

from __future__ import annotations

from typing import Any

from toolmem.guidance.counted.shown_values import MAX_DEPTH, MAX_ITEMS, MAX_READ, form_of
from toolmem.models import ToolCallResult
from toolmem.readers.error_messages import STATUS

MARK = "guest"  # of a call's metadata


def for_others(call: ToolCallResult) -> ToolCallResult:
    """The call itself, or of a guest's a copy that holds forms alone. What is counted of it stays."""
    if not call.metadata.get(MARK):
        return call
    hidden = {
        "input": _form(call.input),
        "output": _failure(call) if call.failed else "",
        "context": "",
        "summary": "",
        "evaluation": "",
    }
    return call.model_copy(update=hidden)


def _failure(call: ToolCallResult) -> str:
    status = STATUS.search(call.output[:MAX_READ])
    return ": ".join(part for part in (call.error_class, f"status {status.group()[-3:]}" if status else "") if part)


def _form(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Names of parameters and what is on or off stay: a tool's schema tells these."""
    if isinstance(value, dict):
        return {str(name): _form(each, depth - 1) for name, each in value.items()} if depth else {}
    if isinstance(value, list):
        return [_form(each, depth - 1) for each in value[:MAX_ITEMS]] if depth else []
    if value is None or isinstance(value, bool):
        return value
    return f"<{form_of(str(value)[:MAX_READ])}>"
