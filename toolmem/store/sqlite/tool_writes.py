"""Writing tool memories: calls, guidance, verdicts, deletion. Each function runs inside one write transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from toolmem.errors import Conflict, RequestError
from toolmem.models import Guidance, ToolCallResult, ToolRecord, merge_ranges
from toolmem.protocols import EmbedderIdentity
from toolmem.store import documents
from toolmem.store.codec import (
    call_payload,
    check_call,
    clip,
    digest,
    lacks_verdict,
    micros,
    require_storable,
    require_unicode,
    without,
)
from toolmem.store.sqlite.lookup import judge_id, one, require_workspace_id, workspace_id
from toolmem.store.sqlite.tool_reads import is_known, kept_call
from toolmem.store.sqlite.tool_rows import ToolRow, count, count_outcome, fresh, read_tool, record_of, write_tool
from toolmem.stored import Appended, CallFailure, Document

# What a call may raise on its way to a row; everything else is the store's fault, not the call's.
CALL_FAULTS = (ValueError, TypeError, RecursionError, OverflowError)

MAX_SEQ = 2**32 - 1


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call that the store can keep, and its payload, made before the write lock is taken."""

    index: int
    call: ToolCallResult
    payload: str


Prepared = tuple[list[PreparedCall], list[CallFailure]]


def prepare(tool: str, calls: Iterable[ToolCallResult]) -> Prepared:
    """Check and encode each call; those that cannot be kept are named."""
    good: list[PreparedCall] = []
    bad: list[CallFailure] = []
    for index, call in enumerate(calls):
        try:
            require_unicode(tool)
            check_call(call, tool)
            if call.id is not None:
                require_unicode(call.id)
            good.append(PreparedCall(index, call, call_payload(call, call.id)))
        except CALL_FAULTS as error:
            bad.append(CallFailure(index, tool, _reason(error)))
    return good, bad


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else f"{error}"


def require_keep(keep: int) -> None:
    if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
        raise RequestError(f"keep: expected an integer >= 1, got {keep!r}", field="keep")


def append_calls(
    db: apsw.Connection,
    now: datetime,
    workspace: str,
    tool: str,
    prepared: Prepared,
    keep: int,
) -> Appended:
    good, failures = prepared
    row = read_tool(db, workspace_id(db, workspace), tool)
    new, duplicates = unseen(db, row, good)
    if not new:
        record = None if row is None else record_of(workspace, row)
        return Appended(record, 0, duplicates, 0, tuple(failures))
    if row is None:
        if not tool:
            raise RequestError("tool: expected a name, got ''", field="tool")
        row = fresh(tool, micros(now))
    number = require_workspace_id(db, workspace)
    admission = admit(row, new, keep)
    row.time_modified = micros(now)
    write_admission(db, number, row, admission)
    return Appended(record_of(workspace, row), len(new), duplicates, admission.trimmed, tuple(failures))


def unseen(
    db: apsw.Connection, row: ToolRow | None, prepared: Sequence[PreparedCall]
) -> tuple[list[PreparedCall], tuple[int, ...]]:
    """The calls that are new, and the positions of those whose id is known, from before or from earlier here."""
    new: list[PreparedCall] = []
    duplicates: list[int] = []
    seen: set[str] = set()
    for item in prepared:
        call_id = item.call.id
        if call_id is not None and (call_id in seen or (row is not None and is_known(db, row, call_id))):
            duplicates.append(item.index)
            continue
        new.append(item)
        if call_id is not None:
            seen.add(call_id)
    return new, tuple(duplicates)


@dataclass(frozen=True, slots=True)
class Admission:
    """What becomes of calls that a tool takes in: those to insert, by seq, and the keys of the rows to delete."""

    new: Sequence[PreparedCall]
    entering: Mapping[int, PreparedCall]
    leaving: tuple[int, int] | None
    trimmed: int  # calls that leave the window, or never enter it


def admit(row: ToolRow, new: Sequence[PreparedCall], keep: int) -> Admission:
    """Give each call its seq, count it, and move the window to the newest `keep`; nothing is written yet."""
    kept_before, old_first, old_last = row.kept, row.first_seq, row.last_seq
    row.last_seq = old_last + len(new)
    if row.last_seq > MAX_SEQ:
        raise RequestError(f"tool {row.name!r}: more than {MAX_SEQ:,} calls in one memory")
    row.first_seq = max(old_first, row.last_seq - keep + 1)
    if new:
        count(row.counters, [item.call for item in new])
    entering = {seq: item for seq, item in enumerate(new, old_last + 1) if seq >= row.first_seq}
    row.unjudged = merge_ranges([seq for seq, item in entering.items() if lacks_verdict(item.call)], row.unjudged)
    row.prune()
    last_gone = min(row.first_seq - 1, old_last)
    leaving = (old_first, last_gone) if last_gone >= old_first else None
    return Admission(new, entering, leaving, kept_before + len(new) - row.kept)


def write_admission(db: apsw.Connection, workspace: int, row: ToolRow, admission: Admission) -> None:
    """The tool's row, its calls, and the ids that they came with."""
    write_tool(db, workspace, row)
    if admission.leaving is not None:
        first, last = admission.leaving
        db.execute("DELETE FROM calls WHERE key BETWEEN ? AND ?", (row.key(first), row.key(last)))
    _insert_calls(db, row, admission.entering)
    ids = [(row.id, digest(item.call.id)) for item in admission.new if item.call.id is not None]
    db.executemany("INSERT OR IGNORE INTO call_ids (tool, digest) VALUES (?, ?)", ids)


