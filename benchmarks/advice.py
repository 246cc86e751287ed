"""How often advice at an error names a repair that then worked, and whether its lines are true.

`guidance.py` publishes both.

At each failure that a later call of the tool repaired, the lines are asked for that
`advise_tool_call` gives on this error, of the calls that had ended by then: does one of them name a
repair, for this error? The recordings are those on which the advice was made.

A line may say of a parameter that calls that worked gave another value, or none. It is false where
one of them, which did the same, gave the value of the failed call. Which lines say so is read from
their fields and from the calls, so that new words for it are checked as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from shared import Table, judged_calls

from toolmem.guidance.advice import BUDGET, MAX_CALLS, Known, advice_lines
from toolmem.guidance.observations import arguments_of
from toolmem.guidance.shown import BULLET, within
from toolmem.models.calls import ToolCallResult
from toolmem.models.guidance import Guidance, Line
from toolmem.research.backtest import by_tool, is_named, repaired_failures

# tool ("": all), calls, goal
RECORDINGS = {
    "intercode": ("sql_execute", 1_000, 0.90),
    "sample": ("", 2_000, 0.79),
    "tau_bench": ("", 10_000, 0.85),
}
MAX_FAILURES = 80  # of one tool; of more only some are asked about, evenly spread
SOME = 30
ACTIONS = ("action", "operation", "op", "command")  # one word in them says what a call does


def measure(calls: list[ToolCallResult]) -> tuple[int, int]:
    """How many repaired failures there are, and of how many the advice names a repair."""
    places = {id(call): place for place, call in enumerate(calls)}
    asked = named = 0
    for own in by_tool(calls).values():
        for one in repaired_failures(own):
            call = own[one.position]
            before = own[: one.position][-MAX_CALLS:]
            around = calls[: places[id(call)]][-MAX_CALLS:]
            lines = within(advice_lines(Known(before, around), call), BUDGET)
            text = "\n".join(BULLET + line.text for line in lines)
            guidance = Guidance(text=text, author="", lines=lines)
            asked += 1
            named += is_named(one, guidance, 10 * BUDGET)
    return asked, named


def table() -> Table:
    rows = []
    for name, (tool, limit, goal) in RECORDINGS.items():
        chosen = [call for call in judged_calls(name) if tool in ("", call.tool_name)]
        asked, named = measure(chosen[:limit])
        rows.append((name, asked, named / asked, goal))
    columns = ("recording", "repaired failures", "named", "goal")
    return Table("Repairs named by advice at the error, in 200 tokens", columns, rows)


class Asked(NamedTuple):
    """The lines at one failure, and the calls of the tool that they were read from."""

    call: ToolCallResult
    before: Sequence[ToolCallResult]
    lines: Sequence[Line]


@cache
def asked_in(name: str) -> list[Asked]:
    """All lines at the failures of a recording; of a tool with many at some of them."""
    calls = judged_calls(name)
    places = {id(call): place for place, call in enumerate(calls)}
    found = []
    for own in by_tool(calls).values():
        failures = [place for place, call in enumerate(own) if call.execution_failed]
        step = len(failures) // SOME if len(failures) > MAX_FAILURES else 1
        for place in failures[::step]:
            call, before = own[place], own[:place][-MAX_CALLS:]
            around = calls[: places[id(call)]][-MAX_CALLS:]
            found.append(Asked(call, before, advice_lines(Known(before, around), call)))
    return found


def comparisons(
    line: Line, calls: Sequence[ToolCallResult], asked: ToolCallResult | None = None
) -> Iterator[tuple[str, bool]]:
    """Whether it is false what a line says of each parameter that failed calls gave.

    Either the calls behind it worked, and it is about the call `asked`; or they failed, and it
    shows no arguments that worked. (Where it does, it tells of that call alone.)
    """
    behind = [call for call in calls if call.id in line.call_ids]
    failed = [call for call in behind if call.execution_failed]
    if line.kind != "failure" or line.worked or not behind or not (failed or asked):
        return
    # A line that says where the value came from after a failure compares it with no other call.
    sourced = {repair.path for repair in line.repairs if repair.kind == "source" and failed}
    changed = {repair.path for repair in line.repairs if repair.kind == "changed"} - sourced
    dropped = {repair.path for repair in line.repairs if repair.kind == "dropped"}
    worked = [call for call in calls if not call.execution_failed]
    for path in sorted(changed if failed else changed | dropped):
        pairs = [
            (values_at(arguments_of(one.input), path), values_at(arguments_of(other.input), path))
            for one in (failed or [asked])
            for other in worked
            if acts_alike(one, other)
        ]
        # That a parameter was not given at all is refuted by any value.
        is_false = any(a and b and (a == b or path not in changed) for a, b in pairs)
        if any(a for a, _ in pairs):
            yield line.text, is_false


def values_at(given: Any, path: str) -> list[Any]:
    """The values at a path such as `payment.id` or `flights[].date`."""
    name, _, rest = path.partition(".")
    value = given.get(name.removesuffix("[]")) if isinstance(given, dict) else None
    if value is None or not rest:
        return [] if value is None else [value]
    inside = value if isinstance(value, list) else [value]
    return [found for each in inside for found in values_at(each, rest)]


def acts_alike(one: ToolCallResult, other: ToolCallResult) -> bool:
    """Whether two calls of a tool do the same, as far as one word of them says what they do."""
    first, second = arguments_of(one.input), arguments_of(other.input)
    words = [name for name in ACTIONS if len(str(first.get(name, "")).split()) == 1]
    return all(first[name] == second.get(name) for name in words)
