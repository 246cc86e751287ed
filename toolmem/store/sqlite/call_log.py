"""The log of calls of a workspace, in the order in which they came, and what goes when it is full.

Each logged call has a short row in `calls`, where its tool's window reads it, and one in `call_log` with all that it
brought. Each function runs inside one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw

from toolmem.store.codec import MAX_INTEGER, PreparedCall, conversation_digest, digest
from toolmem.store.semantics import MAX_SEQ, ToolRow
from toolmem.store.sqlite.lookup import Judges, judge_id, one, workspace_id
from toolmem.store.sqlite.tool_reads import FIGURES, key, read_tool, tool_numbered
from toolmem.store.window import read_calls
from toolmem.stored import LoggedCall, LogLimits

_POSITIONS = 40  # bits
LAST_POSITION = (1 << _POSITIONS) - 1
_SPARE = 16  # calls that go at once from a long log that is full, so that most calls added write no more than before
_MOST_AT_ONCE = 1000  # calls that go with one commit, beside as many as came


def place(workspace: int, position: int) -> int:
    """The row of a position in this workspace's log."""
    return workspace << _POSITIONS | position


# -- writing


def write(
    db: apsw.Connection, workspace: int, row: ToolRow, new: Mapping[int, PreparedCall], limits: LogLimits
) -> None:
    """Log these calls, by seq. `row`: as this commit leaves the tool; it is written already."""
    (last,) = one(db, "SELECT log_last FROM workspaces WHERE id = ?", workspace)
    judges = {judge: judge_id(db, judge) for judge in {item.call.judge for item in new.values()}}
    short, whole, size = [], [], 0
    for position, (seq, item) in enumerate(new.items(), last + 1):
        at, length = place(workspace, position), len(item.payload.encode())
        call = item.call
        figures = (call.success, call.execution_failed, call.score, call.time_cost, call.token_cost)
        short.append((key(row, seq), at, *figures, judges[call.judge]))
        whole.append((at, key(row, seq), length, conversation_digest(call.metadata), item.payload))
        size += length
    db.executemany("INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?)", short)
    db.executemany("INSERT INTO call_log VALUES (?, ?, ?, ?, ?)", whole)
    first, calls, held = one(
        db,
        "UPDATE workspaces SET log_last = log_last + ?2, log_calls = log_calls + ?2, log_bytes = log_bytes + ?3 "
        "WHERE id = ?1 RETURNING log_first, log_calls, log_bytes",
        *(workspace, len(new), size),
    )
    excess, too_long = calls - limits.max_calls, held - limits.max_bytes
    if excess > 0:
        excess += min(_SPARE, limits.max_calls // 100)
    if excess > 0 or too_long > 0:
        _shorten(db, workspace, first, (excess, too_long), len(new))


def _shorten(db: apsw.Connection, workspace: int, first: int, excess: tuple[int, int], came: int) -> None:
    """Move the log's beginning on by what is too much. What a window still keeps stays until that drops it."""
    oldest: Any = db.execute(
        "SELECT place, bytes, key, EXISTS (SELECT 1 FROM tools WHERE id = key >> 32 AND first_seq <= key & 0xffffffff) "
        "FROM call_log WHERE place BETWEEN ? AND ? ORDER BY place LIMIT ?",
        (place(workspace, first), place(workspace, LAST_POSITION), came + _MOST_AT_ONCE),
    )
    gone: list[Any] = []
    calls, size = excess
    while (calls > 0 or size > 0) and (row := next(oldest, None)) is not None:
        gone.append(row)
        calls, size = calls - 1, size - row[1]
    oldest.close()
    if not gone:  # the counters were damaged
        return
    db.execute(
        "UPDATE workspaces SET log_first = ?, log_calls = log_calls - ?, log_bytes = log_bytes - ? WHERE id = ?",
        ((gone[-1][0] & LAST_POSITION) + 1, len(gone), sum(row[1] for row in gone), workspace),
    )
    _delete(db, ((at, number) for at, _, number, kept in gone if not kept))


def drop(db: apsw.Connection, workspace: int, row: ToolRow, seqs: tuple[int, int]) -> None:
    """The window drops these: they stay in the log, unless that begins after them."""
    (first,) = one(db, "SELECT log_first FROM workspaces WHERE id = ?", workspace)
    if first > 1:
        sql = "SELECT place, key FROM calls WHERE key BETWEEN ? AND ? AND place < ?"
        gone: list[Any] = db.execute(sql, (key(row, seqs[0]), key(row, seqs[1]), place(workspace, first))).fetchall()
        _delete(db, gone)


def _delete(db: apsw.Connection, rows: Iterable[Sequence[int]]) -> None:
    gone = list(rows)
    db.executemany("DELETE FROM call_log WHERE place = ?", [(at,) for at, _ in gone])
    db.executemany("DELETE FROM calls WHERE key = ?", [(number,) for _, number in gone])


def judge_again(db: apsw.Connection, row: ToolRow, judged: Mapping[int, PreparedCall]) -> None:
    """Another judgement of kept calls, by seq."""
    for seq, item in judged.items():
        call, number = item.call, key(row, seq)
        db.execute(
            "UPDATE calls SET success = ?, execution_failed = ?, score = ?, judge = ? WHERE key = ?",
            (call.success, call.execution_failed, call.score, judge_id(db, call.judge), number),
        )
        sql = "UPDATE call_log SET payload = ? WHERE place = (SELECT place FROM calls WHERE key = ?)"
        db.execute(sql, (item.payload, number))


def delete_tool(db: apsw.Connection, workspace: int, tool: int) -> None:
    """All its calls, kept and logged."""
    keys = (tool << 32, tool << 32 | MAX_SEQ)
    (first,) = one(db, "SELECT log_first FROM workspaces WHERE id = ?", workspace)
    places = "SELECT place FROM calls WHERE key BETWEEN ?1 AND ?2"
    sql = f"SELECT count(*), coalesce(sum(bytes), 0) FROM call_log WHERE place IN ({places} AND place >= ?3)"
    counted = one(db, sql, *keys, place(workspace, first))
    sql = "UPDATE workspaces SET log_calls = log_calls - ?, log_bytes = log_bytes - ? WHERE id = ?"
    db.execute(sql, (*counted, workspace))
    db.execute(f"DELETE FROM call_log WHERE place IN ({places})", keys)
    db.execute("DELETE FROM calls WHERE key BETWEEN ? AND ?", keys)


# -- reading


def read(
    db: apsw.Connection,
    workspace: str,
    *,
    conversation: str | None = None,
    tool: str | None = None,
    after: int = 0,
    limit: int = 1000,
    newest: bool = False,
) -> list[LoggedCall]:
    """See `MemoryStore.call_log`."""
    number = workspace_id(db, workspace)
    row = None if tool is None else read_tool(db, number, tool)
    if number is None or (tool is not None and row is None):
        return []
    places = (place(number, min(max(after, 0) + 1, LAST_POSITION)), place(number, LAST_POSITION))
    if conversation is not None:
        chosen: tuple[Any, ...] = (_OF_CONVERSATION, digest(conversation), *places, *(_keys(row) if row else _ANY))
    elif row is not None:
        chosen = (_OF_TOOL, *_keys_from(db, row, places[0]))
    else:
        chosen = (_OF_WORKSPACE, *places)
    sql, *values = chosen
    rows = db.execute(f"{sql} {'DESC' if newest else 'ASC'} LIMIT ?", (*values, max(limit, 0))).fetchall()
    return _logged(db, rows[::-1] if newest else rows)


_ANY = (0, MAX_INTEGER)
_SELECT = f"SELECT calls.place, calls.key >> 32, {FIGURES}, payload FROM"
# CROSS JOIN: what is looked through comes first.
_FROM_LOG = f"{_SELECT} call_log CROSS JOIN calls ON calls.key = call_log.key"
_OF_CONVERSATION = (
    f"{_FROM_LOG} WHERE conversation = ? AND call_log.place BETWEEN ? AND ? AND call_log.key BETWEEN ? AND ? "
    "ORDER BY call_log.place"
)
_OF_TOOL = (  # the calls of a tool have their keys in the order of their places
    f"{_SELECT} calls CROSS JOIN call_log ON call_log.place = calls.place WHERE calls.key BETWEEN ? AND ? "
    "ORDER BY calls.key"
)
_OF_WORKSPACE = f"{_FROM_LOG} WHERE call_log.place BETWEEN ? AND ? ORDER BY call_log.place"


def _keys(row: ToolRow) -> tuple[int, int]:
    return key(row, 0), key(row, MAX_SEQ)


def _keys_from(db: apsw.Connection, row: ToolRow, first: int) -> tuple[int, int]:
    """The keys of a tool's calls from this place on, found by halving."""
    low, high = key(row, 0), key(row, row.last_seq + 1)
    while low < high:
        middle = (low + high) // 2
        found = one(db, "SELECT key, place FROM calls WHERE key BETWEEN ? AND ? ORDER BY key LIMIT 1", middle, high)
        if found is None or found[1] >= first:
            high = middle
        else:
            low = found[0] + 1
    return low, key(row, MAX_SEQ)


def _logged(db: apsw.Connection, rows: Iterable[Sequence[Any]]) -> list[LoggedCall]:
    tools: dict[int, ToolRow] = {}
    judges = Judges(db)
    found = []
    for at, tool, *values in rows:
        if tool not in tools:
            tools[tool] = tool_numbered(db, tool)
        for call in read_calls(tools[tool], [values], judges.__getitem__):
            own = call.model_copy(update={"seq": None, "is_summarized": False})
            found.append(LoggedCall(at & LAST_POSITION, own))
    return found
