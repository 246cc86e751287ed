"""The tool calls of one session: held against its guard, recorded, and joined to what a turn's messages tell."""

from __future__ import annotations

import json
import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from toolmem.errors import RequestError, ToolMemError
from toolmem.formats.call_records import read_records
from toolmem.guard.decision import GuardDecision
from toolmem.guidance.guests import MARK
from toolmem.models import ToolSchema
from toolmem.readers.written_arguments import read_arguments
from toolmem.rules.identity import read_tool_name
from toolmem.rules.turns import Tools, ToolUse, tool_names
from toolmem.session.consent import Consent, OnAsk
from toolmem.session.demand_tools import NAMES
from toolmem.session.recorder import CallRecorder, DecidedCall, OnDenied
from toolmem.session.tool_functions import ToolFunction
from toolmem.store.masked import masked_output

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp
    from toolmem.models import ToolCallResult
    from toolmem.protocols import MemoryStore
    from toolmem.rules.effectiveness import ToolEffectivenessTracker
    from toolmem.session.guarded_calls import SessionChecks

log = logging.getLogger("toolmem.session")

P = ParamSpec("P")
R = TypeVar("R")
_MOST_WAITING = 1000  # decisions that wait to be told what became of them


class SessionCalls:
    """What a session knows of its calls before a turn is over."""

    def __init__(
        self,
        app: ToolMemApp,
        session_id: str,
        checks: SessionChecks,
        on_denied: OnDenied,
        on_ask: OnAsk | None,
        guest: str = "",
    ) -> None:
        self._app = app
        self._session_id = session_id
        self._guest = guest
        self._functions: dict[str, ToolSchema] = {}  # as far as their signatures declare them
        self.checks = checks
        self.recorder = CallRecorder._of(checks, on_denied, on_ask)
        self._consent = Consent(on_ask, hears_user=True)
        self._waiting: deque[tuple[str, DecidedCall]] = deque(maxlen=_MOST_WAITING)

    def tool(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function, and remember what its signature says of it."""
        decorated = self.recorder.tool(function)
        plain = function.__func__ if isinstance(function, classmethod | staticmethod) else function
        schema = ToolFunction.of(plain).schema
        self._functions[schema.name] = schema
        return decorated

    def catalogue(self, tools: Tools) -> tuple[str | ToolSchema, ...]:
        """The session's tools, by which a sentence is read; a decorated function stands for its bare name."""
        declared = [self._functions.get(each, each) if isinstance(each, str) else each for each in tools]
        names = tool_names(tools)
        return (*declared, *(schema for name, schema in self._functions.items() if name not in names))

    async def check(self, tool_name: str, arguments: Any, force: bool | None) -> GuardDecision:
        """What is to become of a call that the host runs itself, after the user was asked where that is needed."""
        if tool_name in NAMES:  # nothing stops the noting of a demand
            return GuardDecision("", "allow")
        name, given = read_tool_name(tool_name), read_arguments(arguments)
        decision = await self._consent.settled(await self.checks.before(name, given, force=force))
        decided = DecidedCall(name, given, decision, uuid.uuid4().hex)
        self._waiting.append((_key(name, given), decided))
        self.recorder._note(decided)
        return decision

    def read(self, told: Iterable[Mapping[str, Any]], said: str, turn: int) -> Sequence[tuple[int, ToolCallResult]]:
        """The calls of a turn, each once and with its conversation: as messages tell them and as they were recorded.

        Raises RequestError where one cannot be read; what was recorded is kept then.
        """
        recorded = self.recorder.take()
        records = self._joined([each for each in told if each.get("tool_name") not in NAMES], list(recorded))
        settings = self._app.settings
        named = [self._named(each, number, said, turn) for number, each in enumerate(records)]
        read = read_records(named, clock=self._app.clock, time_zone=settings.time_zone)
        if read.failures:
            self.recorder._give_back(recorded)
            raise RequestError(f"turn: call {read.failures[0].index}: {read.failures[0].error}", field="turn")
        return read.calls

    def _joined(self, told: Iterable[Mapping[str, Any]], recorded: list[dict[str, Any]]) -> list[dict[str, Any]]:
        records = []
        for each in told:
            own = _taken(recorded, each)
            records.append({**each, **own} if own else self._with_id(each))
        return [*records, *recorded]

    def _named(self, record: Mapping[str, Any], number: int, said: str, turn: int) -> dict[str, Any]:
        given = {"context": said, "id": f"{self._session_id}-{turn}-{number}", **record}
        if self._guest and isinstance(given.get("metadata") or {}, Mapping):
            given["metadata"] = {**(given.get("metadata") or {}), MARK: self._guest}
        return given if _names_conversation(record) else {**given, "conversation_id": self._session_id}

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


def _names_conversation(record: Mapping[str, Any]) -> bool:
    metadata = record.get("metadata")
    named = metadata.get("conversation_id") if isinstance(metadata, Mapping) else None
    return record.get("conversation_id") not in (None, "") or named not in (None, "")


async def count_uses(tracker: ToolEffectivenessTracker, store: MemoryStore, uses: Sequence[ToolUse]) -> None:
    """How often tools worked, without the secrets that their outputs hold. A store that fails is logged."""
    try:
        masked = [await masked_output(store, use.arguments, use.output_summary) for use in uses]
        await tracker.record([replace(use, output_summary=text) for use, text in zip(uses, masked, strict=True)])
    except ToolMemError as error:
        log.error("tool_effectiveness was not counted: %s", error)
