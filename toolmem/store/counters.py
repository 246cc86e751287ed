"""Lifetime counters of a tool as calls come in and are judged anew. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING

from toolmem.light_models import LifetimeCounters
from toolmem.store.codec import MAX_INTEGER, micros, moment

if TYPE_CHECKING:
    from toolmem.models import ToolCallResult


def counted(counters: LifetimeCounters, calls: Sequence[ToolCallResult]) -> LifetimeCounters:
    """The lifetime counters with these calls."""
    if not calls:
        return counters
    outcomes = [call.failed for call in calls]
    scores = [call.score for call in calls if call.score is not None]
    times = [call.time_cost for call in calls if call.time_cost is not None]
    tokens = [call.token_cost for call in calls if call.token_cost is not None]
    oldest = moment(min(micros(call.create_time) for call in calls))
    return LifetimeCounters(
        calls=counters.calls + len(calls),
        failures=counters.failures + outcomes.count(True),
        successes=counters.successes + outcomes.count(False),
        judged=counters.judged + len(scores),
        score_sum=sum(scores, counters.score_sum),
        time_calls=counters.time_calls + len(times),
        time_sum=sum(times, counters.time_sum),
        token_calls=counters.token_calls + len(tokens),
        token_sum=min(sum(tokens, counters.token_sum), MAX_INTEGER),
        since=oldest if counters.since is None else min(counters.since, oldest),
    )


def recounted(counters: LifetimeCounters, pairs: Iterable[tuple[ToolCallResult, ToolCallResult]]) -> LifetimeCounters:
    """The lifetime counters where calls are judged anew. `pairs`: each call before and after."""
    counters = copy(counters)
    for pair in pairs:
        for call, sign in zip(pair, (-1, 1), strict=True):
            counters.failures += sign * (call.failed is True)
            counters.successes += sign * (call.failed is False)
            if call.score is not None:
                counters.judged += sign
                counters.score_sum += sign * call.score
    return counters
