"""Bootstrap intervals for means of what is not independent: whole conversations or tasks are drawn, not calls.

B. Efron and R. Tibshirani, "An Introduction to the Bootstrap" (1993), chapters 8 and 13: percentile interval; the
clusters are the units that are resampled. Where nothing varies between the clusters the bootstrap knows no
uncertainty; there the interval is the exact one for a share never (or always) seen in as many clusters.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DRAWS = 2000
LEVEL = 0.95


class Interval(NamedTuple):
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
