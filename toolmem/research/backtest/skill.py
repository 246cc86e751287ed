"""Do the claims know which of the next calls fail? The Brier score of their forecast against the tool's past rate.

G. W. Brier, "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78 (1950) 1-3: the
mean squared difference between the forecast probability and what happened (0 or 1). The skill score is 1 - BS / BS_ref;
0 is as good as the reference, 1 is perfect, below 0 is worse than knowing nothing but the rate.

The reference forecasts the failure rate of the earlier calls for every later call. The claims' forecast for a call is
that of the strongest claim about parameters that compares calls like it (refused values first), as the claim counts
them: of the n calls on the call's side, f failed; the forecast is (f + r) / (n + 1), the claim's share drawn to the
tool's rate r by one call's worth. A call that no claim is about gets the rate. A text without counts (a model's) makes
no forecast, and has no skill score.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from toolmem.guidance.counted.analysis import Analysis, analyze
from toolmem.guidance.counted.conditions import Observation, holds
from toolmem.guidance.counted.refusals import refused_by
from toolmem.guidance.outcomes import UNKNOWN
from toolmem.models import ToolCallResult
from toolmem.research.backtest.opportunities import observed
from toolmem.research.backtest.paired import quantiles, resampled
from toolmem.research.backtest.splitting import Split, task_of


@dataclass(frozen=True, slots=True)
class Skill:
    """Forecasts of failure for the later calls, beside the reference. Squared errors are means over calls."""

    n: int  # later calls whose outcome is known
    told: int  # of these: those that a claim is about
    brier: float  # of the claims
    reference: float  # of the tools' past failure rates
    low: float  # 95 % bootstrap interval of the skill score, tasks (else conversations) as clusters
    high: float

    @property
    def score(self) -> float | None:
        """1 - brier / reference; None where the reference is never wrong, or there is nothing to forecast."""
        return 1 - self.brier / self.reference if self.reference > 0 else None


@dataclass(frozen=True, slots=True)
class Forecast:
    """One later call: what was forecast, and what happened."""

    probability: float  # of failure, by the claims
    rate: float  # of failure, by the reference
    told: bool
    failed: bool
    cluster: str


def forecasts(
    earlier: Sequence[ToolCallResult], later: Sequence[ToolCallResult], leave_out: Collection[str] = ()
) -> list[Forecast]:
    """Forecasts for `later` calls of a tool (those whose outcome is known) from what `earlier` calls claim.

    `leave_out`: kinds of claims ("refused", "parameter") that have no say in it.
    """
    if not earlier or not later:
        return []
    found = analyze(earlier[0].tool_name, earlier)
    failures, known = len(found.where(False)), sum(outcome is not None for outcome in found.outcomes)
    rate = failures / known if known else 0.5
    outcomes, grouped, seen = observed(later, found.text_kinds)
    made = []
    for i, (one, outcome) in enumerate(zip(seen, outcomes, strict=True)):
        if outcome is None:
            continue
        side = _counted(found, one, leave_out)
        probability = rate if side is None else (side[0] + rate) / (side[1] + 1)
        number = grouped.numbers[i]
        cluster = task_of(later[i]) or f"{later[i].tool_name}#{i if number == UNKNOWN else number}"
        made.append(Forecast(probability, rate, side is not None, not outcome, cluster))
    return made


def skill(splits: Mapping[str, Split], seed: int = 0) -> Skill:
    """The skill of all tools' claims on their later calls."""
    return score([one for split in splits.values() for one in forecasts(split.earlier, split.later)], seed)


def score(made: Sequence[Forecast], seed: int = 0) -> Skill:
    """Brier scores of `made` with the interval of their skill score ((-inf, 1) where there is nothing to draw)."""
    if not made:
        return Skill(0, 0, 0.0, 0.0, float("-inf"), 1.0)
    by_claims = [(one.probability - one.failed) ** 2 for one in made]
    by_rate = [(one.rate - one.failed) ** 2 for one in made]
    n = len(made)
    low, high = _interval(by_claims, by_rate, [one.cluster for one in made], seed)
    return Skill(n, sum(one.told for one in made), sum(by_claims) / n, sum(by_rate) / n, low, high)


def _counted(found: Analysis, one: Observation, leave_out: Collection[str]) -> tuple[int, int] | None:
    """(failures, calls) on this call's side of the strongest claim that compares calls like it."""
    for refusal in () if "refused" in leave_out else found.refusals:
        if refused_by(one, refusal):
            return len(refusal.positions), len(refusal.positions)
    for pattern in () if "parameter" in leave_out else found.failures.patterns:
        if pattern.within is None or holds(one, pattern.within):
            k, n = (pattern.k, pattern.n) if holds(one, pattern.condition) else (pattern.other_k, pattern.other_n)
            return n - k, n
    return None


def _interval(a: Sequence[float], b: Sequence[float], clusters: Sequence[str], seed: int) -> tuple[float, float]:
    """Percentile interval of 1 - sum(a) / sum(b) over resampled clusters."""
    ratios = resampled(a, b, clusters, seed)
    return quantiles(1 - ratios) if len(ratios) else (float("-inf"), 1.0)
