"""The interval of a share that was counted."""

from __future__ import annotations

import math
from statistics import NormalDist


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
    z = round(NormalDist().inv_cdf(0.5 + confidence / 2), 15)
    p, scale = k / n, 1 + z * z / n
    centre = (p + z * z / (2 * n)) / scale
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / scale
    # At k = 0 and k = n one end is exact; rounding must not move it off the proportion.
    low = 0.0 if k == 0 else min(p, centre - half)
    high = 1.0 if k == n else max(p, centre + half)
    return max(0.0, low), min(1.0, high)
