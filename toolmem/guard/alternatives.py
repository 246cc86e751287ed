"""The language in which a demand says which calls it means.

    when    a list of alternatives; a call is stopped where one of them holds
    unless  the same; what it holds for is let through

An alternative is an object of tests that must all hold. Each simple command, recipient and path of a call is judged by
itself (`toolmem.guard.units`): the call is stopped where one of them meets `when` and none of its own `unless`.
Patterns ignore case, are searched for anywhere, and run in a linear engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from toolmem.errors import RequestError
from toolmem.guard.call_conditions import validator_of
from toolmem.guard.histories import (
    BASE_TESTS,
    MOST_OF_HISTORY,
    EarlierTest,
    MoreThan,
    read_earlier,
    read_more_than,
)
from toolmem.guard.moments import ClockTest, read_clock
from toolmem.guard.units import INSIDE
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass, replace

MOST = 20  # alternatives of `when`, and of `unless`
LONGEST_PATTERN = 500  # characters
_PATTERNS = ("command", "word", "path", "target", "text", "tool")
KEPT = ("when", "unless", "stops", "passes")  # the last two: example calls, for who looks at the rule
_ARGUMENT = ("over", "under", "matches", "missing")
TESTS = (*_PATTERNS, "arg", "always", "clock", "earlier", "more_than")
_LOOKS_AROUND = late_pattern(r"\(\?(?:=|!|<=|<!|>)")
_REFERS_BACK = late_pattern(r"\\(?:[1-9]|k<)")


@dataclass(frozen=True, slots=True)
class ArgumentTest:
    """What one argument must be; of a list one element."""

    name: str
    over: float | None = None
    under: float | None = None
    matches: str = ""
    missing: bool | None = None

    def as_written(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in _ARGUMENT}
        return {"name": self.name, **{name: value for name, value in told.items() if value not in (None, "")}}


@dataclass(frozen=True, slots=True)
class Alternative:
    """Tests that must all hold. Patterns by the name of their test."""

    patterns: Mapping[str, str]
    arguments: tuple[ArgumentTest, ...] = ()
    always: bool = False
    clock: ClockTest | None = None
    earlier: EarlierTest | None = None
    more_than: MoreThan | None = None

    @property
    def of_unit(self) -> bool:
        """Does it, in `unless`, ask for something that the units of a call do not share?"""
        return bool(self.patterns) or self.earlier is not None

    def as_written(self) -> dict[str, Any]:
        made: dict[str, Any] = dict(self.patterns)
        if arguments := [each.as_written() for each in self.arguments]:
            made["arg"] = arguments[0] if len(arguments) == 1 else arguments
        if self.always:
            made["always"] = True
        for name, test in (("clock", self.clock), ("earlier", self.earlier), ("more_than", self.more_than)):
            if test is not None:
                made[name] = test.as_written()
        return made


@dataclass(frozen=True, slots=True)
class Conditions:
    """Which calls a demand means."""

    when: tuple[Alternative, ...]
    unless: tuple[Alternative, ...] = ()

    @property
    def earlier(self) -> tuple[EarlierTest, ...]:
        """The tests of earlier calls."""
        return tuple(each.earlier for each in (*self.when, *self.unless) if each.earlier is not None)

    @property
    def needs_history(self) -> bool:
        return bool(self.earlier) or any(each.more_than is not None for each in self.when)


def read_conditions(when: Any, unless: Any = None) -> Conditions:
    """As a note or a caller gives them. Raises RequestError that names the place and the remedy."""
    read = Conditions(tuple(_alternatives(when, "when", 1)), tuple(_alternatives(unless, "unless", 0)))
    tests = len(set(read.earlier)) + sum(each.more_than is not None for each in read.when)
    if tests > MOST_OF_HISTORY:
        told = f"{tests} tests of earlier calls and counts; {MOST_OF_HISTORY} are the most: note several demands"
        raise RequestError(f"`when`: {told}", field="when")
    return read


def read_alternatives(given: Any, field: str = "when") -> Conditions:
    """A list of alternatives, or an object of `when` and `unless`, as it is kept. Raises RequestError."""
    if not isinstance(given, Mapping):
        return read_conditions(given)
    if unknown := [str(name)[:40] for name in given if name not in KEPT]:
        raise RequestError(f"`{field}`: {', '.join(unknown)}: expected some of {', '.join(KEPT)}", field=field)
    return read_conditions(given["when"], given.get("unless"))


def _alternatives(given: Any, field: str, least: int) -> Iterator[Alternative]:
    listed = [] if given is None else [given] if isinstance(given, Mapping) else given
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not least <= len(listed) <= MOST:
        told = f"expected a list of {least} to {MOST} alternatives, each an object of tests ({', '.join(TESTS)})"
        raise RequestError(f"`{field}`: {told}", field=field)
    for number, each in enumerate(listed):
        yield _alternative(each, f"{field}[{number}]", field)


def _alternative(given: Any, place: str, field: str) -> Alternative:
    if not isinstance(given, Mapping) or not given:
        raise RequestError(f"`{place}`: expected an object of tests ({', '.join(TESTS)})", field=field)
    unknown = [str(name)[:40] for name in given if name not in TESTS]
    if unknown:
        told = f"{', '.join(unknown)}: no test; there are {', '.join(TESTS)}"
        raise RequestError(f"`{place}`: {told}", field=field)
    always = given.get("always", False)
    if not isinstance(always, bool) or (always is False and "always" in given):
        raise RequestError(f"`{place}.always`: true, or leave it out", field=field)
    if field == "unless" and "more_than" in given:
        raise RequestError(f"`{place}.more_than`: belongs into `when`, beside the tests of the calls", field=field)
    return Alternative(
        **_base(given, place, field),
        always=always,
        clock=read_clock(given["clock"], f"{place}.clock", field) if "clock" in given else None,
        earlier=read_earlier(given["earlier"], f"{place}.earlier", field, partial(read_base_tests, field=field))
        if "earlier" in given
        else None,
        more_than=read_more_than(given["more_than"], f"{place}.more_than", field) if "more_than" in given else None,
    )


def read_base_tests(given: Mapping[str, Any], place: str = "earlier", field: str = "when") -> Alternative:
    """Tests of a call's own fields alone. Raises RequestError."""
    return Alternative(**_base({name: test for name, test in given.items() if name in BASE_TESTS}, place, field))


