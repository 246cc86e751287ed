"""Verdicts by the key of what was judged, so that the same question is never paid for twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import apsw

from toolmem.store.codec import storables
from toolmem.store.decided import read_verdict
from toolmem.store.sqlite.lookup import Judges, judge_id, one, require_workspace_id, workspace_id

if TYPE_CHECKING:
    from toolmem.models import Verdict

_TOLD = ("summary", "evaluation", "score", "execution_failed", "error_class")


def read(db: apsw.Connection, workspace: str, keys: Sequence[str]) -> dict[str, Verdict]:
    """Those that are there. A damaged one is logged and counts as absent: it is judged again."""
    number, judges = workspace_id(db, workspace), Judges(db)
    if number is None:
        return {}
    found: dict[str, Verdict] = {}
    for key in storables(keys):
        row = one(db, f"SELECT {', '.join(_TOLD)}, judge FROM verdicts WHERE workspace = ? AND key = ?", number, key)
        if row is not None:
            read_verdict(found, key, {**dict(zip(_TOLD, row, strict=False)), "judge": judges[row[-1]]})
    return found


def write(db: apsw.Connection, workspace: str, verdicts: Mapping[str, Verdict]) -> None:
    """Runs inside a write transaction."""
    number = require_workspace_id(db, workspace)
    judges = {judge: judge_id(db, judge) for judge in {verdict.judge for verdict in verdicts.values()}}
    columns = ", ".join(("workspace", "key", "judge", *_TOLD))
    db.executemany(
        f"INSERT OR REPLACE INTO verdicts ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (number, key, judges[verdict.judge], *(getattr(verdict, name) for name in _TOLD))
            for key, verdict in verdicts.items()
        ],
    )


def keys(db: apsw.Connection, workspace: str, after: str = "", limit: int = 1000) -> list[str]:
    """Sorted; those that follow `after`."""
    number = workspace_id(db, workspace)
    sql = "SELECT key FROM verdicts WHERE workspace = ? AND key > ? ORDER BY key LIMIT ?"
    return [str(key) for (key,) in db.execute(sql, (number, after, max(limit, 0)))]
