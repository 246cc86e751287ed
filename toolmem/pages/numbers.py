"""How the report writes numbers: one form per kind of figure, a dash for what is not known."""

from __future__ import annotations

from math import isnan
from typing import Any

UNKNOWN = "–"


def known(value: Any) -> bool:
    """False for None, NaN and pandas' NA."""
    if value is None:
        return False
    try:
        return not isnan(float(value))
    except TypeError:  # pandas.NA refuses to become a float
        return False


def count(value: Any) -> str:
    """12,827; averages of counts are rounded."""
    return f"{round(float(value)):,}" if known(value) else UNKNOWN


def percent(value: Any) -> str:
    """One decimal; 100 % and 0 % stand for exactly all and none."""
    if not known(value):
        return UNKNOWN
    share = float(value) * 100
    if share in (0.0, 100.0):
        return f"{share:.0f} %"
    return f"{min(max(share, 0.1), 99.9):.1f} %"


def interval(low: Any, high: Any) -> str:
    """Two shares as whole percents: `62–71 %`."""
    return f"{float(low) * 100:.0f}–{float(high) * 100:.0f} %" if known(low) and known(high) else UNKNOWN


def score(value: Any) -> str:
    """Two decimals, between 0 and 1."""
    return f"{float(value):.2f}" if known(value) else UNKNOWN


def seconds(value: Any) -> str:
    """A duration in the unit that suits it: 57 µs, 6.1 ms, 0.62 s, 265 s, 12 min."""
    if not known(value):
        return UNKNOWN
    span = float(value)
    if span == 0:
        return "0 s"
    for below, factor, unit in ((1e-3, 1e6, "µs"), (0.1, 1e3, "ms"), (600, 1, "s"), (36000, 1 / 60, "min")):
        if span < below:
            return f"{significant(span * factor)} {unit}"
    return f"{significant(span / 3600)} h"


def significant(value: float) -> str:
    """About two digits, no exponent."""
    if value >= 9.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.995 else f"{value:.2g}"
