"""Read the values of the home page and the pages of tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from toolmem.guidance.shown import main_failure
from toolmem.memory.toolmem import Workspace
from toolmem.models.calls import OUTCOMES, CallFigures, ToolCallResult
from toolmem.models.decisions import Decision
from toolmem.models.guidance import Line
from toolmem.models.protocols import KeepsRuleCopies
from toolmem.models.rules import ToolMemoryRule
from toolmem.operations.guidance import records_shown
from toolmem.operations.results import ToolOverview
from toolmem.pages.intervals import wilson_interval
from toolmem.server.access import Refused
from toolmem.server.console.call_views import find_calls
from toolmem.server.console.paging import Query, cut
from toolmem.server.console.rule_views import MAX_DECISIONS
from toolmem.store.base import CALLS_AT_ONCE
from toolmem.text.display import shown_name

Item = TypeVar("Item")

TREND = 60  # calls in a sparkline
FIRST = 5  # tools to fix first
SHOWN = 4  # requests, and stopped calls, on the home page
MAX_CALLS = 1_000  # newest calls that are searched for inputs that broke
SOON = timedelta(days=7)  # the home page has rules that end within it


class ToolRow(Struct, kw_only=True):
    """A row of the list of tools, with figures of the calls in the tool's window."""

    tool_name: str
    calls: int
    failures: int
    silent_failures: int  # failures whose flag says success
    success_rate: float | None
    low: float  # 95 % interval of the success rate
    high: float
    avg_score: float | None
    avg_time_cost: float | None  # seconds
    avg_token_cost: float | None
    calls_ever: int
    new_calls: int  # since the guidance was written
    no_use: int  # calls that worked and were scored 0
    trend: list[bool] = []  # whether each of the newest calls failed, oldest first
    why: Line | None = None


