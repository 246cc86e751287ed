"""Read a `tools/call` and its outcome, and ask the user about a call by elicitation."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from msgspec import Struct, field

from toolmem.guard.decision import quoted
from toolmem.guard.repeats import call_digest
from toolmem.guard.stores import MAX_OUTPUT
from toolmem.models.decisions import Decision
from toolmem.text.display import bounded
from toolmem.text.forms import as_object

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_CALL_ID = "claudecode/toolUseId"  # Claude Code: the id of the model's call


class ToolCall(Struct, kw_only=True):
    """A `tools/call` request that waits for the user or runs at the server."""

    message: Mapping[str, Any]
    params: Mapping[str, Any]
    meta: Mapping[str, Any]
    tool: str
    arguments: Any
    record_id: str
    began: float = field(default_factory=time.perf_counter)  # seconds
    decisions: list[Decision] = []
    agreed: bool | None = None  # the user's answer to a result that asked; None: not asked

    @classmethod
    def read(cls, message: Mapping[str, Any]) -> ToolCall | None:
        """Read a `tools/call` message. None if it names no tool; the server then refuses it."""
        params = as_object(message.get("params"))
        name = params.get("name")
        meta = as_object(params.get("_meta"))
        if not isinstance(name, str) or not name:
            return None
        call_id = meta.get(_CALL_ID)
        is_usable = isinstance(call_id, str) and 0 < len(call_id) <= 200
        return cls(
            message=message,
            params=params,
            meta=meta,
            tool=name,
            arguments=params.get("arguments", {}),
            record_id=str(call_id) if is_usable else uuid4().hex,
        )

    @property
    def is_stateless(self) -> bool:
        """Whether the protocol is of 2026-07-28 or later, with its version in each request."""
        return PROTOCOL_VERSION in self.meta


class CallOutcome(Struct, frozen=True):
    """How a call ended. `success` None: unknown."""

    ending: str  # answered, tool_error, protocol_error, cancelled or no_answer
    success: bool | None = None
    output: str = ""

    @classmethod
    def read(cls, response: Mapping[str, Any]) -> CallOutcome | None:
        """Read how a call ended; None if the server asks the user first, or began a task."""
        if "error" in response:
            error = as_object(response["error"])
            text = f"error {error.get('code')}: {error.get('message', '')}"
            return cls("protocol_error", False, bounded(text, MAX_OUTPUT))
        result = as_object(response.get("result"))
        kind = result.get("resultType", "complete")
        if kind != "complete" or ("task" in result and "content" not in result):
            return None
        failed = result.get("isError") is True
        content = result.get("content")
        blocks = map(as_object, content if isinstance(content, list) else [])
        output = "\n".join(map(_block_text, blocks)) or structured_text(result)
        ending = "tool_error" if failed else "answered"
        return cls(ending, not failed, bounded(output, MAX_OUTPUT))


CANCELLED = CallOutcome("cancelled")
NO_ANSWER = CallOutcome("no_answer")


def structured_text(result: Mapping[str, Any]) -> str:
    """The structured content as JSON, for a result without other content; else ""."""
    if result.get("content") or "structuredContent" not in result:
        return ""
    return json.dumps(result["structuredContent"], ensure_ascii=False)


def _block_text(block: Mapping[str, Any]) -> str:
    for text in (block.get("text"), as_object(block.get("resource")).get("text")):
        if isinstance(text, str):
            return text
    return f"[{str(block.get('type'))[:40]} {str(block.get('mimeType', ''))[:200]}]"


def can_elicit(capabilities: Any) -> bool:
    """Whether a client with these capabilities can show its user a form."""
    modes = as_object(capabilities).get("elicitation")
    return isinstance(modes, Mapping) and (not modes or "form" in modes)


FORM_KEY = "toolmem"  # of our form in an `input_required` result
ASK_PREFIX = "toolmem-ask-"  # of our request ids and states
CONSENT_SECONDS = 600.0  # in which the user can answer
MAX_OPEN = 1_000  # unanswered questions
_RUN = {"type": "boolean", "title": "Run this call", "description": "Yes: it runs, this once."}
_SCHEMA = {"type": "object", "properties": {"run": _RUN}, "required": ["run"]}


def form(call: ToolCall, decision: Decision) -> dict[str, Any]:
    """The params of `elicitation/create` that ask the user about a call, its arguments last."""
    why = decision.reason.partition(". ")[2]
    what = f"{quoted(call.tool)} {quoted(json.dumps(call.arguments, ensure_ascii=False))}"
    message = f"toolmem: may this call run? {why}\nCall: {what}"
    return {"mode": "form", "message": message, "requestedSchema": _SCHEMA}


def agrees(result: Any) -> bool:
    """Whether the user accepted the form and answered yes."""
    answer = as_object(result)
    return answer.get("action") == "accept" and as_object(answer.get("content")).get("run") is True


class Consents:
    """Questions to the user, by `requestState`. Each may be answered once, within ten minutes."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[str, float]] = {}  # by state: the call's digest, its end

    def ask(self, call: ToolCall, decision: Decision) -> dict[str, Any]:
        """Make the `input_required` result by which the client asks the user about a call."""
        state = f"{ASK_PREFIX}{secrets.token_urlsafe(24)}"
        self._put(state, call)
        question = {"method": "elicitation/create", "params": form(call, decision)}
        asked = {"inputRequests": {FORM_KEY: question}, "requestState": state}
        return {"resultType": "input_required", **asked}

    def renew(self, call: ToolCall, result: Mapping[str, Any]) -> None:
        """Remember the user's yes: the server's `result` asks for more, so the call comes again."""
        if isinstance(state := result.get("requestState"), str):
            self._put(state, call)

    def answer(self, call: ToolCall) -> bool | None:
        """Whether the user agreed to a call that the client sends again; None: nobody asked.

        Raises ValueError if the state is of another call, too old, or was used before.
        """
        state = call.params.get("requestState")
        if not isinstance(state, str):
            return None
        digest, until = self._open.pop(state, ("", 0.0))
        is_valid = digest == call_digest(call.tool, call.arguments) and until > time.monotonic()
        if not state.startswith(ASK_PREFIX):
            return True if is_valid else None
        if not is_valid:
            raise ValueError("the requestState is not of this call, too old, or was used before")
        return agrees(as_object(call.params.get("inputResponses")).get(FORM_KEY))

    def _put(self, state: str, call: ToolCall) -> None:
        digest = call_digest(call.tool, call.arguments)
        self._open[state] = digest, time.monotonic() + CONSENT_SECONDS
        while len(self._open) > MAX_OPEN:
            del self._open[next(iter(self._open))]
