"""The 95 % interval of a share."""

from __future__ import annotations

import math
from typing import NamedTuple

Z = 1.959963984540054  # the normal quantile of a two-sided 95 % interval


class Interval(NamedTuple):
    """The ends of a 95 % interval."""

    low: float
    high: float


def wilson_interval(k: float, n: float) -> Interval:
    """The 95 % interval of the share `k / n`; (0, 1) where `n` is 0.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal
    of the American Statistical Association 22 (1927) 209-212.
    """
    if n == 0:
        return Interval(0.0, 1.0)
    p = k / n
    scale = 1 + Z * Z / n
    centre = (p + Z * Z / (2 * n)) / scale
    half = Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n)) / scale
    low = 0.0 if k == 0 else max(0.0, centre - half)
    return Interval(low, 1.0 if k == n else min(1.0, centre + half))
