"""A value's form that parts all calls that went well from none: told where chance does not make such a thing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.conditions import Condition, conditions_of
from toolmem.guidance.counted.values import canonical
from toolmem.guidance.outcomes import passing

LEAST = 5  # different calls on either side
ALPHA = 0.05  # chance of a false one per tool
MOST = 2
_PLAINNESS = {kind: rank for rank, kind in enumerate(("absent", "present", "type", "shape", "uppercase"))}


class Pattern(NamedTuple):
    """None of the calls where `condition` holds went well, and all others did."""

    condition: Condition
    bad: tuple[int, ...]
    good: tuple[int, ...]


def value_patterns(found: Analysis) -> Iterator[Pattern]:
    """At most MOST, one a parameter; a call went well where it worked and its answer was not worth nothing."""
    went = {
        i: worked and found.useful[i] is not False
        for i, worked in enumerate(found.outcomes)
        if worked is not None and not passing(found.calls[i])
    }
    distinct = {(canonical(found.calls[i].input), well): i for i, well in went.items()}
    bad = {i for (_, well), i in distinct.items() if not well}
    good = {i for (_, well), i in distinct.items() if well}
    if len(bad) < LEAST or len(good) < LEAST:
        return
    held: dict[Condition, set[int]] = {}
    for i in bad | good:
        for condition in conditions_of(found.seen[i]):
            held.setdefault(condition, set()).add(i)
    if len(held) / math.comb(len(bad) + len(good), len(bad)) > ALPHA:
        return
    parting = [one for one, calls in held.items() if calls == bad]
    parting += [one._replace(kind="absent") for one, calls in held.items() if calls == good and one.kind == "present"]
    parting.sort(key=lambda one: (_PLAINNESS[one.kind], one))
    told: set[str] = set()
    for condition in parting:
        if condition.path not in told and len(told) < MOST:
            told.add(condition.path)
            yield Pattern(condition, tuple(i for i in went if not went[i]), tuple(i for i in went if went[i]))
