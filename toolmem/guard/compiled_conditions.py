"""Conditions as calls are held against them: JSON Schema over the fields of `with_units`, made when asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from toolmem.guard.alternatives import Alternative, ArgumentTest, Conditions, white_space_between_words
from toolmem.guard.call_conditions import validator_of
from toolmem.guard.histories import UNKNOWN, EarlierTest, History, MoreThan, reached_in_call
from toolmem.guard.units import with_units
from toolmem.guard.view import View
from toolmem.late_dataclasses import replace

_MOST_GUESSED = 30  # words that stand behind a command as what an open word of it may mean


class CompiledConditions:
    """Conditions as calls are held against them: a schema for each answer that the clock can give, made when asked."""

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self._validators: dict[tuple[bool, ...], Any] = {}
        self._counting = [
            CompiledConditions(Conditions((replace(each, more_than=None),), conditions.unless))
            for each in conditions.when
            if each.more_than is not None
        ]

    def hold(self, view: View, now: datetime, history: History = UNKNOWN) -> bool:
        """Does a call fulfil them? `now`: in the user's zone; `history`: what ran before. Raises RequestError."""
        fields = with_units(view)
        every = (*self.conditions.when, *self.conditions.unless)
        told = tuple(_is_time(each, now, fields) and (each.more_than is None or history.over) for each in every)
        if told not in self._validators:
            self._validators[told] = validator_of(as_schema(self._at(told)), "when")
        if self.conditions.earlier:
            fields = _with_earlier(self.conditions, view, history)
        return bool(self._validators[told].is_valid(fields))

    def counted(self, view: View, now: datetime, history: History) -> list[tuple[MoreThan, Conditions]]:
        """The tests `more_than` that a call counts for, each with what it counts."""
        tests = [each.more_than for each in self.conditions.when if each.more_than is not None]
        pairs = zip(tests, self._counting, strict=True)
        return [(test, counting.conditions) for test, counting in pairs if counting.hold(view, now, history)]

    def _at(self, told: Sequence[bool]) -> Conditions:
        """Those alternatives whose clock and count hold."""
        split = len(self.conditions.when)
        when = zip(self.conditions.when, told[:split], strict=True)
        unless = zip(self.conditions.unless, told[split:], strict=True)
        return Conditions(*(tuple(each for each, holds in listed if holds) for listed in (when, unless)))


def _is_time(alternative: Alternative, now: datetime, fields: Mapping[str, Any]) -> bool:
    return alternative.clock is None or alternative.clock.holds(now, fields["parameters"])


def _with_earlier(conditions: Conditions, view: View, history: History) -> dict[str, Any]:
    """The fields of a call, each unit with the tests of earlier calls that hold for it."""
    from toolmem.guard.call_steps import steps_of

    fields, steps = with_units(view), steps_of(view)
    places, meets = steps.places(), MeetsIn(fields)
    units = [{**unit, "earlier": []} for unit in fields["units"]]
    for unless, listed in ((False, conditions.when), (True, conditions.unless)):
        for test in dict.fromkeys(each.earlier for each in listed if each.earlier is not None):
            happened = history.happened(test, unless=unless)
            reached = reached_in_call(steps, test, meets, unless=unless)
            for unit in units:
                at = _steps_with(unit["lines"][0], places) if unit["lines"] else []
                here = [reached[number] for number in at]
                before = bool(here) and all(here) if unless else any(here or reached)
                if happened or before:
                    unit["earlier"].append(_earlier_key(test, unless))
    return {**fields, "units": units}


def _steps_with(line: str, places: Mapping[str, list[int]]) -> list[int]:
    """In which steps a line stands, or the line that it is with guessed words behind it."""
    for _ in range(_MOST_GUESSED):
        if line in places or not line:
            break
        line = line.rpartition(" ")[0]
    return places.get(line, [])


def _earlier_key(test: EarlierTest, unless: bool) -> str:
    return f"{test.asked} {unless} {test.worked} {test.since_writes}"


