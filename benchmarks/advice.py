"""How often advice at an error names a repair that then worked, within 200 tokens.

`guidance.py` publishes it.

At each failure that a later call of the tool repaired, the lines are asked for that
`advise_tool_call` gives on this error, of the calls that had ended by then: does one of them name a
repair, for this error? The recordings are those on which the advice was made.
"""

from __future__ import annotations

from backtest import is_named, repaired_failures
from shared import Table, recorded_calls

from toolmem.guidance.advice import BUDGET, MAX_CALLS, Known, at_error
from toolmem.guidance.shown import BULLET, within
from toolmem.judge.check import check
from toolmem.models.calls import ToolCallResult
from toolmem.models.guidance import Guidance

# tool ("": all), calls, goal
RECORDINGS = {
    "intercode": ("sql_execute", 1_000, 0.90),
    "sample": ("", 2_000, 0.79),
    "tau_bench": ("", 10_000, 0.85),
}


def measure(calls: list[ToolCallResult]) -> tuple[int, int]:
    """How many repaired failures there are, and of how many the advice names a repair."""
    places = {id(call): place for place, call in enumerate(calls)}
    tools: dict[str, list[ToolCallResult]] = {}
    for call in calls:
        tools.setdefault(call.tool_name, []).append(call)
    asked = named = 0
    for own in tools.values():
        for one in repaired_failures(own):
            call = own[one.position]
            before = own[: one.position][-MAX_CALLS:]
            around = calls[: places[id(call)]][-MAX_CALLS:]
            lines = within(at_error(Known(before, around), call), BUDGET)
            text = "\n".join(BULLET + line.text for line in lines)
            guidance = Guidance(text=text, author="", lines=lines)
            asked += 1
            named += is_named(one, guidance, 10 * BUDGET)
    return asked, named


def table() -> Table:
    rows = []
    for name, (tool, limit, goal) in RECORDINGS.items():
        chosen = [call for call in recorded_calls(name) if tool in ("", call.tool_name)]
        asked, named = measure([call.judged(check(call)) for call in chosen[:limit]])
        rows.append((name, asked, named / asked, goal))
    columns = ("recording", "repaired failures", "named", "goal")
    return Table("Repairs named by advice at the error, in 200 tokens", columns, rows)
