"""The condition that a line of guidance tells in words, looked for in calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolmem.guidance.counted.conditions import Condition, Observation, holds
from toolmem.guidance.counted.patterns import Pattern
from toolmem.guidance.counted.wording import Wording

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_PATH = re.compile(r"`([^`]+)`")
_BOUNDS = ("at_least", "below")


def told_condition(words: str, seen: Sequence[Observation], say: Wording) -> tuple[set[int], list[int]] | None:
    """(positions where the told condition holds, positions that it is compared among); None where no call fits it.

    A condition is recognized by being told: each one that could be said of these calls is put into words.
    """
    wanted = _plain(words)
    for within, condition in _candidates(wanted, seen):
        pattern = Pattern(condition, within, 0, 0, 0, 0, 1.0, 0, 0)
        if _plain(say.circumstance(pattern)) == wanted:
            base = [i for i, one in enumerate(seen) if within is None or holds(one, within)]
            return {i for i in base if holds(seen[i], condition)}, base
    return None


def _plain(words: str) -> str:
    return words[:1].lower() + words[1:]


def _candidates(words: str, seen: Sequence[Observation]) -> Iterator[tuple[Condition | None, Condition]]:
    conditions = {condition for one in seen for condition in one.conditions}
    for path in _PATH.findall(words):
        conditions |= {Condition("present", path), Condition("absent", path)}
    bounds = [float(number) for number in _NUMBER.findall(words)]
    measured = {key for one in seen for key in one.measures}
    conditions |= {
        Condition(kind, path, measure, bound) for measure, path in measured for bound in bounds for kind in _BOUNDS
    }
    ordered = sorted(conditions)
    yield from ((None, condition) for condition in ordered)
    actions = sorted({one.action for one in seen if one.action is not None} | _parents(ordered))
    for within in actions:
        # A condition within calls of one kind names that kind in its words.
        if within.detail.lower() in words.lower():
            yield from ((within, condition) for condition in ordered)


def _parents(conditions: Sequence[Condition]) -> set[Condition]:
    return {condition for condition in conditions if condition.kind in ("statement", "program")}
