"""The log of the guard's decisions. Each function runs inside one transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import apsw

from toolmem.store.codec import digest, storables
from toolmem.store.logged_decisions import read_decision
from toolmem.store.sqlite.call_log import LAST_POSITION, place
from toolmem.store.sqlite.lookup import one, require_workspace_id, workspace_id
from toolmem.stored import LoggedDecision


def write(db: apsw.Connection, workspace: str, decision: LoggedDecision, text: str, most: int) -> None:
    """See `MemoryStore.log_decision`. `text`: the decision as JSON."""
    number = require_workspace_id(db, workspace)
    told = (digest(decision.conversation_id) if decision.conversation_id else None, decision.tool_name, text)
    sql = "UPDATE decisions SET conversation = ?, tool = ?, value = ? WHERE workspace = ? AND id = ?"
    db.execute(sql, (*told, number, decision.id))
    if db.changes():
        return
    whole = (place(number, 0), place(number, LAST_POSITION))
    (last,) = one(db, "SELECT max(place) FROM decisions WHERE place BETWEEN ? AND ?", *whole)
    new = (whole[0] if last is None else last) + 1
    db.execute("INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?)", (new, number, decision.id, *told))
    db.execute("DELETE FROM decisions WHERE place BETWEEN ? AND ?", (whole[0], new - most))  # none goes otherwise


def read(
    db: apsw.Connection,
    workspace: str,
    *,
    ids: Sequence[str] | None = None,
    conversation: str | None = None,
    tool: str | None = None,
    limit: int = 100,
) -> list[LoggedDecision]:
    """See `MemoryStore.decisions`."""
    conditions: list[str] = ["workspace = ?"]
    values: list[Any] = [workspace_id(db, workspace)]
    for condition, value in (
        ("id IN (SELECT value FROM json_each(?))", None if ids is None else json.dumps(storables(ids))),
        ("conversation = ?", None if conversation is None else digest(conversation)),
        ("tool = ?", tool),
    ):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    sql = f"SELECT CAST(value AS BLOB) FROM decisions WHERE {' AND '.join(conditions)} ORDER BY place DESC LIMIT ?"
    found = (read_decision(text) for (text,) in db.execute(sql, (*values, max(limit, 0))))
    return [decision for decision in found if decision is not None]
