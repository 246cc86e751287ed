"""Whole workspaces, and what there is to say about the store itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import apsw

from toolmem.protocols import OF_THE_STORE
from toolmem.store.sqlite import documents
from toolmem.store.sqlite.lookup import one, workspace_id
from toolmem.store.sqlite.schema import SCHEMA_VERSION
from toolmem.store.sqlite.tool_writes import delete_tool

_IN_USE = (
    "EXISTS (SELECT 1 FROM tools WHERE workspace = workspaces.id) "
    "OR EXISTS (SELECT 1 FROM records WHERE workspace = workspaces.id) "
    "OR EXISTS (SELECT 1 FROM verdicts WHERE workspace = workspaces.id) "
    "OR EXISTS (SELECT 1 FROM decisions WHERE workspace = workspaces.id)"
)


def names(db: apsw.Connection) -> list[str]:
    """Sorted; those that hold a tool memory, a record, a verdict or a decision."""
    found = db.execute(f"SELECT name FROM workspaces WHERE {_IN_USE} ORDER BY name")
    return [str(name) for (name,) in found if name != OF_THE_STORE]


def delete(db: apsw.Connection, workspace: str) -> int:
    """Runs inside a write transaction; answers how many tool memories there were."""
    number = workspace_id(db, workspace)
    if number is None:
        return 0
    tools: list[Any] = db.execute("SELECT id FROM tools WHERE workspace = ?", (number,)).fetchall()
    for (tool,) in tools:
        delete_tool(db, number, tool)
    documents.remove_workspace(db, number)
    db.execute("DELETE FROM records WHERE workspace = ?", (number,))
    db.execute("DELETE FROM verdicts WHERE workspace = ?", (number,))
    db.execute("DELETE FROM decisions WHERE workspace = ?", (number,))
    db.execute("DELETE FROM workspaces WHERE id = ?", (number,))
    return len(tools)


def info(db: apsw.Connection, location: str) -> dict[str, Any]:
    embedder = documents.stored_embedder(db)
    return {
        "backend": "sqlite",
        "location": location,
        "schema_version": SCHEMA_VERSION,
        "embedder": None if embedder is None else asdict(embedder),
        "workspaces": {name: _counts(db, name) for name in names(db)},
    }


def _counts(db: apsw.Connection, workspace: str) -> dict[str, int]:
    number = workspace_id(db, workspace)
    in_tools = "SELECT id << 32 AS first, last_seq - first_seq + 1 AS kept FROM tools WHERE workspace = ?1"
    logged = "(SELECT count(*) FROM calls WHERE key BETWEEN first AND first | 0xffffffff)"
    of_tools = one(db, f"SELECT count(*), coalesce(sum(kept), 0), coalesce(sum({logged}), 0) FROM ({in_tools})", number)
    found = dict(zip(("tools", "calls", "logged_calls"), of_tools, strict=True))
    for table in ("records", "verdicts", "decisions"):
        (found[table],) = one(db, f"SELECT count(*) FROM {table} WHERE workspace = ?", number)
    return {name: found[name] for name in _COUNTED}


_COUNTED = ("tools", "calls", "records", "verdicts", "logged_calls", "decisions")
