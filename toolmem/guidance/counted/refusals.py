"""Values that a tool refuses by name: what its errors say of a parameter, checked against the calls.

A pattern needs many calls to be told from chance; an error that quotes the value of a parameter, or names the
parameter, needs two. What is stated are counts: no call of this kind worked, and so many errors name it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolmem.guidance.counted import values
from toolmem.guidance.counted.conditions import Condition, Observation, holds

LEAST = 2  # calls of a kind that are wanted before anything is said of it
MAX_VALUES = 4  # values told in one sentence
MAX_SPELLED = 40  # characters of a value that is looked for in a message
LEAST_NAME = 4  # characters of a parameter's name that is looked for outside of quotation marks
FEW_VALUES = 3  # a parameter is chosen from a list where its working values were given so often on average
# An error that asks for a parameter, or knows it not, says nothing against the values of those that were given.
_ABSENT = re.compile(
    r"required|missing|unexpected keyword|(?:unknown|unrecognized|unexpected|extra) (?:parameter|argument|field|key|"
    r"property)|not a parameter|缺少|必填|未知参数",
    re.IGNORECASE,
)
_FORM_KINDS = frozenset({"type", "shape", "unlike"})
_FORMATS = frozenset({"date", "time", "datetime", "slash_date", "integer_text", "number_text", "email", "url", "uuid"})


@dataclass(frozen=True, slots=True)
class RefusedValues:
    """Calls that failed with values of one kind at `path`, which the tool's errors name.

    `conditions` hold of `positions` (any of them); none of these calls worked. `named`: those whose error names the
    value or the parameter. Of the other calls that give the parameter, `other_k` of `other_n` worked.
    """

    path: str
    conditions: tuple[Condition, ...]
    positions: tuple[int, ...]
    named: tuple[int, ...]
    other_k: int
    other_n: int


def refusals(
    seen: Sequence[Observation],
    outcomes: Sequence[bool | None],
    messages: Mapping[int, str],
    leave_out: Collection[str] = (),
    own: Collection[str] = (),
) -> list[RefusedValues]:
    """Refused values, parameter by parameter, most calls first.

    `outcomes`: True = the call worked; `messages`: the telling lines of failed calls, by position; `leave_out`: paths
    whose values are no choices (free texts, the parameter that chooses the action); `own`: paths of values of the
    user's own, whose form may be told, but which of them worked only where the errors name the parameter.
    """
    named: dict[str, list[int]] = {}
    for position, message in messages.items():
        for path in _blamed(seen[position], message):
            named.setdefault(path, []).append(position)
    found = [
        refusal
        for path, positions in named.items()
        if path not in leave_out and len(positions) >= LEAST
        for refusal in _of_path(path, positions, seen, outcomes)
        if path not in own
        or refusal.conditions[0].kind in _FORM_KINDS
        or all(_names(messages[i], path) for i in refusal.named)
    ]
    return sorted(found, key=lambda one: (-len(one.positions), one.path, one.conditions))


def refused_by(seen: Observation, refusal: RefusedValues) -> bool:
    """Whether a call gives a value of the kind that is refused."""
    return any(holds(seen, condition) for condition in refusal.conditions)


def _blamed(seen: Observation, message: str) -> list[str]:
    """Paths that the message is about: by a value in quotation marks, else by the name of the parameter."""
    if not message or _ABSENT.search(message):
        return []
    given = [(path, value) for path, value in values.leaves(seen.params) if path and not isinstance(value, list)]
    quoted = {path for path, value in given if _quotes(message, value)}
    named = {path for path, _ in given if _names(message, path)}
    return sorted(quoted & named or (quoted if len(quoted) == 1 else set()) or (named if len(named) == 1 else set()))


def _quotes(message: str, value: object) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_SPELLED:
        return False
    return values.is_written_in(message, value, quoted=True)


def _names(message: str, path: str) -> bool:
    name = path.rpartition(".")[2].removesuffix("[]")
    return values.is_written_in(message, name, quoted=len(name) < LEAST_NAME)


def _of_path(
    path: str, named: Sequence[int], seen: Sequence[Observation], outcomes: Sequence[bool | None]
) -> Iterator[RefusedValues]:
    """The plainest kinds of values at `path` with which no call worked, until no named failure is left."""
    present = Condition("present", path)
    given = [i for i, one in enumerate(seen) if present in one.conditions and outcomes[i] is not None]
    worked = [i for i in given if outcomes[i]]
    left = set(named)
    for conditions in _kinds(path, given, worked, left, seen):
        held = [i for i in given if any(holds(seen[i], condition) for condition in conditions)]
        mentioned = [i for i in held if i in left]
        if len(mentioned) < LEAST:
            continue
        yield RefusedValues(path, conditions, tuple(held), tuple(mentioned), len(worked), len(given) - len(held))
        left -= set(mentioned)


def _kinds(
    path: str, given: Sequence[int], worked: Sequence[int], named: Collection[int], seen: Sequence[Observation]
) -> Iterator[tuple[Condition, ...]]:
    """What may tell the refused values from those that worked: type, format, size, then the values themselves."""

    def at_path(kind: str) -> tuple[Counter[Condition], list[Condition]]:
        """How often each holds of calls that worked; those of calls that are named, most frequent first."""
        good, bad = (
            Counter(c for i in some for c in seen[i].conditions if c.kind == kind and c.path == path)
            for some in (worked, named)
        )
        return good, values.by_frequency(bad)

    good, bad = at_path("type")
    yield from ((condition,) for condition in bad if good and condition not in good)
    good, bad = at_path("shape")
    if len(good) == 1 and (form := next(iter(good)).detail) in _FORMATS:
        yield (Condition("unlike", path, form),)
    yield from ((one,) for one in bad if one.detail in _FORMATS and good and one not in good)
    numbers = [seen[i].measures[size] for i in worked if (size := ("number", path)) in seen[i].measures]
    if numbers and len(numbers) == len(worked):
        yield (Condition("above", path, "number", max(numbers)),)
        yield (Condition("under", path, "number", min(numbers)),)
    good, bad = at_path("value")
    chosen = len(worked) >= FEW_VALUES * len(good) and good.total() == len(worked)
    refused = [condition for condition in bad if condition not in good and not _is_a_thing(condition)]
    if good and chosen and refused:
        yield tuple(refused[:MAX_VALUES])


def _is_a_thing(condition: Condition) -> bool:
    """A value that names one file, place or object: that it was refused says nothing of the next one."""
    detail = condition.detail.strip("'")
    return values.text_shape(detail) != "word" or "/" in detail or "." in detail
