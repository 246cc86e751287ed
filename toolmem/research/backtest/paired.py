"""Two guidances (or policies) asked about the same failures, one by one: is the second not inferior to the first?"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from toolmem.research.backtest.bootstrap import cluster_interval
from toolmem.research.backtest.coverage import Coverage

LEAST_CLUSTERS = 5  # a bootstrap over fewer says little

Verdict = Literal["not inferior", "inferior", "undecided"]


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