class MeetsIn:
    """Does one unit of a call meet tests? `fields`: of the call, looked at once for each of these."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self._known: dict[int, tuple[Alternative, bool, Any]] = {}

    def __call__(self, tests: Alternative, unit: Mapping[str, Any]) -> bool:
        known = self._known.get(id(tests))
        if known is None:
            of_call = bool(validator_of({"type": "object", **_call(tests)}, "when").is_valid(self._fields))
            known = (tests, of_call, validator_of({"type": "object", **_unit(tests)}, "when"))
            self._known[id(tests)] = known
        return known[1] and bool(known[2].is_valid(unit))


def as_schema(conditions: Conditions) -> dict[str, Any]:
    """A JSON Schema over the fields of `with_units`; what the clock and a count say is left out.

    Exact: one of the units meets an alternative of `when`, and no alternative of `unless` of its own.
    """
    return {"anyOf": [_stops(each, conditions.unless) for each in conditions.when] or [False]}


def _stops(alternative: Alternative, unless: Sequence[Alternative]) -> dict[str, Any]:
    through = [_call(each, unless=True) for each in unless if not each.of_unit]
    both = [each for each in unless if each.of_unit and each.arguments]
    alone = [_unit(each, unless=True) for each in unless if each.of_unit and not each.arguments]
    made = {"allOf": [_call(alternative), _one_of(alternative, both, alone)]}
    return {**made, "not": {"anyOf": through}} if through else made


def _one_of(
    alternative: Alternative, both: Sequence[Alternative], alone: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """A unit that no `unless` lets through; those `both` of a call and its units count where the call fulfils them."""
    if both:
        first, rest = both[0], both[1:]
        return {
            "if": _call(first, unless=True),
            "then": _one_of(alternative, rest, [*alone, _unit(first, unless=True)]),
            "else": _one_of(alternative, rest, alone),
        }
    item = _unit(alternative)
    return _has("units", {"allOf": [item], "not": {"anyOf": list(alone)}} if alone else item)


def _call(alternative: Alternative, *, unless: bool = False) -> dict[str, Any]:
    tests = [_argument_schema(each) for each in alternative.arguments]
    if "text" in alternative.patterns and not unless:
        tests.append(_has("values", _like(alternative.patterns["text"])))
    return {"allOf": tests} if tests else {}


def _unit(alternative: Alternative, *, unless: bool = False) -> dict[str, Any]:
    places = {"command": "lines", "word": "words", "path": "paths", "target": "targets", "tool": "tools"}
    places |= {"text": "texts"} if unless else {}
    tests = [
        _has(places[name], _like(f"^(?:{pattern})$" if name == "word" else pattern))
        for name, pattern in alternative.patterns.items()
        if name in places
    ]
    if unless:
        tests += [
            _each_of("alike", _has(places[name], _like(alternative.patterns[name])))
            for name in _of_operands(alternative)
        ]
    if alternative.earlier is not None:
        tests.append(_has("earlier", {"const": _earlier_key(alternative.earlier, unless)}))
    return {"allOf": tests} if tests else {}


def _argument_schema(test: ArgumentTest) -> dict[str, Any]:
    named = {"const": test.name}
    tests: list[dict[str, Any]] = []
    if test.missing is not None:
        given = _has("parameters", _object(name=named))
        tests.append({"not": given} if test.missing else given)
    if test.matches:
        tests.append(_has("parameters", _object(name=named, text=_like(test.matches))))
    for bound, keyword in ((test.over, "exclusiveMinimum"), (test.under, "exclusiveMaximum")):
        if bound is not None:
            tests.append(_has("numbers", _object(name=named, value={"type": "number", keyword: bound})))
    return {"allOf": tests}


def _has(name: str, item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "array", "contains": item}}, "required": [name]}


def _each_of(name: str, item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "array", "items": item}}}


def _of_operands(alternative: Alternative) -> list[str]:
    """The tests that each of several operands must meet by itself, to be let through."""
    return [name for name in ("path", "target") if name in alternative.patterns]


def _object(**fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _like(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"(?i){white_space_between_words(pattern)}"}
