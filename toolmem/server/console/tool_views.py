"""What the first page and the pages of tools show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from toolmem.guidance.shown import statistics
from toolmem.memory.toolmem import Workspace
from toolmem.models.calls import CallFigures, ToolCallResult
from toolmem.models.decisions import Decision
from toolmem.models.guidance import Line
from toolmem.models.tools import LoggedCall, ToolRecord
from toolmem.operations.guidance import records_shown
from toolmem.pages.figures import main_failure, wilson_interval
from toolmem.server.access import Refused
from toolmem.server.console.call_views import find_calls
from toolmem.server.console.paging import Query, cut
from toolmem.server.console.rule_views import rule_rows
from toolmem.text.display import shown_name

Item = TypeVar("Item")

TREND = 60  # calls in a sparkline
SHOWN = 4  # rows of what waits and of what was stopped
MAX_DECISIONS = 1_000
SOON = timedelta(days=7)  # in which a rule that ends is told at home


class ToolRow(Struct, kw_only=True):
    """One tool's figures, of its kept calls."""

    tool_name: str
    calls: int
    failures: int
    silent_failures: int  # of them: the flag says success, and the answer shows a failure
    success_rate: float | None
    low: float  # 95 % interval of the success rate
    high: float
    avg_score: float | None
    avg_time_cost: float | None  # seconds
    avg_token_cost: float | None
    calls_ever: int
    new_calls: int  # after the newest that the guidance covers
    trend: list[bool] = []  # whether each of the newest calls failed, oldest first
    why: Line | None = None


