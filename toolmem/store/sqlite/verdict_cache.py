"""Verdicts by the key of what was judged, so that the same question is never paid for twice."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import apsw

from toolmem.models import Verdict
from toolmem.store.codec import flag, storable
from toolmem.store.sqlite.lookup import Judges, judge_id, one, require_workspace_id, workspace_id

logger = logging.getLogger("toolmem.store")


def read(db: apsw.Connection, workspace: str, keys: Sequence[str]) -> dict[str, Verdict]:
    """Those that are there. A damaged one is logged and counts as absent: it is judged again."""
    number = workspace_id(db, workspace)
    if number is None:
        return {}
    judges = Judges(db)
    found: dict[str, Verdict] = {}
    for key in dict.fromkeys(keys):
        row = storable(key) and one(
            db,
            "SELECT summary, evaluation, score, execution_failed, error_class, judge FROM verdicts "
            "WHERE workspace = ? AND key = ?",
            *(number, key),
        )
        if not row:
            continue
        try:
            found[key] = Verdict.model_validate(
                {
                    "summary": row[0],
                    "evaluation": row[1],
                    "score": row[2],
                    "execution_failed": flag(row[3]),
                    "error_class": row[4],
                    "judge": judges[row[5]],
                }
            )
        except ValueError:
            logger.error("the cached verdict %r is damaged and left out", key)
    return found


def write(db: apsw.Connection, workspace: str, verdicts: Mapping[str, Verdict]) -> None:
    """Runs inside a write transaction."""
    number = require_workspace_id(db, workspace)
    judges = {judge: judge_id(db, judge) for judge in {verdict.judge for verdict in verdicts.values()}}
    db.executemany(
        "INSERT OR REPLACE INTO verdicts "
        "(workspace, key, judge, score, execution_failed, error_class, summary, evaluation) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                number,
                key,
                judges[verdict.judge],
                float(verdict.score),
                verdict.execution_failed,
                verdict.error_class,
                verdict.summary,
                verdict.evaluation,
            )
            for key, verdict in verdicts.items()
        ],
    )


def keys(db: apsw.Connection, workspace: str, after: str, limit: int) -> list[str]:
    """Sorted; those that follow `after`."""
    number = workspace_id(db, workspace)
    if number is None or limit < 1 or not storable(after):
        return []
    sql = "SELECT key FROM verdicts WHERE workspace = ? AND key > ? ORDER BY key LIMIT ?"
    return [str(key) for (key,) in db.execute(sql, (number, after, limit))]
