"""Asking the user about a call, by a form that the client shows."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from toolmem.guard.decision import quoted
from toolmem.models.decisions import Decision
from toolmem.server.proxy.call import ToolCall

KEY = "toolmem"  # of our form in an `input_required` result
PREFIX = "toolmem-ask-"  # of ids and states that are ours
LASTS = 600.0  # seconds that the user may take
MAX_OPEN = 1_000
_RUN = {"type": "boolean", "title": "Run this call", "description": "Yes: it runs, this once."}
_SCHEMA = {"type": "object", "properties": {"run": _RUN}, "required": ["run"]}


def form(call: ToolCall, decision: Decision) -> dict[str, Any]:
    """What the user is shown; what the agent wrote stands last."""
    why = decision.reason.partition(". ")[2]
    what = f"{quoted(call.tool)} {quoted(json.dumps(call.arguments, ensure_ascii=False))}"
    told = f"toolmem: may this call run? {why}\nCall: {what}"
    return {"mode": "form", "message": told, "requestedSchema": _SCHEMA}


def agrees(result: Any) -> bool:
    """Only a form that was accepted with a yes is one."""
    if not isinstance(result, Mapping) or result.get("action") != "accept":
        return False
    content = result.get("content")
    return isinstance(content, Mapping) and content.get("run") is True


class _Open(Struct):
    digest: str  # of the call
    until: float
    agreed: bool  # the server itself asks on, about a call that the user agreed to


class Consents:
    """Calls of which a result asked. A state holds once, for one call, for ten minutes."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}

    def ask(self, call: ToolCall, decision: Decision) -> dict[str, Any]:
        """The result that asks."""
        state = f"{PREFIX}{secrets.token_urlsafe(24)}"
        self._put(state, call, agreed=False)
        question = {"method": "elicitation/create", "params": form(call, decision)}
        return {
            "resultType": "input_required",
            "inputRequests": {KEY: question},
            "requestState": state,
        }

    def goes_on(self, call: ToolCall, result: Mapping[str, Any]) -> None:
        """The next round of a call that the user agreed to needs no second consent."""
        if isinstance(state := result.get("requestState"), str):
            self._put(state, call, agreed=True)

    def answer(self, call: ToolCall) -> bool | None:
        """Whether the user agreed to a call that comes again; None: not asked.

        Raises ValueError where the state is not of this call, too old, or was used before.
        """
        state = call.params.get("requestState")
        if not isinstance(state, str):
            return None
        known = self._open.pop(state, None)
        is_good = (
            known is not None and known.digest == call.digest() and known.until > time.monotonic()
        )
        if not state.startswith(PREFIX):
            return True if is_good else None
        if not is_good:
            raise ValueError("the requestState is not of this call, too old, or was used before")
        responses = call.params.get("inputResponses")
        return isinstance(responses, Mapping) and agrees(responses.get(KEY))

    def _put(self, state: str, call: ToolCall, *, agreed: bool) -> None:
        self._open[state] = _Open(call.digest(), time.monotonic() + LASTS, agreed)
        while len(self._open) > MAX_OPEN:
            del self._open[next(iter(self._open))]