def home(memory: Workspace, query: Query) -> dict[str, Any]:
    """What needs a person: requests, the tools that fail most, what the guard stopped."""
    store = memory.services.store()
    now = memory.services.clock.now()
    records = store.records(memory.workspace_id, guidance=False)
    records.sort(key=SORTS["failed"])
    first = [tool_row(each) for each in records[:5] if each.window.failed]
    _add_trends(memory, first)
    with_cards = records_shown(memory, [row.tool_name for row in first])
    guidance = {record.tool_name: record.guidance for record in with_cards}
    for row in first:
        row.why = main_failure(guidance.get(row.tool_name))
    every, decisions = memory.rules.every_rule(), memory.decisions(limit=MAX_DECISIONS)
    listed = rule_rows(every, decisions, now)
    stops = [each for each in reversed(decisions) if each.action in ("deny", "ask")]
    midnight = memory.rules.local_time().replace(hour=0, minute=0, second=0, microsecond=0)
    today = [each for each in stops if each.time >= midnight]
    newest = store.call_log(memory.workspace_id, newest=True, limit=1_000)
    behind = [(each.tool_name, _calls_since_guidance(each), each.kept) for each in records]
    return {
        "tools": len(records),
        "first": first,
        "failed": sum(each.window.failed for each in records),
        "calls": sum(each.window.calls for each in records),
        "waiting": [r for r in every if r.status == "request" or r.request],
        "stopping": sorted((r for r in listed if r.stopped), key=lambda r: -r.stopped)[:5],
        "holding": sum(row.state == "holds" for row in listed),
        "stopped": today,
        "is_cut": len(decisions) == MAX_DECISIONS and decisions[0].time >= midnight,
        "last": stops[0] if stops else None,
        "lost": sum(each.window.failed for each in records),
        "alarms": [],
        "retry": "",
        "SHOWN": SHOWN,
        "repeats": _repeats(decisions)[:5],
        "regressions": changed_inputs(newest)[:5],
        "ending": [r for r in every if r.expires_at and now < r.expires_at < now + SOON],
        "stale": [(name, new) for name, new, kept in behind if new >= max(20, kept // 5)],
        "unjudged": sum(len(record.unjudged) for record in records),
    }


SORTS: dict[str, Callable[[ToolRecord], Any]] = {
    "failed": lambda record: (-record.window.failed, record.tool_name),
    "tool": lambda record: record.tool_name,
    "share": lambda record: (-record.window.failed / (record.window.calls or 1), record.tool_name),
    "calls": lambda record: (-record.counters.calls, record.tool_name),
    "score": lambda record: (_average_score(record), record.tool_name),
    "time": lambda record: (
        -record.window.time_sum / (record.window.time_calls or 1),
        record.tool_name,
    ),
    "new": lambda record: (-_calls_since_guidance(record), record.tool_name),
}


def tools(memory: Workspace, query: Query) -> dict[str, Any]:
    """The tools, sorted and filtered."""
    page = cut(find_tools(memory, query), query)
    page["rows"] = [tool_row(each) for each in page["rows"]]
    _add_trends(memory, page["rows"])
    return {"trend": TREND, **page}


def find_tools(memory: Workspace, query: Query) -> list[ToolRecord]:
    """The records, without guidance, of the tools that a query asks for, in its order."""
    wanted = query.get("q", "").casefold()
    records = memory.services.store().records(memory.workspace_id, guidance=False)
    fit = [each for each in records if wanted in each.tool_name.casefold()]
    return sorted(fit, key=SORTS.get(query.get("sort", ""), SORTS["failed"]))


def tool(memory: Workspace, query: Query) -> dict[str, Any]:
    """One tool: its card, rules, decisions and calls."""
    name = query.get("name", "")
    store = memory.services.store()
    found = records_shown(memory, [name])
    if not found:
        raise Refused(404, f"no calls of a tool `{shown_name(name, 80)}` are kept")
    row = tool_row(found[0])
    _add_trends(memory, [row])
    window = store.windows(memory.workspace_id, [name], recent=1_000)[0]
    return {
        "row": row,
        "record": found[0],
        "guidance": found[0].guidance,
        "errors": _errors(window.calls),
        "rules": memory.tool_rule_list(name),
        "decisions": memory.decisions(tool_name=name, limit=5)[::-1],
        **find_calls(memory, {"tool": name}, limit=10),
    }


def _average_score(record: ToolRecord) -> float:
    """The average score; of a tool without verdicts one that comes after all others."""
    sums = record.window
    return sums.score_sum / sums.judged if sums.judged else 2.0


def tool_row(record: ToolRecord) -> ToolRow:
    sums = record.window
    low, high = wilson_interval(sums.worked, sums.worked + sums.failed)
    return ToolRow(
        tool_name=record.tool_name,
        **asdict(statistics(sums)),
        failures=sums.failed,
        low=low,
        high=high,
        calls_ever=record.counters.calls,
        new_calls=_calls_since_guidance(record),
    )


def _calls_since_guidance(record: ToolRecord) -> int:
    """`record.new` also counts older calls that no summary has read."""
    count = 0
    while count < len(record.new) and record.new[-1 - count] == record.last_seq - count:
        count += 1
    return count


def _add_trends(memory: Workspace, rows: Sequence[ToolRow]) -> None:
    names = [row.tool_name for row in rows]
    found = memory.services.store().windows(
        memory.workspace_id, names, recent=TREND, type=CallFigures
    )
    trends = {each.record.tool_name: [call.failed is True for call in each.calls] for each in found}
    for row in rows:
        row.trend = trends.get(row.tool_name, [])


def _errors(calls: Iterable[ToolCallResult]) -> list[tuple[str, int, ToolCallResult]]:
    """Error classes with their number of calls and the newest call, the most frequent first."""
    return _most_frequent((call.error_class or "other", call) for call in calls if call.failed)


def changed_inputs(log: Iterable[LoggedCall]) -> list[tuple[str, int, ToolCallResult]]:
    """Tools with inputs that worked and then failed: their number, and the newest such call.

    Only the same input shows that a tool changed; its rate follows the tasks and the agent.
    """
    newest: dict[tuple[str, bytes], tuple[bool, ToolCallResult]] = {}
    for each in log:
        call = each.call
        key = (call.tool_name, msgspec.json.encode(call.input))
        worked = key in newest and (newest[key][0] or newest[key][1].failed is False)
        newest[key] = (worked, call)
    broke = (call for worked, call in newest.values() if worked and call.failed)
    return _most_frequent((call.tool_name, call) for call in broke)


def _repeats(decisions: Iterable[Decision]) -> list[tuple[str, int, Decision]]:
    """Tools whose failed calls were made again unchanged, the most frequent first."""
    repeats = (d for d in decisions if any(source.kind == "repeat" for source in d.sources))
    return _most_frequent((each.tool_name, each) for each in repeats)


def _most_frequent(named: Iterable[tuple[str, Item]]) -> list[tuple[str, int, Item]]:
    """Names with the number of their items and the last one, the most frequent first."""
    groups: dict[str, list[Item]] = {}
    for name, item in named:
        groups.setdefault(name, []).append(item)
    return sorted(((n, len(g), g[-1]) for n, g in groups.items()), key=lambda each: -each[1])
