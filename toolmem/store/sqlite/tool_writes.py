"""Writing tool memories: steps carried out, and deletion. Each function runs inside one write transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from toolmem.store.codec import GuidanceCache, digest, micros, storables, write_ranges
from toolmem.store.semantics import Found, Request, Step, ToolRow
from toolmem.store.sqlite import call_log, documents
from toolmem.store.sqlite.lookup import one, require_workspace_id, workspace_id
from toolmem.store.sqlite.tool_reads import (
    COUNTER_NAMES,
    COUNTERS,
    given_ids,
    kept_calls,
    read_guidance,
    read_tool,
)

if TYPE_CHECKING:
    from toolmem.protocols import EmbedderIdentity
    from toolmem.stored import LogLimits

T = TypeVar("T")


def commit(
    db: apsw.Connection,
    request: Request[T],
    guidance: GuidanceCache,
    embedder: EmbedderIdentity | None,
    limits: LogLimits,
) -> Step[T]:
    """Decide a prepared request on what is there, and carry the step out."""
    number = workspace_id(db, request.workspace)
    row = read_tool(db, number, request.tool) if request.addressable else None
    if row is None:
        step = request.decide(Found(taken=_is_taken(db, number, request.memory_id)))
    else:
        read_guidance(db, row, guidance)
        known = given_ids(db, row, request.ids)
        step = request.decide(Found(row, known, kept_calls(db, row, request.seqs) if request.seqs else {}))
    if step.row is not None:
        number = number or require_workspace_id(db, request.workspace)
        _carry_out(db, number, step.row, step, limits)
        if step.document is not None:
            documents.write(db, number, documents.GUIDANCE, "", request.tool, step.document, request.now, embedder)
    return step


def _is_taken(db: apsw.Connection, workspace: int | None, memory_id: str) -> bool:
    sql = "SELECT 1 FROM tools WHERE workspace = ? AND memory_id = ?"
    return bool(memory_id) and one(db, sql, workspace, memory_id) is not None


def _carry_out(db: apsw.Connection, workspace: int, row: ToolRow, step: Step[Any], limits: LogLimits) -> None:
    _write_row(db, workspace, row)
    if step.leaving is not None:
        call_log.drop(db, workspace, row, step.leaving)
    if step.new:
        call_log.write(db, workspace, row, step.new, limits)
    if step.replaced:
        call_log.judge_again(db, row, step.replaced)
    ids = [(row.id, digest(call_id)) for call_id in step.ids]
    db.executemany("INSERT OR IGNORE INTO call_ids (tool, digest) VALUES (?, ?)", ids)
    if step.guidance is not None:
        db.execute("INSERT OR REPLACE INTO guidance (tool, value) VALUES (?, ?)", (row.id, step.guidance))


def _write_row(db: apsw.Connection, workspace: int, row: ToolRow) -> None:
    """Insert (id 0) or update."""
    since = row.counters.since
    values = (
        row.version,
        row.guidance_version,
        row.first_seq,
        row.last_seq,
        write_ranges(row.covered),
        write_ranges(row.unjudged),
        *(getattr(row.counters, name) for name in COUNTER_NAMES),
        None if since is None else micros(since),
        row.time_modified,
    )
    if row.id:
        db.execute(_UPDATE, (*values, row.id))
    else:
        db.execute(_INSERT, (*values, workspace, row.name, row.memory_id, row.id_stem, row.time_created))
        row.id = db.last_insert_rowid()


_WRITTEN = f"version, guidance_version, first_seq, last_seq, covered, unjudged, {COUNTERS}, time_modified"
_UPDATE = f"UPDATE tools SET {', '.join(f'{column} = ?' for column in _WRITTEN.split(', '))} WHERE id = ?"
_INSERT = (
    f"INSERT INTO tools ({_WRITTEN}, workspace, name, memory_id, id_stem, time_created) "
    f"VALUES ({', '.join('?' * (len(_WRITTEN.split(', ')) + 5))})"
)


def delete_memories(db: apsw.Connection, workspace: str, memory_ids: Sequence[str]) -> list[str]:
    number = workspace_id(db, workspace)
    deleted = []
    for memory_id in storables(memory_ids):
        found = one(db, "SELECT id, name FROM tools WHERE workspace = ? AND memory_id = ?", number, memory_id)
        if number is not None and found is not None:
            delete_tool(db, number, found[0])
            documents.remove(db, number, documents.GUIDANCE, "", found[1])
            deleted.append(memory_id)
    return deleted


def delete_tool(db: apsw.Connection, workspace: int, tool: int) -> None:
    call_log.delete_tool(db, workspace, tool)
    db.execute("DELETE FROM tools WHERE id = ?", (tool,))
    db.execute("DELETE FROM guidance WHERE tool = ?", (tool,))
    db.execute("DELETE FROM call_ids WHERE tool = ?", (tool,))
