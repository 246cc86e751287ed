"""A `tools/call` and how it ended, read from its messages; and asking the user about one."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from msgspec import Struct, field

from toolmem.guard.decision import quoted
from toolmem.models.decisions import Decision
from toolmem.text.display import bounded

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_CALL_ID = "claudecode/toolUseId"  # by which Claude Code tells a server the id of the model's call
MAX_OUTPUT = 100_000  # characters that are kept


class ToolCall(Struct, kw_only=True):
    """One call: on its way to the server, at work there, or waiting for the user."""

    message: Mapping[str, Any]
    params: Mapping[str, Any]
    meta: Mapping[str, Any]
    tool: str
    arguments: Any
    record_id: str
    began: float = field(default_factory=time.perf_counter)
    decisions: list[Decision] = []
    agreed: bool | None = None  # the user, when a result asked; None: not asked

    @classmethod
    def read(cls, message: Mapping[str, Any]) -> ToolCall | None:
        """None where no tool is named: the server says what is wrong with the message."""
        params = an_object(message.get("params"))
        name, meta = params.get("name"), an_object(params.get("_meta"))
        if not isinstance(name, str) or not name:
            return None
        known = meta.get(_CALL_ID)
        return cls(
            message=message,
            params=params,
            meta=meta,
            tool=name,
            arguments=params.get("arguments", {}),
            record_id=known if isinstance(known, str) and 0 < len(known) <= 200 else uuid4().hex,
        )

    @property
    def is_stateless(self) -> bool:
        """Of the protocol since 2026-07-28, in which each request says who asks."""
        return PROTOCOL_VERSION in self.meta

    def digest(self) -> str:
        """The same for the same tool with the same arguments, however they are written."""
        text = json.dumps([self.tool, self.arguments], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


class CallOutcome(Struct, frozen=True):
    """How a call ended. `success` None: unknown."""

    ending: str  # answered, tool_error, protocol_error, cancelled or no_answer
    success: bool | None = None
    output: str = ""

    @classmethod
    def read(cls, response: Mapping[str, Any]) -> CallOutcome | None:
        """None where it goes on: the user is asked first, or a task begins."""
        if "error" in response:
            error = an_object(response["error"])
            told = f"error {error.get('code')}: {error.get('message', '')}"
            return cls("protocol_error", False, bounded(told, MAX_OUTPUT))
        result = an_object(response.get("result"))
        kind = result.get("resultType", "complete")
        if kind != "complete" or ("task" in result and "content" not in result):
            return None
        failed = result.get("isError") is True
        content = result.get("content")
        blocks = map(an_object, content if isinstance(content, list) else [])
        output = "\n".join(map(_block, blocks)) or structured_text(result)
        ending = "tool_error" if failed else "answered"
        return cls(ending, not failed, bounded(output, MAX_OUTPUT))


CANCELLED = CallOutcome("cancelled")
NO_ANSWER = CallOutcome("no_answer")


def structured_text(result: Mapping[str, Any]) -> str:
    """The structured content as JSON, where no text stands beside it; else ""."""
    if result.get("content") or "structuredContent" not in result:
        return ""
    return json.dumps(result["structuredContent"], ensure_ascii=False)


def _block(block: Mapping[str, Any]) -> str:
    for text in (block.get("text"), an_object(block.get("resource")).get("text")):
        if isinstance(text, str):
            return text
    return f"[{str(block.get('type'))[:40]} {str(block.get('mimeType', ''))[:200]}]"


def can_elicit(capabilities: Any) -> bool:
    """Whether a client with these capabilities shows its user a form."""
    told = an_object(capabilities).get("elicitation")
    return isinstance(told, Mapping) and (not told or "form" in told)


def an_object(value: Any) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


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
    told = an_object(result)
    return told.get("action") == "accept" and an_object(told.get("content")).get("run") is True


class Consents:
    """Calls of which a result asked. A state holds once, for one call, for ten minutes."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[str, float]] = {}  # by state: the call's digest, until when

    def ask(self, call: ToolCall, decision: Decision) -> dict[str, Any]:
        """The result that asks."""
        state = f"{PREFIX}{secrets.token_urlsafe(24)}"
        self._put(state, call)
        question = {"method": "elicitation/create", "params": form(call, decision)}
        asked = {"inputRequests": {KEY: question}, "requestState": state}
        return {"resultType": "input_required", **asked}

    def goes_on(self, call: ToolCall, result: Mapping[str, Any]) -> None:
        """The next round of a call that the user agreed to needs no second consent."""
        if isinstance(state := result.get("requestState"), str):
            self._put(state, call)

    def answer(self, call: ToolCall) -> bool | None:
        """Whether the user agreed to a call that comes again; None: not asked.

        Raises ValueError where the state is not of this call, too old, or was used before.
        """
        state = call.params.get("requestState")
        if not isinstance(state, str):
            return None
        digest, until = self._open.pop(state, ("", 0.0))
        is_good = digest == call.digest() and until > time.monotonic()
        if not state.startswith(PREFIX):
            return True if is_good else None
        if not is_good:
            raise ValueError("the requestState is not of this call, too old, or was used before")
        return agrees(an_object(call.params.get("inputResponses")).get(KEY))

    def _put(self, state: str, call: ToolCall) -> None:
        self._open[state] = call.digest(), time.monotonic() + LASTS
        while len(self._open) > MAX_OPEN:
            del self._open[next(iter(self._open))]
