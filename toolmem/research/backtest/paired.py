"""Bootstrap intervals for means of what is not independent, and two guidances asked about the same failures.

B. Efron and R. Tibshirani, "An Introduction to the Bootstrap" (1993), chapters 8 and 13: percentile interval; the
clusters are the units that are resampled. Where nothing varies between the clusters the bootstrap knows no
uncertainty; there the interval is the exact one for a share never (or always) seen in as many clusters.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from toolmem.research.backtest.coverage import Coverage

DRAWS = 2000
LEVEL = 0.95
LEAST_CLUSTERS = 5  # a bootstrap over fewer says little

Verdict = Literal["not inferior", "inferior", "undecided"]


class Interval(NamedTuple):
    """The ends of an interval."""

    low: float
    high: float


def cluster_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    seed: int = 0,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval:
    """95 % interval of the mean of `values`.

    `clusters` says to which cluster each value belongs; `bounds` are the least and the greatest mean that is possible.
    Both bounds for fewer than two clusters. Deterministic for a seed.
    """
    means = resampled(values, [1.0] * len(values), clusters, seed)
    if not len(means):
        return Interval(*bounds)
    low, high = quantiles(means)
    return _unseen(low, high, len(set(clusters)), bounds) if high - low < 1e-12 else Interval(low, high)


def resampled(
    values: Sequence[float], weights: Sequence[float], clusters: Sequence[Hashable], seed: int
) -> NDArray[np.float64]:
    """sum(values) / sum(weights) in each of DRAWS draws whose weights are above 0; none for fewer than two clusters."""
    if not len(values) == len(weights) == len(clusters):
        raise ValueError(f"{len(values)} values, {len(weights)} weights and {len(clusters)} clusters")
    number = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
    if len(number) < 2:
        return np.empty(0)
    place = [number[cluster] for cluster in clusters]
    sums, sizes = (np.bincount(place, weights=np.asarray(each, dtype=float)) for each in (values, weights))
    chosen = np.random.default_rng(seed).integers(0, len(number), size=(DRAWS, len(number)))
    totals = sizes[chosen].sum(axis=1)
    ratios: NDArray[np.float64] = sums[chosen].sum(axis=1)[totals > 0] / totals[totals > 0]
    return ratios


def quantiles(drawn: NDArray[np.float64]) -> tuple[float, float]:
    """The ends of the 95 % percentile interval."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(drawn, (tail, 1 - tail))
    return float(low), float(high)


def _unseen(low: float, high: float, clusters: int, bounds: tuple[float, float]) -> Interval:
    """Every cluster says the same: what was never seen in n clusters may still happen in 1 - 0.025^(1/n) of them."""
    room = 1 - ((1 - LEVEL) / 2) ** (1 / clusters)
    least, most = bounds
    return Interval(low - room * (low - least), high + room * (most - high))


@dataclass(frozen=True, slots=True)
class Paired:
    """The second minus the first, over the same n cases.

    `low` and `high`: 95 % bootstrap interval of the difference, clusters drawn as wholes. Not inferior: all of it lies
    above -margin; inferior: all of it lies below. Where the two never differ, the interval is the exact one for a
    difference that was not seen in any cluster. Fewer than LEAST_CLUSTERS clusters decide nothing.
    """

    n: int
    first: float  # mean of the first
    second: float
    difference: float  # second - first
    low: float
    high: float
    margin: float
    only_first: int  # cases in which the first is greater
    only_second: int
    clusters: int

    @property
    def verdict(self) -> Verdict:
        if self.clusters < LEAST_CLUSTERS:
            return "undecided"
        if self.low > -self.margin:
            return "not inferior"
        return "inferior" if self.high < -self.margin else "undecided"


def paired(
    first: Sequence[float], second: Sequence[float], clusters: Sequence[Hashable], margin: float, seed: int = 0
) -> Paired:
    """Compare `second` with `first`, case by case; `margin` is the loss that would be accepted (0.02 = two points).

    Raises ValueError where the lengths differ, there are no cases, or the margin is negative.
    """
    if not len(first) == len(second) == len(clusters) or not first:
        raise ValueError(f"pairs of the same cases are compared, got {len(first)}, {len(second)} and {len(clusters)}")
    if margin < 0:
        raise ValueError(f"the margin is a loss that would be accepted, got {margin}")
    differences = [float(b) - float(a) for a, b in zip(first, second, strict=True)]
    low, high = cluster_interval(differences, clusters, seed=seed, bounds=(-1.0, 1.0))
    n = len(differences)
    return Paired(
        n=n,
        first=sum(map(float, first)) / n,
        second=sum(map(float, second)) / n,
        difference=sum(differences) / n,
        low=low,
        high=high,
        margin=margin,
        only_first=sum(one < 0 for one in differences),
        only_second=sum(one > 0 for one in differences),
        clusters=len(set(clusters)),
    )


def compare(first: Coverage, second: Coverage, margin: float = 0.02, seed: int = 0) -> Paired:
    """Compare the coverage of two guidances on the same repaired failures.

    Raises ValueError where they were asked about different ones.
    """
    if first.asked != second.asked:
        raise ValueError("two coverages are compared on the same repaired failures, these are of different ones")
    return paired(first.hits, second.hits, [one.cluster for one in first.asked], margin, seed)
