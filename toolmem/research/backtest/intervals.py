"""Bootstrap intervals for means of what is not independent: whole conversations or tasks are drawn, not calls.

B. Efron and R. Tibshirani, "An Introduction to the Bootstrap" (1993), chapters 8 and 13: percentile interval; the
clusters are the units that are resampled. Where nothing varies between the clusters the bootstrap knows no
uncertainty; there the interval is the exact one for a share never (or always) seen in as many clusters.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

DRAWS = 2000
LEVEL = 0.95


class Interval(NamedTuple):
    low: float
    high: float


def cluster_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    weights: Sequence[float] | None = None,
    seed: int = 0,
    draws: int = DRAWS,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval:
    """95 % interval of the mean of `values` (of sum(values) / sum(weights) where weights are given).

    `clusters` says to which cluster each value belongs; `bounds` are the least and the greatest mean that is possible.
    Both bounds for no values. Deterministic for a seed.
    """
    if len(values) != len(clusters):
        raise ValueError(f"{len(values)} values and {len(clusters)} clusters")
    if not values:
        return Interval(*bounds)
    number: dict[Hashable, int] = {}
    for cluster in clusters:
        number.setdefault(cluster, len(number))
    place = [number[cluster] for cluster in clusters]
    sums = np.bincount(place, weights=np.asarray(values, dtype=float), minlength=len(number))
    sizes = np.bincount(place, weights=None if weights is None else np.asarray(weights, dtype=float))
    if len(number) == 1:
        return Interval(*bounds)
    chosen = np.random.default_rng(seed).integers(0, len(number), size=(draws, len(number)))
    totals = sizes[chosen].sum(axis=1)
    means = np.divide(sums[chosen].sum(axis=1), totals, out=np.full(draws, np.nan), where=totals > 0)
    tail = (1 - LEVEL) / 2
    low, high = (float(x) for x in np.nanquantile(means, (tail, 1 - tail)))
    return _unseen(low, high, len(number), bounds) if high - low < 1e-12 else Interval(low, high)


def _unseen(low: float, high: float, clusters: int, bounds: tuple[float, float]) -> Interval:
    """Every cluster says the same: what was never seen in n clusters may still happen in 1 - 0.025^(1/n) of them."""
    room = 1 - ((1 - LEVEL) / 2) ** (1 / clusters)
    least, most = bounds
    return Interval(low - room * (low - least), high + room * (most - high))
