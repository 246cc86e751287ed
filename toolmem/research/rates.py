"""The share of calls that worked; its interval holds the judge's errors where labels tell them.

Labels lead: a labelled call counts by its label, the others by the judge, corrected by the share
of its `worked` and of its `failed` that the labels contradict (double sampling for stratification;
W. G. Cochran, "Sampling Techniques", 3rd edition, chapter 12). The labelled calls must be a random
draw. The interval adds the squares of the distances to the ends of each part's Wilson interval
(G. Y. Zou, A. Donner, "Construction of confidence limits about effect measures", Statistics in
Medicine 27 (2008) 1693-1702), so that a few labels without an error prove little.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from toolmem.pages.figures import Interval, Z, wilson_interval
from toolmem.text.display import counted

MIN_LABELS = 20  # fewer say nothing of the judge's errors
Number = TypeVar("Number", int, float)


class Told(NamedTuple):
    """Whether a call worked: what the judge says, and what a label says. None: nothing is known."""

    judged: bool | None
    label: bool | None = None


class Rate(Struct, frozen=True):
    """A share of calls, with the ends of its 95 % interval."""

    rate: float | None  # None: no call's outcome is known
    low: float
    high: float
    labelled: int = 0  # labels that count, or by which the judge's errors were counted
    judged: int = 0  # calls that count by the judge, where its errors are known

    @property
    def basis(self) -> str:
        """The errors that the interval holds."""
        if self.judged:
            return f"sampling, and the judge's error on {counted(self.labelled, 'label')}"
        of = f", {counted(self.labelled, 'label')}" if self.labelled else ""
        return f"sampling only{of}"


class Errors(NamedTuple):
    """Of the labelled calls with one verdict, how many there are and how many labels contradict."""

    wrong: int = 0
    labelled: int = 0

    @property
    def share(self) -> float:
        return self.wrong / self.labelled if self.labelled else 0.0


def errors_of(calls: Iterable[Told]) -> dict[bool, Errors]:
    """What the judge gets wrong on labelled calls, by its verdict; {} where there are too few."""
    pairs = [each for each in calls if None not in each]
    if len(pairs) < MIN_LABELS:
        return {}
    of_verdict = {word: [e for e in pairs if e.judged is word] for word in (True, False)}
    return {
        word: Errors(sum(each.label is not word for each in same), len(same))
        for word, same in of_verdict.items()
    }


def rate_of(calls: Iterable[Told], errors: Mapping[bool, Errors] | None = None) -> Rate:
    """The share of calls that worked, of those with a verdict or label. `errors`: the judge's."""
    known = [each for each in calls if each != (None, None)]
    if not known:
        return Rate(None, *wilson_interval(0, 0))
    good = float(sum(each.label is True for each in known))
    others = [each.judged for each in known if each.label is None]
    below = above = 0.0  # squares of what the judge's errors add to both sides
    for word in (True, False):
        count = sum(judged is word for judged in others)
        wrong = errors[word] if errors else Errors()
        good += count * (1 - wrong.share if word else wrong.share)
        if errors and count:
            low, high = wilson_interval(wrong.wrong, wrong.labelled)
            # The share is an estimate, and the calls without a label scatter about it.
            scale = count * (count + wrong.labelled) / len(known) ** 2
            more = scale * (high - wrong.share) ** 2
            less = scale * (wrong.share - low) ** 2
            below, above = below + (more if word else less), above + (less if word else more)
    rate = good / len(known)
    low, high = wilson_interval(good, len(known))
    counted = sum(each.labelled for each in errors.values()) if errors and others else 0
    return Rate(
        rate,
        max(0.0, rate - math.sqrt((rate - low) ** 2 + below)),
        min(1.0, rate + math.sqrt((high - rate) ** 2 + above)),
        counted or len(known) - len(others),
        len(others) if counted else 0,
    )


def rate_of_part(calls: Iterable[Told], errors: Mapping[bool, Errors]) -> Rate:
    """The rate of one tool's calls, or of a group. `errors`: of the judge on labels of all calls.

    It is not corrected, because judges err on some tools more than on others, so that it agrees
    with what is counted. Its interval also holds the corrected rate, by its own labels where it
    has enough.
    """
    known = list(calls)
    plain = rate_of(known)
    corrected = rate_of(known, errors_of(known) or errors)
    low, high = min(plain.low, corrected.low), max(plain.high, corrected.high)
    return replace(corrected, rate=plain.rate, low=low, high=high)


def known_pairs(pairs: Iterable[tuple[bool | None, bool | None]]) -> list[tuple[bool, bool]]:
    """The pairs of which both sides are known."""
    return [(one, other) for one, other in pairs if one is not None and other is not None]


def difference(a: Rate, b: Rate) -> Interval:
    """The 95 % interval of `b.rate - a.rate` of unrelated calls.

    R. G. Newcombe, "Interval estimation for the difference between independent proportions",
    Statistics in Medicine 17 (1998) 873-890, method 10. Both rates are known.
    """
    assert a.rate is not None and b.rate is not None
    change = b.rate - a.rate
    return Interval(
        max(-1.0, change - math.hypot(b.rate - b.low, a.high - a.rate)),
        min(1.0, change + math.hypot(b.high - b.rate, a.rate - a.low)),
    )


def paired_difference(pairs: Sequence[tuple[bool, bool]]) -> Interval:
    """The 95 % interval of the change between two verdicts on the same calls.

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
    """Agreement beyond chance, 1.0 at best; None where both always say the same one thing.

    J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
    Measurement 20 (1960) 37-46.
    """
    total = len(pairs)
    first, second = (sum(pair[side] for pair in pairs) for side in (0, 1))
    chance = first * second + (total - first) * (total - second)
    agreed = sum(one is other for one, other in pairs)
    return (agreed * total - chance) / (total * total - chance) if total * total > chance else None


def percentile(values: Sequence[Number], share: float) -> Number | None:
    """The smallest value that at least this share of the values does not exceed; None: no value."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None
