"""Small integers in place of the strings that many rows would repeat: workspaces and judges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw

from toolmem.store.codec import require_names, storable

if TYPE_CHECKING:
    from toolmem.models import JudgeIdentity


def one(db: apsw.Connection, sql: str, *values: Any) -> Any:
    """The first row of an answer, or None."""
    return db.execute(sql, values).fetchone()


def workspace_id(db: apsw.Connection, workspace: str) -> int | None:
    if not storable(workspace):
        return None
    row = one(db, "SELECT id FROM workspaces WHERE name = ?", workspace)
    return None if row is None else int(row[0])


def require_workspace_id(db: apsw.Connection, workspace: str) -> int:
    """The workspace's number; the first write to a workspace makes it."""
    found = workspace_id(db, workspace)
    if found is not None:
        return found
    require_names(workspace)
    db.execute("INSERT INTO workspaces (name) VALUES (?)", (workspace,))
    return db.last_insert_rowid()


def judge_id(db: apsw.Connection, judge: JudgeIdentity | None) -> int | None:
    if judge is None:
        return None
    key = (judge.backend, judge.model, judge.prompt_version)
    row = one(db, "SELECT id FROM judges WHERE backend = ? AND model = ? AND prompt_version = ?", *key)
    if row is not None:
        return int(row[0])
    db.execute("INSERT INTO judges (backend, model, prompt_version) VALUES (?, ?, ?)", key)
    return db.last_insert_rowid()


class Judges:
    """Judges by number, read once per transaction at most (rows of `judges` never change)."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._known: dict[int | None, JudgeIdentity | None] = {None: None}
        self._names: dict[int | None, str] = {}

    def __getitem__(self, number: int | None) -> JudgeIdentity | None:
        if number not in self._known:
            from toolmem.models import JudgeIdentity

            row = one(self._db, "SELECT backend, model, prompt_version FROM judges WHERE id = ?", number)
            self._known[number] = row and JudgeIdentity(backend=row[0], model=row[1], prompt_version=row[2])
        return self._known[number]

    def name(self, number: int | None) -> str:
        """As in `CallFigures.judge`: "" where nobody judged."""
        if number not in self._names:
            judge = self[number]
            self._names[number] = "" if judge is None else str(judge)
        return self._names[number]