def _insert_calls(db: apsw.Connection, row: ToolRow, seqs: Mapping[int, PreparedCall]) -> None:
    judges = {judge: judge_id(db, judge) for judge in {item.call.judge for item in seqs.values()}}
    db.executemany(
        "INSERT INTO calls (key, success, execution_failed, score, time_cost, token_cost, judge, payload) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                row.key(seq),
                item.call.success,
                item.call.execution_failed,
                item.call.score,
                item.call.time_cost,
                item.call.token_cost,
                judges[item.call.judge],
                item.payload,
            )
            for seq, item in seqs.items()
        ],
    )


def write_guidance(db: apsw.Connection, row: ToolRow, guidance: Guidance) -> None:
    row.guidance = guidance_json(guidance)
    db.execute("INSERT OR REPLACE INTO guidance (tool, value) VALUES (?, ?)", (row.id, row.guidance))


def guidance_json(guidance: Guidance) -> str:
    """Raises RequestError where the guidance holds what cannot be stored."""
    try:
        text = guidance.model_dump_json()
        require_unicode(text)
    except ValueError as error:
        raise RequestError(f"guidance: {error}", field="guidance") from error
    return text


def put_guidance(
    db: apsw.Connection,
    now: datetime,
    workspace: str,
    tool: str,
    guidance: Guidance,
    document: Document,
    guidance_version: int,
    embedder: EmbedderIdentity | None,
) -> ToolRecord:
    number = workspace_id(db, workspace)
    row = read_tool(db, number, tool)
    if row is None or number is None:
        raise Conflict(f"workspace {workspace!r}: tool {tool!r} is gone; read again and decide again")
    if row.guidance_version != guidance_version:
        raise Conflict(
            f"workspace {workspace!r}: the guidance of tool {tool!r} is at version {row.guidance_version}, "
            f"not at {guidance_version}; read again and decide again"
        )
    if guidance.created_at is None:
        guidance = guidance.model_copy(update={"created_at": now})
    row.guidance_version += 1
    row.covered = merge_ranges([], [*row.covered, *clip(merge_ranges(guidance.covered), row.first_seq, row.last_seq)])
    row.time_modified = micros(now)
    write_tool(db, number, row)
    write_guidance(db, row, guidance)
    documents.write(db, number, documents.GUIDANCE, "", tool, document, micros(now), embedder)
    return record_of(workspace, row)


def update_verdicts(
    db: apsw.Connection, now: datetime, workspace: str, tool: str, verdicts: Mapping[int, ToolCallResult]
) -> ToolRecord | None:
    number = workspace_id(db, workspace)
    row = read_tool(db, number, tool)
    if row is None or number is None:
        return None
    changed = [seq for seq, verdict in sorted(verdicts.items()) if _replace_verdict(db, row, seq, verdict)]
    if changed:
        row.covered = without(row.covered, changed)
        row.unjudged = without(row.unjudged, changed)
        row.unjudged = merge_ranges([seq for seq in changed if lacks_verdict(verdicts[seq])], row.unjudged)
        row.prune()
        row.guidance_version += 1
        row.time_modified = micros(now)
        write_tool(db, number, row)
    return record_of(workspace, row)


_JUDGEMENT = ("summary", "evaluation", "score", "evaluation_status", "execution_failed", "error_class", "judge")


def _replace_verdict(db: apsw.Connection, row: ToolRow, seq: int, verdict: ToolCallResult) -> bool:
    """False where the call is no longer kept (or its row is damaged, so that nothing of it can be kept)."""
    try:
        old = kept_call(db, row, seq)
    except CALL_FAULTS:
        return False
    if old is None:
        return False
    new = old.model_copy(update={name: getattr(verdict, name) for name in _JUDGEMENT})
    own_id = None if old.id == row.assigned_id(seq) else old.id
    try:
        check_call(new, row.name)
        payload = call_payload(new, own_id)
    except CALL_FAULTS as error:
        raise RequestError(f"verdicts[{seq}]: {_reason(error)}", field="verdicts") from error
    count_outcome(row.counters, old, -1)
    count_outcome(row.counters, new, 1)
    db.execute(
        "UPDATE calls SET execution_failed = ?, score = ?, judge = ?, payload = ? WHERE key = ?",
        (new.execution_failed, new.score, judge_id(db, new.judge), payload, row.key(seq)),
    )
    return True


def delete_memories(db: apsw.Connection, workspace: str, memory_ids: Sequence[str]) -> list[str]:
    number = workspace_id(db, workspace)
    if number is None:
        return []
    deleted = []
    for memory_id in dict.fromkeys(memory_ids):
        try:
            require_storable(memory_id, "memory_ids")
        except RequestError:
            continue
        found = one(db, "SELECT id, name FROM tools WHERE workspace = ? AND memory_id = ?", number, memory_id)
        if found is not None:
            delete_tool(db, found[0])
            documents.remove(db, number, documents.GUIDANCE, "", found[1])
            deleted.append(memory_id)
    return deleted


def delete_tools(db: apsw.Connection, workspace: str) -> int:
    """Runs inside a write transaction; answers how many there were."""
    number = workspace_id(db, workspace)
    found: list[Any] = db.execute("SELECT id, name FROM tools WHERE workspace = ?", (number,)).fetchall()
    for tool, name in found:
        assert number is not None
        delete_tool(db, tool)
        documents.remove(db, number, documents.GUIDANCE, "", name)
    return len(found)


def delete_tool(db: apsw.Connection, tool: int) -> None:
    db.execute("DELETE FROM tools WHERE id = ?", (tool,))
    db.execute("DELETE FROM guidance WHERE tool = ?", (tool,))
    db.execute("DELETE FROM call_ids WHERE tool = ?", (tool,))
    db.execute("DELETE FROM calls WHERE key BETWEEN ? AND ?", (tool << 32, tool << 32 | MAX_SEQ))