def _base(given: Mapping[str, Any], place: str, field: str) -> dict[str, Any]:
    arguments = given.get("arg", [])
    listed = arguments if isinstance(arguments, list) else [arguments]
    return {
        "patterns": {name: _pattern(given[name], f"{place}.{name}", field) for name in _PATTERNS if name in given},
        "arguments": tuple(_argument(each, f"{place}.arg", field) for each in listed if each is not None),
    }


def _pattern(given: Any, place: str, field: str) -> str:
    if not isinstance(given, str) or not given.strip():
        raise RequestError(f"`{place}`: expected a regular expression as text", field=field)
    if len(given) > LONGEST_PATTERN:
        told = f"{len(given)} characters; {LONGEST_PATTERN} is the most: write several alternatives"
        raise RequestError(f"`{place}`: {told}", field=field)
    if _LOOKS_AROUND.search(given) or _REFERS_BACK.search(given.replace("\\\\", "")):
        told = "look-around and back-references cannot be checked in linear time: write what must not be into `unless`"
        raise RequestError(f"`{place}`: {told}", field=field)
    try:
        linear(given)
    except ValueError as error:
        told = f"no regular expression that can be checked: {' '.join(str(error).split())[:120]}"
        raise RequestError(f"`{place}`: {told}", field=field) from None
    return given


