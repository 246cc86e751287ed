"""Exact tests on counts, without scipy: Fisher's test, and Tarone's correction for many of them at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

_RELATIVE = 1e-7  # terms this close to the observed one count as equally likely, as in R's fisher.test
_NEGLIGIBLE = 1e-18


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _log_probability(x: int, drawn: int, marked: int, total: int) -> float:
    """Log of the hypergeometric probability of x marked ones among `drawn` of `total`."""
    return _log_choose(marked, x) + _log_choose(total - marked, drawn - x) - _log_choose(total, drawn)


def fisher_exact(k: int, n: int, other_k: int, other_n: int) -> float:
    """Two-sided p-value of `k` of `n` against `other_k` of `other_n`.

    R. A. Fisher, "Statistical Methods for Research Workers", 5th ed. (1934), section 21.02. Two-sided in the usual
    way: the sum of the probabilities of all tables with these margins that are no more likely than this one.
    Costs O(length of the tails).

    Raises ValueError where 0 <= k <= n does not hold on either side.
    """
    if not (0 <= k <= n and 0 <= other_k <= other_n):
        raise ValueError(f"not a table of counts: {k} of {n}, {other_k} of {other_n}")
    marked, total = k + other_k, n + other_n
    low, high = max(0, n - (total - marked)), min(n, marked)
    if low == high:
        return 1.0
    observed = _log_probability(k, n, marked, total)
    limit = observed + _RELATIVE
    mode = min(high, max(low, (n + 1) * (marked + 1) // (total + 2)))
    left = _last_unlikely(low, mode, limit, n, marked, total)
    right = _first_unlikely(mode, high, limit, n, marked, total)
    p = _tail(left, low, -1, n, marked, total) + _tail(right, high, +1, n, marked, total)
    return min(1.0, p) if left < right else 1.0


def _last_unlikely(low: int, mode: int, limit: float, drawn: int, marked: int, total: int) -> int:
    """The largest x <= mode whose probability is within `limit` (low - 1: none); it grows up to the mode."""
    a, b = low - 1, mode
    while a < b:
        middle = (a + b + 1) // 2
        if _log_probability(middle, drawn, marked, total) <= limit:
            a = middle
        else:
            b = middle - 1
    return a


def _first_unlikely(mode: int, high: int, limit: float, drawn: int, marked: int, total: int) -> int:
    """The smallest x >= mode whose probability is within `limit` (high + 1: none)."""
    a, b = mode, high + 1
    while a < b:
        middle = (a + b) // 2
        if _log_probability(middle, drawn, marked, total) <= limit:
            b = middle
        else:
            a = middle + 1
    return a


def _tail(start: int, end: int, step: int, drawn: int, marked: int, total: int) -> float:
    """Sum of the probabilities from `start` to `end`; stops where further terms cannot change it."""
    if (end - start) * step < 0:
        return 0.0
    term = math.exp(_log_probability(start, drawn, marked, total))
    terms = [term]
    x = start
    while x != end:
        x += step
        if step > 0:
            term *= (marked - x + 1) * (drawn - x + 1) / (x * (total - marked - drawn + x))
        else:
            term *= (x + 1) * (total - marked - drawn + x + 1) / ((marked - x) * (drawn - x))
        terms.append(term)
        if term < _NEGLIGIBLE * terms[0]:
            break
    return math.fsum(terms)


def least_p(n: int, other_n: int, marked: int) -> float:
    """The smallest p-value that any table with these margins can reach: `marked` over groups of n and other_n."""
    total = n + other_n
    low, high = max(0, n - (total - marked)), min(n, marked)
    if low == high:
        return 1.0
    first, last = _log_probability(low, n, marked, total), _log_probability(high, n, marked, total)
    if abs(first - last) < _RELATIVE:
        return min(1.0, math.exp(first) + math.exp(last))
    return math.exp(min(first, last))


def tarone_level(least: Sequence[float], alpha: float = 0.05) -> float:
    """The p-value up to which a test counts when one test is made per entry of `least`.

    R. E. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46 (1990) 515-522: tests that could
    not become significant whatever the outcome are not paid for. The chance of one or more false claims stays
    within `alpha`, as with Bonferroni's correction, and the level is never stricter than Bonferroni's.
    """
    ordered = sorted(least)
    paid = 1
    while True:
        level = alpha / paid
        possible = _count_up_to(ordered, level)
        if possible <= paid:
            return level
        paid += 1


def _count_up_to(ordered: Sequence[float], level: float) -> int:
    low, high = 0, len(ordered)
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] <= level:
            low = middle + 1
        else:
            high = middle
    return low
