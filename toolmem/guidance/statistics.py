"""Figures over the calls of one tool, and those of tools that did not change since they were last counted.

Unknown values are left out, never counted as zero.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from toolmem.models import CallFigures, LifetimeCounters, ToolCallResult, ToolRecord, ToolStatistics
from toolmem.protocols import MemoryStore
from toolmem.readers.plain_text import counted
from toolmem.stored import StoredMemory


def statistics_of(calls: Sequence[ToolCallResult] | Sequence[CallFigures]) -> ToolStatistics:
    """Statistics of `calls`.

    `success_rate` is the share of calls that did not fail among those of which it is known: the recorded flag where
    there is one, else the judge's `execution_failed`. Averages run over the calls that have the value: seconds for
    `avg_time_cost`, tokens for `avg_token_cost`. `judges` lists who scored, in order of first appearance; more than
    one means that `avg_score` mixes their scores.
    """
    failed = [call.failed for call in calls]
    scored = [call for call in calls if call.score is not None]
    failures, unknown = failed.count(True), failed.count(None)
    known = len(calls) - unknown
    return ToolStatistics(
        calls=len(calls),
        failures=failures,
        unknown=unknown,
        success_rate=(known - failures) / known if known else None,
        avg_score=_mean(call.score for call in calls),
        avg_time_cost=_mean(call.time_cost for call in calls),
        avg_token_cost=_mean(call.token_cost for call in calls),
        unscored=len(calls) - len(scored),
        judges=list(dict.fromkeys(str(call.judge) for call in scored if call.judge)),
    )


def lifetime_statistics(counters: LifetimeCounters) -> ToolStatistics:
    """Statistics of every call that a tool ever had, those that the window dropped since among them.

    `judges` is empty: the counters do not keep who judged.
    """
    known = counters.successes + counters.failures
    return ToolStatistics(
        calls=counters.calls,
        failures=counters.failures,
        unknown=counters.calls - known,
        success_rate=counters.successes / known if known else None,
        avg_score=counters.score_sum / counters.judged if counters.judged else None,
        avg_time_cost=counters.time_sum / counters.time_calls if counters.time_calls else None,
        avg_token_cost=counters.token_sum / counters.token_calls if counters.token_calls else None,
        unscored=counters.calls - counters.judged,
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


class Measured(NamedTuple):
    """What the kept calls of a tool come to. Shared between requests: copy what is handed out."""

    statistics: ToolStatistics
    window: Mapping[str, Any]  # as in `tool_memory`
    lifetime: Mapping[str, Any]  # the same


def measured(stored: StoredMemory) -> Measured:
    """Of the calls that were handed over."""
    calls: Sequence[CallFigures] | Sequence[ToolCallResult] = stored.figures or stored.calls
    statistics = statistics_of(calls)
    return Measured(statistics, _window(stored.record, calls), _lifetime(stored.record, statistics))


def _window(record: ToolRecord, calls: Sequence[CallFigures] | Sequence[ToolCallResult]) -> dict[str, Any]:
    return {
        "first_seq": calls[0].seq if calls else None,
        "last_seq": calls[-1].seq if calls else None,
        "calls": len(calls),
        "kept": record.last_seq - record.first_seq + 1,
    }


_RATES = ("unknown", "success_rate", "avg_score", "avg_time_cost", "avg_token_cost")


def _lifetime(record: ToolRecord, window: ToolStatistics) -> dict[str, Any]:
    rates = lifetime_statistics(record.counters)
    told = record.counters.model_dump(mode="json") | {name: getattr(rates, name) for name in _RATES}
    outside = record.counters.judged - (window.calls - window.unscored)
    if outside > 0:
        calls = counted(outside, "call")
        told["judges_note"] = f"avg_score counts {calls} outside the window; who scored those is not kept"
    return told


# ---------------------------------------------------------------- figures of tools that did not change


class KnownFigures:
    """Figures of tools that were read before, so that a tool without new commits is not counted again.

    It remembers the `size` tools of one store that were asked for last. Usable from any thread.
    """

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._known: OrderedDict[tuple[str, str], tuple[Hashable, Measured]] = OrderedDict()
        self._lock = threading.Lock()

    async def memories(
        self, store: MemoryStore, workspace: str, tools: Sequence[str]
    ) -> list[tuple[StoredMemory, Measured]]:
        """As the store has them now, without calls, and what all their kept calls come to."""
        known = self.known(workspace, tools)
        read = await store.memories(workspace, tools, known={tool: state for tool, (state, _) in known.items()})
        found = []
        for stored in read:
            tool = stored.record.tool_name
            state, figures = known.get(tool, (None, None))
            if figures is None or state != stored.state:
                figures = measured(stored)
                self._remember((workspace, tool), stored.state, figures)
            found.append((stored, figures))
        return found

    def known(self, workspace: str, tools: Iterable[str]) -> dict[str, tuple[Hashable, Measured]]:
        """By tool: its state when it was counted, and its figures then. These tools are now the last asked for."""
        found = {}
        with self._lock:
            for tool in tools:
                key = (workspace, tool)
                if key in self._known:
                    self._known.move_to_end(key)
                    found[tool] = self._known[key]
        return found

    def _remember(self, key: tuple[str, str], state: Hashable, figures: Measured) -> None:
        if state is None:
            return
        with self._lock:
            self._known[key] = (state, figures)
            self._known.move_to_end(key)
            while len(self._known) > self._size:
                self._known.popitem(last=False)


_of_stores: WeakKeyDictionary[MemoryStore, KnownFigures] = WeakKeyDictionary()


def known_figures(store: MemoryStore) -> KnownFigures:
    """Of this store, for all who read it in this process."""
    return _of_stores.setdefault(store, KnownFigures())