def _argument(given: Any, place: str, field: str) -> ArgumentTest:
    told = f'expected {{"name": ..., and one of {", ".join(_ARGUMENT)}}}'
    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str) or not given["name"]:
        raise RequestError(f"`{place}`: {told}", field=field)
    tests = {name: given[name] for name in _ARGUMENT if name in given}
    if not tests or set(given) - {"name", *_ARGUMENT}:
        raise RequestError(f"`{place}`: {told}", field=field)
    for name in ("over", "under"):
        if name in tests and (isinstance(tests[name], bool) or not isinstance(tests[name], int | float)):
            raise RequestError(f"`{place}.{name}`: expected a number", field=field)
    if not isinstance(tests.get("missing", True), bool):
        raise RequestError(f"`{place}.missing`: expected true or false", field=field)
    if "matches" in tests:
        tests["matches"] = _pattern(tests["matches"], f"{place}.matches", field)
    return ArgumentTest(given["name"], **tests)


# ---------------------------------------------------------------- compiled


def linear(pattern: str) -> str:
    """The pattern as it is searched: without regard to case; white space is none inside a word (U+00A0).

    Raises ValueError where it cannot run in linear time.
    """
    import jsonschema_rs

    searched = f"(?i){white_space_between_words(pattern)}"
    options = jsonschema_rs.RegexOptions(size_limit=1_000_000)
    jsonschema_rs.Draft202012Validator({"pattern": searched}, pattern_options=options, offline=True)
    return searched


def linear_matcher(pattern: str) -> Callable[[str], bool]:
    """Does a text hold what a pattern seeks? As calls are held against it."""
    matches = validator_of({"type": "string", "pattern": linear(pattern)}, "when").is_valid
    return lambda text: bool(matches(text))


def white_space_between_words(pattern: str) -> str:
    """`\\s` and `\\S` of a pattern as the white space of a command line, which U+00A0 is none of."""
    if "\\s" not in pattern and "\\S" not in pattern:
        return pattern
    made: list[str] = []
    inside = False
    for part in re.findall(r"\\.|.", pattern, re.DOTALL):
        inside = part == "[" or (inside and part != "]")
        if part == "\\s":
            made.append(r" \t\n\r" if inside else r"[ \t\n\r]")
        elif part == "\\S" and not inside:
            made.append(r"[^ \t\n\r]")
        else:
            made.append(part)
    return "".join(made)


def of_given_calls(conditions: Conditions) -> Conditions:
    """Without the alternatives that mean calls without arguments: `always`, and an argument that is missing."""
    meant = (each for each in conditions.when if not each.always and not any(test.missing for test in each.arguments))
    return replace(conditions, when=tuple(meant))


def as_if_it_were_time(conditions: Conditions) -> Conditions:
    """As at a time at which the clock stops whatever it can: a call is tried at another time than it is made."""
    timed = [each.clock is not None and each.clock.of == "now" for each in conditions.when]
    when = tuple(replace(each, clock=None) if now else each for each, now in zip(conditions.when, timed, strict=True))
    unless = tuple(each for each in conditions.unless if each.clock is None or each.clock.of != "now")
    return Conditions(when, unless)


def spread(conditions: Conditions) -> Conditions:
    """The same, with each space of a `command` pattern also standing for white space inside a word.

    For patterns that look into a message: `-m fix: .*` is not met by `-m "fix: typo"`, whose message is one word.
    """
    return Conditions(*(tuple(map(_spread, each)) for each in (conditions.when, conditions.unless)))


def _spread(alternative: Alternative) -> Alternative:
    pattern = alternative.patterns.get("command")
    if pattern is None or " " not in pattern:
        return alternative
    made: list[str] = []
    inside = False
    for part in re.findall(r"\\.|.", pattern, re.DOTALL):
        inside = part == "[" or (inside and part != "]")
        made.append((f" {INSIDE}" if inside else f"[ {INSIDE}]") if part == " " else part)
    return replace(alternative, patterns={**alternative.patterns, "command": "".join(made)})


def as_written(conditions: Conditions) -> dict[str, Any]:
    """As a note has it; `read_conditions` reads it back."""
    named = {"when": conditions.when, "unless": conditions.unless}
    return {name: [each.as_written() for each in listed] for name, listed in named.items() if listed}
