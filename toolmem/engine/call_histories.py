"""What rules ask of earlier calls, as the records of a store keep it: read with each decision, written where a call
meets such a test, writes files after one did, or counts.

Loaded only where a rule asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from toolmem.engine.guard_records import COUNTS, GuardRecords, Place, Places, RecordChange, Remembered, hashed
from toolmem.errors import RequestError
from toolmem.guard.alternatives import Alternative, Conditions, as_written, read_base_tests
from toolmem.guard.alternatives_in_words import more_than_in_words
from toolmem.guard.call_steps import steps_of
from toolmem.guard.compiled_conditions import MeetsIn
from toolmem.guard.decision import Action, CheckedRule, Finding, Mode, of_rule
from toolmem.guard.histories import (
    UNKNOWN,
    AskedTests,
    ConversationHistory,
    CountedCalls,
    Event,
    History,
    MoreThan,
    digest_of,
    events_of,
)
from toolmem.guard.units import with_units
from toolmem.guard.view import View, view_of


def history_of(known: Remembered, conversation: str) -> History:
    """What is known of the calls before one of this conversation."""
    if not conversation or not known.is_now:
        return UNKNOWN
    return known.history or ConversationHistory()


class CallHistories:
    """The history of one call that was let through so far."""

    def __init__(self, records: GuardRecords, known: Remembered, places: Places, view: View) -> None:
        self._records = records
        self._known = known
        self._places = places
        self._view = view

    async def begin(self, decision: str, *, runs: bool) -> None:
        """Note what the call leaves for those after it. `runs` False: its user is asked first."""
        place = self._places.of_history
        events = self._events() if place is not None else []
        if place is None or not (any(what for what, _ in events) or (events and self._known.history is not None)):
            return

        def change(history: ConversationHistory) -> None:
            history.begin(decision, events, runs=runs)

        await self._records.make(RecordChange(place, ConversationHistory.from_json, ConversationHistory, change))

    def _events(self) -> list[Event]:
        asked = {} if self._known.asked is None else _tests_in(self._known.asked)
        return events_of(steps_of(self._view), asked, MeetsIn(with_units(self._view)))

    async def count(
        self, rules: Sequence[CheckedRule], history: History, decision: str, now: datetime, mode: Mode
    ) -> list[Finding]:
        """Count the call wherever it counts; where there is no room, what stands against it."""
        taken: dict[Place, RecordChange] = {}
        for rule, test, of in self._counted(rules, history, now):
            change = self._taking(rule, test, of, decision, now)
            if change.place in taken:
                continue  # a demand that is kept for several classes of tools counts a call once
            if await self._has_room(change):
                taken[change.place] = change
                continue
            for each in taken.values():
                await self._records.make(_changing(each, lambda held: held.give_back(decision)))
            action: Action = "deny" if rule.effect == "deny" else "ask"
            return [of_rule(rule, action, mode, f"This call is {more_than_in_words(test)}.")]
        return []

    def _counted(
        self, rules: Sequence[CheckedRule], history: History, now: datetime
    ) -> Iterator[tuple[CheckedRule, MoreThan, Conditions]]:
        """Where it counts; one per conversation does not where nobody knows which that is. A damaged rule reminds."""
        for rule in rules:
            try:
                compiled = rule.compiled if rule.needs_history else None
                counted = compiled.counted(self._view, now, history) if compiled is not None else []
            except (RequestError, ValueError, TypeError, RecursionError):  # told with the rules that are broken
                continue
            for test, of in counted:
                if test.per != "conversation" or self._places.conversation:
                    yield rule, test, of

    async def _has_room(self, change: RecordChange) -> bool:
        """One read and one write: who is first of two at once is let through, and the other reads anew."""
        rooms: list[bool] = []

        def taking(held: CountedCalls) -> None:
            change.change(held)
            rooms.append(held.last)

        await self._records.make(_changing(change, taking))
        return rooms[-1]

    def _taking(self, rule: CheckedRule, test: MoreThan, of: Conditions, decision: str, now: datetime) -> RecordChange:
        own = self._places.conversation if test.per == "conversation" else ""
        key = hashed(rule.text, digest_of(as_written(of) | {"more_than": test.as_written()}), own)
        return RecordChange(
            (COUNTS, key), CountedCalls.from_json, CountedCalls, lambda held: held.take(test, now, decision)
        )


def _changing(like: RecordChange, change: Any) -> RecordChange:
    return RecordChange(like.place, like.read, like.empty, change)


def _tests_in(asked: AskedTests) -> dict[str, Alternative]:
    found = {}
    for what, written in asked.tests.items():
        try:
            found[what] = read_base_tests(written)
        except RequestError:  # nobody asks for it in these words
            continue
    return found


def ended(history: ConversationHistory, decision: str, tool_name: str, arguments: Any, *, failed: bool | None) -> None:
    """How a call ended. One that nobody decided on met nothing, and may have written files."""
    if not history.at or (decision and history.end(decision, worked=failed is False)):
        return
    given = arguments if isinstance(arguments, Mapping) else {"": arguments}
    if events_of(steps_of(view_of(tool_name, given)), {}, lambda *_: False):
        history.wrote_files()
