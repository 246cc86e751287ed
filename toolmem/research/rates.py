"""The share of calls that worked. Its interval counts the judge's errors where labels show them.

A labelled call counts by its label, any other by the judge's verdict. Labels show which share of
the verdicts `worked`, and of `failed`, is wrong; the rate is corrected by these two shares (double
sampling for stratification; W. G. Cochran, "Sampling Techniques", 3rd edition, chapter 12). The
labelled calls must be a random draw. The interval combines the Wilson intervals of the rate and of
both shares (G. Y. Zou, A. Donner, "Construction of confidence limits about effect measures",
Statistics in Medicine 27 (2008) 1693-1702), so that a few labels without an error prove little.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from toolmem.pages.intervals import Interval, Z, wilson_interval
from toolmem.text.display import counted

MIN_LABELS = 20  # fewer say nothing of the judge's errors
Number = TypeVar("Number", int, float)


class Outcome(NamedTuple):
    """Whether a call worked, once by the judge and once by a label; None if not known."""

    judged: bool | None
    label: bool | None = None


class Rate(Struct, frozen=True):
    """A share of calls, with the ends of its 95 % interval."""

    rate: float | None  # None: no call's outcome is known
    low: float
    high: float
    labelled: int = 0  # labels that the rate, or the judge's errors, were counted from
    judged: int = 0  # calls that count by the verdict, where the judge's errors are known

    @property
    def basis(self) -> str:
        """Say in words whether the interval covers sampling alone, or the judge's errors too."""
        if self.judged:
            return f"sampling, and the judge's error on {counted(self.labelled, 'label')}"
        labels = f", {counted(self.labelled, 'label')}" if self.labelled else ""
        return f"sampling only{labels}"


class Errors(NamedTuple):
    """The labelled calls with one verdict, and how many of their labels contradict it."""

    wrong: int = 0
    labelled: int = 0

    @property
    def share(self) -> float:
        """The share of the labels that contradict the verdict; 0.0 without labels."""
        return self.wrong / self.labelled if self.labelled else 0.0


def errors_of(calls: Iterable[Outcome]) -> dict[bool, Errors]:
    """Count the judge's errors on labelled calls, by verdict; {} with fewer than 20 labels."""
    pairs = [each for each in calls if None not in each]
    if len(pairs) < MIN_LABELS:
        return {}
    errors = {}
    for verdict in (True, False):
        labels = [each.label for each in pairs if each.judged is verdict]
        errors[verdict] = Errors(labels.count(not verdict), len(labels))
    return errors


def rate_of(calls: Iterable[Outcome], errors: Mapping[bool, Errors] | None = None) -> Rate:
    """Return the share of judged or labelled calls that worked, corrected by `errors`."""
    known = [each for each in calls if each != (None, None)]
    if not known:
        return Rate(None, *wilson_interval(0, 0))
    good = float(sum(each.label is True for each in known))
    others = [each.judged for each in known if each.label is None]
    below = above = 0.0  # squares of what the judge's errors add to the interval's sides
    for verdict in (True, False):
        count = others.count(verdict)
        wrong = errors[verdict] if errors else Errors()
        good += count * (1 - wrong.share if verdict else wrong.share)
        if errors and count:
            low, high = wilson_interval(wrong.wrong, wrong.labelled)
            # The share is an estimate, and the calls without a label scatter about it.
            scale = count * (count + wrong.labelled) / len(known) ** 2
            more = scale * (high - wrong.share) ** 2
            less = scale * (wrong.share - low) ** 2
            below += more if verdict else less
            above += less if verdict else more
    rate = good / len(known)
    low, high = wilson_interval(good, len(known))
    corrected_by = sum(each.labelled for each in errors.values()) if errors and others else 0
    return Rate(
        rate,
        max(0.0, rate - math.sqrt((rate - low) ** 2 + below)),
        min(1.0, rate + math.sqrt((high - rate) ** 2 + above)),
        corrected_by or len(known) - len(others),
        len(others) if corrected_by else 0,
    )


def rate_of_part(calls: Iterable[Outcome], errors: Mapping[bool, Errors]) -> Rate:
    """Return the rate of one tool or group. `errors`: the judge's, from the labels of all calls.

    The rate is not corrected, because judges err more on some tools than on others. Its interval
    also covers the corrected rate. A part with 20 labels is corrected by these, not by `errors`.
    """
    known = list(calls)
    plain = rate_of(known)
    corrected = rate_of(known, errors_of(known) or errors)
    low, high = min(plain.low, corrected.low), max(plain.high, corrected.high)
    return replace(corrected, rate=plain.rate, low=low, high=high)


def known_pairs(pairs: Iterable[tuple[bool | None, bool | None]]) -> list[tuple[bool, bool]]:
    """Return the pairs in which neither value is None."""
    return [(one, other) for one, other in pairs if one is not None and other is not None]


def difference(a: Rate, b: Rate) -> Interval:
    """The 95 % interval of `b.rate - a.rate`, for unrelated calls.

    R. G. Newcombe, "Interval estimation for the difference between independent proportions",
    Statistics in Medicine 17 (1998) 873-890, method 10. Both rates must be known.
    """
    assert a.rate is not None and b.rate is not None
    change = b.rate - a.rate
    return Interval(
        max(-1.0, change - math.hypot(b.rate - b.low, a.high - a.rate)),
        min(1.0, change + math.hypot(b.high - b.rate, a.rate - a.low)),
    )


def paired_difference(pairs: Sequence[tuple[bool, bool]]) -> Interval:
    """The 95 % interval of the change in the share of True, from first to second of the pairs.

    A. Agresti and Y. Min, "Simple improved confidence intervals for comparing matched proportions",
    Statistics in Medicine 24 (2005) 729-740.
    """
    up, down = (
        (sum(pair == change for pair in pairs) + 0.5) / (len(pairs) + 2)
        for change in ((False, True), (True, False))
    )
    half = Z * math.sqrt((up + down - (up - down) ** 2) / (len(pairs) + 2))
    return Interval(max(-1.0, up - down - half), min(1.0, up - down + half))


def kappa(pairs: Collection[tuple[bool, bool]]) -> float | None:
    """Return the agreement of the pairs beyond chance, at most 1.0; None if all values are equal.

    J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
    Measurement 20 (1960) 37-46.
    """
    total = len(pairs)
    first, second = (sum(pair[side] for pair in pairs) for side in (0, 1))
    chance = first * second + (total - first) * (total - second)
    agreed = sum(one is other for one, other in pairs)
    return (agreed * total - chance) / (total * total - chance) if total * total > chance else None


def percentile(values: Sequence[Number], share: float) -> Number | None:
    """Return the smallest value that at least `share` of the values do not exceed; None: empty."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None