def home(memory: Workspace, query: Query) -> dict[str, Any]:
    """Values of the home page: requests, tools that fail most, calls that the guard stopped."""
    now = memory.rules.local_time()
    every = memory.tools(sort="lost", guidance=False)
    first = [tool_row(each) for each in every[:FIRST] if each.lost]
    _add_trends(memory, first)
    guidance = {each.tool_name: each.guidance for each in _records(memory, first)}
    for row in first:
        row.why = main_failure(guidance.get(row.tool_name))
    rules = memory.tool_rules()
    decisions = memory.decisions(limit=MAX_DECISIONS)
    stops = [each for each in reversed(decisions) if each.action in ("deny", "ask")]
    midnight = memory.rules.end_of_day(now.date() - timedelta(days=1))
    today = [each for each in stops if each.time >= midnight]
    by_id = {each.rule.id: each.rule for each in rules}
    return {
        "alarms": _alarms(memory),
        "tools": len(every),
        "first": first,
        "failed": sum(each.failed for each in every),
        "lost": sum(each.lost for each in every),
        "calls": sum(each.window.calls for each in every),
        "waiting": [e.rule for e in rules if e.state == "waiting" or e.rule.request],
        "stopped": today,
        "is_cut": len(decisions) == MAX_DECISIONS and decisions[0].time >= midnight,
        "last": stops[0] if stops else None,
        "sentences": {each.id: _sentences(each, by_id) for each in today[:SHOWN]},
        "stopping": [each for each in rules if each.stopped][:FIRST],
        "holding": sum(each.state == "holds" for each in rules),
        "repeats": _repeats(decisions)[:FIRST],
        "regressions": changed_inputs(_newest_calls(memory))[:FIRST],
        "ending": [
            each.rule
            for each in rules
            if each.state == "holds" and each.rule.expires_at and each.rule.expires_at < now + SOON
        ],
        "stale": [
            (each.tool_name, each.new_calls)
            for each in every
            if each.new_calls >= max(20, each.window.calls // 5)
        ],
        "unjudged": sum(each.unjudged for each in every),
        "SHOWN": SHOWN,
    }


def _sentences(decision: Decision, rules: Mapping[str, ToolMemoryRule]) -> list[str]:
    """Return the sentences of a decision's rules as they then were, without deleted rules."""
    found = []
    for rule in (rules[each] for each in decision.rule_ids if each in rules):
        later = (each.before for each in rule.changes if each.time > decision.time)
        found.append(next((each["rule"] for each in later if "rule" in each), rule.rule))
    return found


def _alarms(memory: Workspace) -> list[str]:
    """Warnings of the home page: rules were lost, or the store is not trusted."""
    store = memory.services.store()
    lost = memory.services.guard(memory.workspace_name).lost
    if isinstance(store, KeepsRuleCopies):
        lost = store.rule_losses().get(memory.workspace_name, "")
    return [each for each in (lost, store.untrusted) if each]


def tools(memory: Workspace, query: Query) -> dict[str, Any]:
    """Values of the page of tools, sorted and filtered as the query says."""
    page = cut(find_tools(memory, query), query)
    page["rows"] = [tool_row(each) for each in page["rows"]]
    _add_trends(memory, page["rows"])
    return {"trend": TREND, **page}


def find_tools(memory: Workspace, query: Query) -> list[ToolOverview]:
    """The tools that match the query, sorted as the query says, without their guidance."""
    sort: Any = query.get("sort") or "lost"
    return memory.tools(text=query.get("q") or None, sort=sort, guidance=False)


def tool(memory: Workspace, query: Query) -> dict[str, Any]:
    """Values of the page of a tool: its guidance, rules, decisions and calls."""
    name = query.get("name", "")
    found = [each for each in memory.tools(text=name, guidance=False) if each.tool_name == name]
    if not found:
        raise Refused(404, f"no calls of a tool `{shown_name(name, 80)}` are kept")
    row = tool_row(found[0])
    _add_trends(memory, [row])
    records = _records(memory, [row])
    window = memory.calls([name], recent=MAX_CALLS)
    return {
        "row": row,
        "guidance": records[0].guidance if records else None,
        "errors": _errors(window),
        "rules": memory.tool_rule_list(name),
        "decisions": memory.decisions(tool_name=name, limit=5)[::-1],
        "found": find_calls(memory, {"of": name}, limit=10)[::-1],
    }


def _records(memory: Workspace, rows: Sequence[ToolRow]) -> list[Any]:
    """The records of tools, with the guidance that agents are shown."""
    return records_shown(memory, [row.tool_name for row in rows]) if rows else []


def tool_row(tool: ToolOverview) -> ToolRow:
    low, high = wilson_interval(tool.worked, tool.worked + tool.failed)
    return ToolRow(
        tool_name=tool.tool_name,
        **asdict(tool.window),
        failures=tool.failed,
        low=low,
        high=high,
        calls_ever=tool.calls_ever,
        new_calls=tool.new_calls,
        no_use=tool.no_use,
    )


def _add_trends(memory: Workspace, rows: Sequence[ToolRow]) -> None:
    """Add to each row which of the newest calls failed."""
    names = [row.tool_name for row in rows]
    found = memory.services.store().windows(
        memory.workspace_name, names, recent=TREND, type=CallFigures
    )
    calls = {each.record.tool_name: each.calls for each in found}
    for row in rows:
        row.trend = [each.failed is True for each in calls.get(row.tool_name, [])]


def _errors(calls: Iterable[ToolCallResult]) -> list[tuple[str, int, ToolCallResult]]:
    """Error classes with their number of calls and the newest call, the most frequent first."""
    return _most_frequent((call.error_class or "other", call) for call in calls if call.failed)


def _newest_calls(memory: Workspace) -> Iterator[ToolCallResult]:
    """The newest calls, newest first, read in pages."""
    before: int | None = None
    for _ in range(MAX_CALLS // CALLS_AT_ONCE):
        page = memory.calls(before=before, limit=CALLS_AT_ONCE)
        yield from reversed(page)
        before = page.next
        if before is None:
            break


def changed_inputs(calls: Iterable[ToolCallResult]) -> list[tuple[str, int, ToolCallResult]]:
    """Find inputs that worked and now fail, as (tool, number of such inputs, newest call).

    Only equal inputs show that a tool changed: its failure rate depends on tasks, too.
    `calls`: newest first.
    """
    newest: dict[bytes, ToolCallResult | None] = {}  # by tool and input; None: it did not fail
    broke: set[bytes] = set()
    for call in calls:
        key = blake2b(msgspec.json.encode((call.tool_name, call.input))).digest()
        failure = newest.setdefault(key, replace(call, output="") if call.failed else None)
        if failure and OUTCOMES["worked"](call):
            broke.add(key)
    found = [call for key, call in newest.items() if call and key in broke]
    return _most_frequent((call.tool_name, call) for call in reversed(found))


def _repeats(decisions: Iterable[Decision]) -> list[tuple[str, int, Decision]]:
    """Count by tool the decisions on repeated failed calls; the most frequent tool first."""
    repeats = (d for d in decisions if any(source.kind == "repeat" for source in d.sources))
    return _most_frequent((each.tool_name, each) for each in repeats)


def _most_frequent(named: Iterable[tuple[str, Item]]) -> list[tuple[str, int, Item]]:
    """Return each name with its number of items and its last item, most frequent name first."""
    groups: dict[str, list[Item]] = {}
    for name, item in named:
        groups.setdefault(name, []).append(item)
    return sorted(((n, len(g), g[-1]) for n, g in groups.items()), key=lambda each: -each[1])
