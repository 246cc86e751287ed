"""The tool calls of one session: held against its guard, recorded, and joined to what a turn's messages tell."""

from __future__ import annotations

import json
import uuid
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolmem.guard.decision import GuardDecision
from toolmem.readers.chat import read_arguments
from toolmem.rules.identity import read_tool_name
from toolmem.session.consent import Consent, OnAsk
from toolmem.session.recorder import CallRecorder, DecidedCall, OnDenied

if TYPE_CHECKING:
    from toolmem.models import ToolCallResult
    from toolmem.session.guarded_calls import SessionChecks

_MOST_WAITING = 1000  # decisions that wait to be told what became of them


class SessionCalls:
    """What a session knows of its calls before a turn is over."""

    def __init__(self, checks: SessionChecks, on_denied: OnDenied, on_ask: OnAsk | None) -> None:
        self.checks = checks
        self.recorder = CallRecorder._of(checks, on_denied, on_ask)
        self._consent = Consent(on_ask)
        self._waiting: deque[tuple[str, DecidedCall]] = deque(maxlen=_MOST_WAITING)

    async def check(self, tool_name: str, arguments: Any, force: bool | None) -> GuardDecision:
        """What is to become of a call that the host runs itself, after the user was asked where that is needed."""
        name, given = read_tool_name(tool_name), read_arguments(arguments)
        decision = await self._consent.settled(await self.checks.before(name, given, force=force))
        decided = DecidedCall(name, given, decision, uuid.uuid4().hex)
        self._waiting.append((_key(name, given), decided))
        self.recorder._note(decided)
        return decision

    def joined(self, told: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The calls of a turn, each once: as its messages tell them, with what was recorded or decided of each."""
        recorded = self.recorder.take()
        records = []
        for each in told:
            own = _taken(recorded, each)
            records.append({**each, **own} if own else self._with_id(each))
        return [*records, *recorded]

    def _with_id(self, record: Mapping[str, Any]) -> dict[str, Any]:
        key = _key(record.get("tool_name"), record.get("input"))
        known = next((decided for waiting, decided in self._waiting if waiting == key), None)
        return dict(record) if known is None else {"id": known.call_id, **record}

    async def learn(self, calls: Sequence[ToolCallResult]) -> None:
        """What became of the calls of a turn: each teaches the guard once."""
        decided = {each.call_id: (waiting, each) for waiting, each in self._waiting}
        others = []
        for call in calls:
            if (found := decided.pop(call.id or "", None)) is None:
                others.append(call)
            else:
                self._waiting.remove(found)
                await self.checks.after(found[1].decision, call)
        if others:
            await self.checks.learn(others)


def _taken(recorded: list[dict[str, Any]], told: Mapping[str, Any]) -> dict[str, Any]:
    """Take out the recorded call that a message tells of: the same input, else the same output. Empty: none is."""
    of_tool = [each for each in recorded if each["tool_name"] == told.get("tool_name")]
    key, output = _key("", told.get("input")), told.get("output")
    found = next((each for each in of_tool if _key("", each["input"]) == key), None)
    if found is None and output:
        found = next((each for each in of_tool if each["output"] == output), None)
    if found is None:
        return {}
    recorded.remove(found)
    return found


def _key(tool_name: Any, given: Any) -> str:
    try:
        return json.dumps([tool_name, given], sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):
        return ""
