"""Replay recorded calls and report what the guard would have decided about each.

The guard decides over an empty store in memory, at the time of each call. The calls of all
conversations are replayed in the order of time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from msgspec import Struct

from toolmem.config.sections import GuardSection
from toolmem.guard.guard import Guard
from toolmem.models.calls import SystemClock, ToolCallResult
from toolmem.models.records import Record
from toolmem.store.sqlite import SqliteStore
from toolmem.text.stopped_calls import was_stopped

WORKSPACE = "replay"
ENFORCE = GuardSection(rules="enforce", repeats="enforce", names="enforce", schema="off")


class Flag(Struct):
    """One flagged call. `index`: its position in the recording, from 0."""

    index: int
    source: str  # rule, repeat, known_name
    action: str
    failed: bool | None
    rule_id: str = ""
    call_ids: tuple[str, ...] = ()


class SourceFigures(Struct):
    """How many calls one source flagged; `wrong`: how many of these calls worked."""

    flagged: int
    wrong: int
    recall: float | None  # share of all failures that was flagged
    precision: float | None


class Replay(Struct, kw_only=True):
    """The figures of a replay, and the flagged calls."""

    calls: int = 0
    failures: int = 0
    flags: list[Flag] = []

    @property
    def sources(self) -> dict[str, SourceFigures]:
        """Return the figures of each kind of source."""
        return {source: self._figures(source) for source in ("rule", "repeat", "known_name")}

    def _figures(self, source: str) -> SourceFigures:
        flagged = {flag.index: flag.failed for flag in self.flags if flag.source == source}
        outcomes = list(flagged.values())
        hits = outcomes.count(True)
        recall = hits / self.failures if self.failures else None
        precision = hits / len(flagged) if flagged else None
        return SourceFigures(len(flagged), outcomes.count(False), recall, precision)


class _Clock(SystemClock):
    """A clock that shows the time of the call that is being replayed."""

    time = datetime.min

    def now(self) -> datetime:
        return self.time


def replay(
    calls: Iterable[ToolCallResult],
    rules: Iterable[Record] = (),
    progress: Callable[[int], None] = lambda done: None,
) -> Replay:
    """Find what the guard would have decided on recorded calls, by time. No tool runs.

    `rules`: records of rules, as a store keeps them. `progress`: gets the number of calls done.
    """
    done = Replay()
    clock = _Clock()
    ordered = sorted(enumerate(calls), key=lambda each: (each[1].create_time, each[0]))
    with SqliteStore(":memory:") as store:
        for rule in rules:
            store.put(WORKSPACE, rule.namespace, rule.key, rule.read(Any))
        guard = Guard(store, WORKSPACE, clock, ENFORCE)
        for number, (index, call) in enumerate(ordered, 1):
            if was_stopped(call.output):
                continue
            clock.time = call.create_time
            failed = None if call.success is None else not call.success
            done.calls += 1
            done.failures += failed is True
            name = call.conversation_id or f"\0{index}"
            decision = guard.before(call.tool_name, call.input, conversation_id=name)
            done.flags += [
                Flag(index, each.kind, decision.action, failed, each.rule_id, each.call_ids)
                for each in decision.sources
            ]
            guard.after(decision, call.input, output=call.output, failed=failed, call_id=str(index))
            progress(number)
    return done
