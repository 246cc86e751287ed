"""Reading tool memories: names, records, figures, calls. Each function runs inside one read transaction."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw
from pydantic import TypeAdapter

from toolmem.models import CallFigures, ToolCallResult, ToolRecord
from toolmem.store.codec import clip, digest, members, read_call, storable
from toolmem.store.sqlite.caches import GuidanceCache
from toolmem.store.sqlite.lookup import Judges, one, workspace_id
from toolmem.store.sqlite.tool_rows import ToolRow, add_guidance, read_guidance, read_tool, read_tools, record_with
from toolmem.stored import StoredMemory

logger = logging.getLogger("toolmem.store")

_MANY_FIGURES = TypeAdapter(list[CallFigures])  # all of a window in one go: three times as fast as one by one
_FIGURE_FIELDS = ("seq", "success", "execution_failed", "score", "time_cost", "token_cost", "judge")
_FIGURES = "key & 0xffffffff, success, execution_failed, score, time_cost, token_cost, judge"


def tool_names(db: apsw.Connection, workspace: str) -> list[str]:
    number = workspace_id(db, workspace)
    rows = db.execute("SELECT name FROM tools WHERE workspace = ? ORDER BY name", (number,))
    return [str(name) for (name,) in rows]


def known_ids(db: apsw.Connection, workspace: str, tool: str, ids: Sequence[str]) -> set[str]:
    row = read_tool(db, workspace_id(db, workspace), tool)
    return set() if row is None else {call_id for call_id in ids if is_known(db, row, call_id)}


def is_known(db: apsw.Connection, row: ToolRow, call_id: str) -> bool:
    """Whether a call of this id was ever stored: the id is one that the store gave away, or one that it was given."""
    if not storable(call_id):
        return False
    if row.assigned(call_id):
        return True
    return one(db, "SELECT 1 FROM call_ids WHERE tool = ? AND digest = ?", row.id, digest(call_id)) is not None


def records(db: apsw.Connection, workspace: str, tools: Sequence[str] | None, cache: GuidanceCache) -> list[ToolRecord]:
    names = None if tools is None else list(tools)
    return [_record(db, workspace, row, cache) for row in read_tools(db, workspace, names)]


def _record(db: apsw.Connection, workspace: str, row: ToolRow, cache: GuidanceCache) -> ToolRecord:
    guidance = cache.get(row.id_stem, row.guidance_version, lambda: read_guidance(add_guidance(db, row)))
    return record_with(workspace, row, guidance)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `MemoryStore.memories` is asked for, beside the tools."""

    calls: bool
    recent: int | None
    seqs: Mapping[str, Sequence[int]] | None
    known: Mapping[str, Hashable]
    opening: Hashable  # of the store
    guidance: GuidanceCache

    def state(self, row: ToolRow) -> Hashable:
        """No two tools bear one stem (`memory_id` may come back with a dump), and every commit raises the version."""
        return self.opening, row.id_stem, row.version


def memories(db: apsw.Connection, workspace: str, tools: Sequence[str] | None, wanted: Wanted) -> list[StoredMemory]:
    judges = Judges(db)
    found = []
    for row in read_tools(db, workspace, None if tools is None else list(tools)):
        record, state = _record(db, workspace, row, wanted.guidance), wanted.state(row)
        if wanted.known.get(row.name) == state:
            found.append(StoredMemory(record, state=state))
            continue
        if wanted.seqs is not None and row.name in wanted.seqs:
            rows = _rows_at(db, row, wanted.seqs[row.name], wanted.calls)
        else:
            rows = _newest_rows(db, row, wanted.recent, wanted.calls)
        figures = tuple(_figures(row, rows, judges))
        calls = tuple(_readable_calls(row, rows, judges)) if wanted.calls else ()
        found.append(StoredMemory(record, figures, calls, state))
    return found


def _newest_rows(db: apsw.Connection, row: ToolRow, recent: int | None, payload: bool) -> list[Any]:
    first = row.first_seq if recent is None else max(row.first_seq, row.last_seq - max(recent, 0) + 1)
    columns = f"{_FIGURES}, payload" if payload else _FIGURES
    sql = f"SELECT {columns} FROM calls WHERE key BETWEEN ? AND ? ORDER BY key"
    return list(db.execute(sql, (row.key(first), row.key(row.last_seq))))


def _rows_at(db: apsw.Connection, row: ToolRow, seqs: Sequence[int], payload: bool) -> list[Any]:
    columns = f"{_FIGURES}, payload" if payload else _FIGURES
    sql = f"SELECT {columns} FROM calls WHERE key = ?"
    kept = [seq for seq in sorted(set(seqs)) if row.first_seq <= seq <= row.last_seq]
    return [values for seq in kept for values in db.execute(sql, (row.key(seq),))]


def _figures(row: ToolRow, rows: Iterable[Sequence[Any]], judges: Judges) -> list[CallFigures]:
    found = [dict(zip(_FIGURE_FIELDS, (*values[:6], judges.name(values[6])), strict=True)) for values in rows]
    try:
        return _MANY_FIGURES.validate_python(found)
    except ValueError:  # rare: look for the damaged ones
        return [each for fields in found for each in _readable_figures(row, fields)]


def _readable_figures(row: ToolRow, fields: dict[str, Any]) -> Iterable[CallFigures]:
    try:
        yield CallFigures.model_validate(fields)
    except ValueError:
        logger.error("the figures of call %r of tool %r are damaged and left out", fields["seq"], row.name)


def _readable_calls(row: ToolRow, rows: Iterable[Sequence[Any]], judges: Judges) -> Iterable[ToolCallResult]:
    covered = members(clip(row.covered, row.first_seq, row.last_seq))
    for values in rows:
        try:
            yield stored_call(row, values, judges, values[0] in covered)
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
            logger.error("call %d of tool %r is damaged and left out: %s", values[0], row.name, type(error).__name__)


def stored_call(row: ToolRow, values: Sequence[Any], judges: Judges, summarized: bool) -> ToolCallResult:
    """`values`: seq, the figures, the judge's number and the payload. Raises ValueError and its like on damage."""
    seq = values[0]
    return read_call(row.name, seq, values[1:6], values[7], judges[values[6]], row.assigned_id(seq), summarized)


def kept_call(db: apsw.Connection, row: ToolRow, seq: int) -> ToolCallResult | None:
    """One kept call; None where it has left the window."""
    for values in _rows_at(db, row, [seq], payload=True):
        return stored_call(row, values, Judges(db), summarized=False)
    return None
