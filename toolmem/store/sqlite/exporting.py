"""Reading what a copy to another store needs and nobody else asks for: texts with their vectors, keys of the cache."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from toolmem.store import documents
from toolmem.store.codec import storable
from toolmem.store.sqlite.lookup import one, workspace_id
from toolmem.stored import Document


def read_documents(
    db: apsw.Connection, workspace: str, namespace: str | None, keys: Sequence[str]
) -> dict[str, Document]:
    """By key; those without a searchable side are absent."""
    number = workspace_id(db, workspace)
    kind = documents.GUIDANCE if namespace is None else documents.RECORDS
    if number is None or not storable(namespace or ""):
        return {}
    scope = one(
        db,
        "SELECT id FROM scopes WHERE workspace = ? AND kind = ? AND namespace = ?",
        *(number, kind, namespace or ""),
    )
    if scope is None:
        return {}
    import numpy as np

    found = {}
    for key in keys:
        row = storable(key) and one(db, "SELECT text, vector FROM documents WHERE scope = ? AND key = ?", scope[0], key)
        if row:
            vector = None if row[1] is None else np.frombuffer(row[1], dtype="<f4").astype(np.float32)
            found[key] = Document(row[0], vector)
    return found


def verdict_keys(db: apsw.Connection, workspace: str, after: str, limit: int) -> list[str]:
    """Sorted; those that follow `after`."""
    number = workspace_id(db, workspace)
    if number is None or limit < 1 or not storable(after):
        return []
    sql = "SELECT key FROM verdicts WHERE workspace = ? AND key > ? ORDER BY key LIMIT ?"
    return [str(key) for (key,) in db.execute(sql, (number, after, limit))]
