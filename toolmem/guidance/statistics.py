"""Figures over the calls of one tool. Unknown values are left out, never counted as zero."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist

from toolmem.models import CallFigures, LifetimeCounters, ToolCallResult, ToolStatistics


def statistics_of(calls: Sequence[ToolCallResult] | Sequence[CallFigures]) -> ToolStatistics:
    """Statistics of `calls`.

    `success_rate` is the share of calls that did not fail among those of which it is known: the recorded flag where
    there is one, else the judge's `execution_failed`. Averages run over the calls that have the value: seconds for
    `avg_time_cost`, tokens for `avg_token_cost`. `judges` lists who scored, in order of first appearance; more than
    one means that `avg_score` mixes their scores.
    """
    failures = unknown = 0
    judges: dict[str, None] = {}
    for call in calls:
        failed = call.failed
        if failed is None:
            unknown += 1
        elif failed:
            failures += 1
        if call.score is not None and call.judge:
            judges[str(call.judge)] = None
    known = len(calls) - unknown
    scored = sum(1 for call in calls if call.score is not None)
    return ToolStatistics(
        calls=len(calls),
        failures=failures,
        unknown=unknown,
        success_rate=(known - failures) / known if known else None,
        avg_score=_mean(call.score for call in calls),
        avg_time_cost=_mean(call.time_cost for call in calls),
        avg_token_cost=_mean(call.token_cost for call in calls),
        unscored=len(calls) - scored,
        judges=list(judges),
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


def wilson_interval(k: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Score interval of a proportion `k / n`: (low, high), both within [0, 1] and around k / n.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the American
    Statistical Association 22 (1927) 209-212. With z the two-sided normal quantile of `confidence`, its ends are
    (p + z^2/2n ± z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n). Without calls nothing is known: (0.0, 1.0).

    Raises ValueError where 0 <= k <= n or 0 < confidence < 1 does not hold.
    """
    if not 0 <= k <= n:
        raise ValueError(f"a proportion needs 0 <= k <= n, got k={k}, n={n}")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence lies between 0 and 1, got {confidence}")
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p = k / n
    centre = p + z * z / (2 * n)
    spread = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # At k = 0 and k = n one end is exact; rounding must not move it off the proportion.
    low = 0.0 if k == 0 else min(p, (centre - spread) / scale)
    high = 1.0 if k == n else max(p, (centre + spread) / scale)
    return max(0.0, low), min(1.0, high)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
