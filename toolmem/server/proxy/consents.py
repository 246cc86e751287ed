"""Asking the user about a call, through the client: by a request to it, or by a result that asks for input."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Literal

from toolmem.guard.decision import GuardDecision, quoted
from toolmem.server.proxy.called import ProxiedCall

Answer = Literal["agreed", "refused", "forged", ""]

KEY = "toolmem"  # of our request among those of an `input_required` result
_PREFIX = "toolmem.1."
_LASTS = 600.0  # seconds that the user may take
_MOST = 10_000  # consents and used states that are remembered
_SCHEMA = {
    "type": "object",
    "properties": {
        "run": {"type": "boolean", "title": "Run this call", "description": "Yes: it runs this once. No: it does not."}
    },
    "required": ["run"],
}


def question(call: ProxiedCall, decision: GuardDecision, *, shows_arguments: bool) -> dict[str, Any]:
    """The form that the user is asked to fill in; what the agent wrote stands last."""
    why = " ".join(each.text for each in decision.sources if each.effective == "ask")
    what = f"Call: {quoted(call.tool)}"
    if shows_arguments:
        what += f" {quoted(json.dumps(call.arguments, ensure_ascii=False))}"
    return {"message": f"toolmem: may this call run? {why}\n{what}", "requestedSchema": _SCHEMA}


def agrees(result: Any) -> bool:
    """Did the user agree? Only a filled-in yes is one."""
    if not isinstance(result, Mapping) or result.get("action") != "accept":
        return False
    content = result.get("content")
    return isinstance(content, Mapping) and content.get("run") is True


class Consents:
    """Calls that the user was asked about by an `input_required` result, and what they answered.

    The client brings the state back, so that it is signed: it holds for this process, this call, ten minutes and once.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._used: OrderedDict[str, None] = OrderedDict()
        self._agreed: OrderedDict[tuple[str, str], float] = OrderedDict()  # calls that go on asking, and their state

    def asks(self, call: ProxiedCall, form: dict[str, Any]) -> dict[str, Any]:
        """The result that asks."""
        told = json.dumps([call.digest(), time.time() + _LASTS, secrets.token_hex(8)]).encode()
        body = base64.urlsafe_b64encode(told).decode()
        return {
            "resultType": "input_required",
            "inputRequests": {KEY: {"method": "elicitation/create", "params": {"mode": "form", **form}}},
            "requestState": f"{_PREFIX}{body}.{self._signed(body)}",
        }

    def answer(self, call: ProxiedCall) -> Answer:
        """What a call says that was sent again; "" where it is none of ours."""
        state = call.params.get("requestState")
        if not isinstance(state, str) or not state.startswith(_PREFIX):
            return ""
        body, _, signature = state.removeprefix(_PREFIX).partition(".")
        if not hmac.compare_digest(signature.encode(), self._signed(body).encode()) or not self._is_fresh(body, call):
            return "forged"
        responses = call.params.get("inputResponses")
        return "agreed" if isinstance(responses, Mapping) and agrees(responses.get(KEY)) else "refused"

    def _is_fresh(self, body: str, call: ProxiedCall) -> bool:
        try:
            digest, until, nonce = json.loads(base64.urlsafe_b64decode(body))
        except (ValueError, binascii.Error):
            return False
        if digest != call.digest() or time.time() > until or nonce in self._used:
            return False
        _remember(self._used, nonce, None)
        return True

    def _signed(self, body: str) -> str:
        return hmac.new(self._key, body.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def go_on(self, call: ProxiedCall, result: Mapping[str, Any]) -> None:
        """The server itself asks for input on a call that the user agreed to: its next round needs no consent."""
        _remember(self._agreed, _round(call, result), time.monotonic() + _LASTS)

    def goes_on(self, call: ProxiedCall) -> bool:
        """Is this the next round of such a call?"""
        if not {"requestState", "inputResponses"} & set(call.params):
            return False
        return self._agreed.pop(_round(call, call.params), 0.0) > time.monotonic()


def _round(call: ProxiedCall, told: Mapping[str, Any]) -> tuple[str, str]:
    return call.digest(), str(told.get("requestState", ""))


def _remember(known: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    known[key] = value
    if len(known) > _MOST:
        known.popitem(last=False)
