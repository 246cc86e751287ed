"""The lists of the pages as CSV files: filtered, and not cut at one page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from toolmem.formats.csv_text import csv_text
from toolmem.memory.toolmem import Workspace
from toolmem.models.calls import ToolCallResult
from toolmem.models.decisions import Decision
from toolmem.models.rules import ToolMemoryRule
from toolmem.operations.results import Calls
from toolmem.server.console.call_views import find_calls
from toolmem.server.console.paging import Query
from toolmem.server.console.rule_views import MAX_DECISIONS, find_decisions, rules_by_state
from toolmem.server.console.tool_views import ToolRow, find_tools, tool_row
from toolmem.store.base import CALLS_AT_ONCE

MAX_ROWS = 10_000
MAX_TEXT = 50_000_000  # characters of calls in one file


class Table(Struct, frozen=True):
    """A list that can become a CSV file. `rows` finds its rows; at most `limit` are written."""

    columns: Sequence[str]
    rows: Callable[[Workspace, Query], Sequence[Any]]
    limit: int = MAX_ROWS


def listed_tools(memory: Workspace, query: Query) -> Sequence[Any]:
    """The tools that match the query, sorted as the query says."""
    return [tool_row(each) for each in find_tools(memory, query)]


def listed_rules(memory: Workspace, query: Query) -> Sequence[Any]:
    """The matching rules in the state that the query names; if it names none, those that hold."""
    found = rules_by_state(memory, query)
    return found.get(query.get("state", ""), found["holds"])


def listed_calls(memory: Workspace, query: Query) -> Sequence[Any]:
    """The newest calls that match the query, oldest first. `.next`: None if these are all."""
    listed = {**query, "of": query.get("tool", "")}
    rows: list[ToolCallResult] = []
    before: int | None = None
    size = 0
    while len(rows) < MAX_ROWS and size < MAX_TEXT:
        found = find_calls(memory, listed, before=before, limit=CALLS_AT_ONCE)
        rows = [*found, *rows]
        before = found.next
        size += sum(len(str(each.input)) + len(each.output) for each in found)
        if before is None:
            break
    kept = Calls(rows[-MAX_ROWS:])
    kept.next = before
    return kept


RULE_COLUMNS = [f"rule.{name}" for name in ToolMemoryRule.__struct_fields__]
TABLES = {
    "tools": Table(ToolRow.__struct_fields__[:-2], listed_tools),
    "calls": Table(ToolCallResult.__struct_fields__, listed_calls),
    "rules": Table(["state", "stopped", "last_stopped", *RULE_COLUMNS], listed_rules),
    "decisions": Table(Decision.__struct_fields__, find_decisions, MAX_DECISIONS),
}


def csv_of(name: str, memory: Workspace, query: Query) -> str:
    """Return the list `name` of TABLES as CSV. Its last line says if rows may be missing."""
    table = TABLES[name]
    found = table.rows(memory, query)
    rows = found[: table.limit]
    is_cut = len(rows) == table.limit or (isinstance(found, Calls) and found.next is not None)
    note = f"There may be more than these {len(rows):,}: filter the list." if is_cut else ""
    return csv_text(table.columns, rows, note)
