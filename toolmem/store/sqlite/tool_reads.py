"""Reading tool memories: names, records, figures, calls. Each function runs inside one read transaction."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import apsw

from toolmem.late import late_logger
from toolmem.light_models import LifetimeCounters
from toolmem.store.codec import GuidanceCache, Ranges, digest, moment, read_ranges, storables
from toolmem.store.semantics import ToolRow
from toolmem.store.sqlite.lookup import Judges, one, workspace_id
from toolmem.store.window import read_calls, read_figures
from toolmem.stored import StoredMemory

if TYPE_CHECKING:
    from toolmem.models import ToolCallResult

logger = late_logger("toolmem.store")

COUNTERS = "calls, successes, failures, judged, score_sum, time_calls, time_sum, token_calls, token_sum, since"
COUNTER_NAMES = COUNTERS.split(", ")[:-1]  # since aside
_COLUMNS = (
    "tools.id, name, memory_id, id_stem, version, guidance_version, first_seq, last_seq, covered, unjudged, "
    f"{COUNTERS}, time_created, time_modified"
)
_BY_NAME = f"SELECT {_COLUMNS} FROM tools WHERE workspace = ? AND name = ?"
_ALL = f"SELECT {_COLUMNS} FROM tools WHERE workspace = ? ORDER BY name"
# CROSS JOIN: the names come first, each is one step down the index of tools.
_BY_NAMES = (
    f"SELECT {_COLUMNS} FROM json_each(?) AS asked CROSS JOIN tools ON workspace = ? AND name = asked.value "
    "ORDER BY asked.key"
)

FIGURES = "calls.key & 0xffffffff, success, execution_failed, score, time_cost, token_cost, judge"


# -- tools and their records


def read_tool(db: apsw.Connection, workspace: int | None, name: str) -> ToolRow | None:
    row = None if workspace is None else one(db, _BY_NAME, workspace, name)
    return None if row is None else _tool_row(row)


def tool_numbered(db: apsw.Connection, number: int) -> ToolRow:
    """The tool of this number, which is there."""
    return _tool_row(one(db, f"SELECT {_COLUMNS} FROM tools WHERE id = ?", number))


def read_tools(db: apsw.Connection, workspace: str, names: Sequence[str] | None) -> list[ToolRow]:
    """In the order asked, missing ones absent; None: all, by name. Without their guidance: see `read_guidance`."""
    number = workspace_id(db, workspace)
    if number is None:
        return []
    if names is None:
        return [_tool_row(row) for row in db.execute(_ALL, (number,))]
    return [_tool_row(row) for row in db.execute(_BY_NAMES, (json.dumps(storables(names)), number))]


def read_guidance(db: apsw.Connection, row: ToolRow, cache: GuidanceCache) -> ToolRow:
    """The row with its guidance. No two tools bear one stem, and each new guidance raises the version."""
    row.guidance = cache.get((row.id_stem, row.guidance_version), row.name, lambda: guidance_text(db, row))
    return row


def guidance_text(db: apsw.Connection, row: ToolRow) -> str | None:
    """As JSON; None where there is none."""
    found = one(db, "SELECT value FROM guidance WHERE tool = ?", row.id)
    return None if found is None else str(found[0])


def _tool_row(row: Any) -> ToolRow:
    since = row[19]
    number, name, memory_id, id_stem, version, guidance_version, first_seq, last_seq = row[:8]
    return ToolRow(
        name,
        memory_id,
        id_stem,
        version,
        guidance_version,
        first_seq,
        last_seq,
        _ranges(name, row[8]),
        _ranges(name, row[9]),
        LifetimeCounters(
            **dict(zip(COUNTER_NAMES, row[10:19], strict=True)), since=None if since is None else moment(since)
        ),
        row[20],
        row[21],
        number,
    )


def _ranges(tool: str, text: str) -> Ranges:
    try:
        return read_ranges(text)
    except (ValueError, TypeError):
        logger.error("the coverage of tool %r is damaged: its kept calls count as new", tool)
        return []


def tool_names(db: apsw.Connection, workspace: str) -> list[str]:
    number = workspace_id(db, workspace)
    rows = db.execute("SELECT name FROM tools WHERE workspace = ? ORDER BY name", (number,))
    return [str(name) for (name,) in rows]


def known_ids(db: apsw.Connection, workspace: str, tool: str, ids: Sequence[str]) -> set[str]:
    row = read_tool(db, workspace_id(db, workspace), tool)
    if row is None:
        return set()
    return given_ids(db, row, ids) | {call_id for call_id in ids if row.assigned(call_id)}


def given_ids(db: apsw.Connection, row: ToolRow, ids: Iterable[str]) -> set[str]:
    """Those of these ids that came with a call of this tool, kept or not."""
    sql = "SELECT 1 FROM call_ids WHERE tool = ? AND digest = ?"
    return {call_id for call_id in storables(ids) if one(db, sql, row.id, digest(call_id)) is not None}


def memories(
    db: apsw.Connection,
    workspace: str,
    tools: Sequence[str] | None,
    guidance: GuidanceCache,
    *,
    calls: bool = False,
    recent: int | None = None,
    seqs: Mapping[str, Sequence[int]] | None = None,
    known: Mapping[str, Hashable] | None = None,
) -> list[StoredMemory]:
    """See `MemoryStore.memories`. `guidance`: of one opening of the store."""
    judges = Judges(db)
    found = []
    for row in read_tools(db, workspace, tools):
        # No two tools bear one stem (`memory_id` may come back with a dump), and every commit raises the version.
        state = (guidance.opening, row.id_stem, row.version)
        rows = []
        if (known or {}).get(row.name) != state:
            rows = _rows_at(db, row, row.shown_seqs(recent, (seqs or {}).get(row.name)), calls)
        figures = read_figures(row, rows, judges.name) if rows else ()
        whole = read_calls(row, rows, judges.__getitem__) if rows and calls else ()
        found.append(StoredMemory(read_guidance(db, row, guidance).record(workspace), figures, whole, state))
    return found


def _rows_at(db: apsw.Connection, row: ToolRow, seqs: Sequence[int], payload: bool) -> list[Any]:
    """`seqs`: kept ones, ascending."""
    if not seqs:
        return []
    columns = f"{FIGURES}, payload FROM calls JOIN call_log USING (place)" if payload else f"{FIGURES} FROM calls"
    if isinstance(seqs, range):
        sql = f"SELECT {columns} WHERE calls.key BETWEEN ? AND ? ORDER BY calls.key"
        return list(db.execute(sql, (key(row, seqs.start), key(row, seqs.stop - 1))))
    sql = f"SELECT {columns} WHERE calls.key = ?"
    return [values for seq in seqs for values in db.execute(sql, (key(row, seq),))]


def key(row: ToolRow, seq: int) -> int:
    return row.id << 32 | seq


def kept_calls(db: apsw.Connection, row: ToolRow, seqs: Sequence[int]) -> dict[int, ToolCallResult]:
    """Those of these seqs that are kept and readable."""
    rows = _rows_at(db, row, row.shown_seqs(None, seqs), payload=True)
    return {call.seq or 0: call for call in read_calls(row, rows, Judges(db).__getitem__)}
