"""Conditions in plain words, for who looks at a rule. Nothing reads these words back."""

from __future__ import annotations

from collections.abc import Sequence

from toolmem.guard.alternatives import Alternative, ArgumentTest, Conditions
from toolmem.guard.histories import EarlierTest, History, MoreThan
from toolmem.guard.moments import DAYS, ClockTest
from toolmem.guard.patterns_in_words import pattern_in_words
from toolmem.readers.plain_text import plain

_LONGEST = 300  # characters of what is missing

_NOUNS = {
    "command": "a command like",
    "word": "one with the word",
    "path": "a file like",
    "target": "a target like",
    "text": "a text like",
    "tool": "by a tool like",
}


def alternatives_in_words(conditions: Conditions) -> str:
    """Which calls are meant, and which of them are let through."""
    through = let_through_in_words(conditions)
    return f"{stopped_in_words(conditions)}; not {through}" if through else stopped_in_words(conditions)


def stopped_in_words(conditions: Conditions) -> str:
    """Which calls `when` means."""
    return " or ".join(map(_alternative, conditions.when))


def let_through_in_words(conditions: Conditions) -> str:
    """Which of them `unless` lets through; "" where none."""
    return " or ".join(map(_alternative, conditions.unless))


def missing_in_words(conditions: Conditions, history: History | None) -> str:
    """Which earlier calls would let a call through that is stopped, as a reason says it; "" where none would."""
    tests = dict.fromkeys(each.earlier for each in conditions.unless if each.earlier is not None)
    if not tests:
        return ""
    told = ", or ".join(f"{_act(test.tests)}{_must(test)}" for test in tests)
    unknown = "" if history is not None and history.known else "; nothing is known here of earlier calls"
    return f"First {plain(told, _LONGEST)}{unknown}."


def _act(tests: Alternative) -> str:
    """What is to be done, in as few words as the tests allow."""
    match dict(tests.patterns):
        case {"command": command, **others} if not tests.arguments and set(others) <= {"tool"}:
            return f"run {pattern_in_words(command)}"  # by whichever tool: only a shell has commands
        case {"tool": tool, **others} if not tests.arguments and not others:
            return f"call {pattern_in_words(tool)}"
    return f"make a call with {_alternative(tests)}"


def _must(test: EarlierTest) -> str:
    after = "after your last edit" if test.since_writes else ""
    worked = "it must work" if test.worked else ""
    told = " ".join(filter(None, (worked, after)))
    return f" ({told})" if told else ""


def _ending(test: EarlierTest) -> str:
    worked = "worked" if test.worked else "run"
    return f"{worked} since files were last written" if test.since_writes else f"{worked} in this conversation"


def _earlier(test: EarlierTest) -> str:
    return f"after a call with {_tests_of(test)} has {_ending(test)}"


def _tests_of(test: EarlierTest) -> str:
    return _alternative(test.tests)


def more_than_in_words(test: MoreThan) -> str:
    return f"beyond {test.calls:,} such calls {_in_words(test.per)}"


def _in_words(per: str) -> str:
    if per in ("conversation", "day"):
        return f"a {per}"
    seconds = int(per[:-1])
    for length, name in ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        number, rest = divmod(seconds, length)
        if number and not rest:
            return f"in {number:,} {name}s" if number > 1 else f"in one {name}"
    return f"in {per}"


def _alternative(each: Alternative) -> str:
    parts = [f"{_NOUNS[name]} {pattern_in_words(pattern)}" for name, pattern in each.patterns.items() if name != "tool"]
    parts += map(_argument, each.arguments)
    parts = parts or ["every call"]
    if "tool" in each.patterns:
        parts.append(f"{_NOUNS['tool']} {pattern_in_words(each.patterns['tool'])}")
    if each.clock is not None:
        parts.append(_clock(each.clock))
    told = " and ".join(parts)
    if each.earlier is not None:
        told = _earlier(each.earlier) if parts == ["every call"] else f"{told} {_earlier(each.earlier)}"
    return told if each.more_than is None else f"{told} {more_than_in_words(each.more_than)}"


def _argument(test: ArgumentTest) -> str:
    told: Sequence[str] = [
        *([f"over {test.over:,g}"] if test.over is not None else []),
        *([f"under {test.under:,g}"] if test.under is not None else []),
        *([f"like {pattern_in_words(test.matches)}"] if test.matches else []),
        *([] if test.missing is None else ["not given" if test.missing else "given"]),
    ]
    return f"`{test.name}` {' and '.join(told)}"


def _clock(clock: ClockTest) -> str:
    days = "/".join(DAYS[each] for each in clock.weekdays)
    span = f"{clock.start:%H:%M} to {clock.end:%H:%M}" if clock.start is not None and clock.end is not None else ""
    when = " ".join(part for part in (days, span) if part)
    return f"at {when}" if clock.of == "now" else f"`{clock.of}` at {when}"
