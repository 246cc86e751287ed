"""The searchable side of guidance and keyed records: texts, vectors, and whose vectors they are.

A document lives in a scope: the guidance of one workspace, or one namespace of its records. The scope's counters
tell every process that its cached vectors are no longer the newest. Each function runs inside a write transaction,
but for those that say otherwise.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import apsw

from toolmem.errors import EmbedderMismatch, RequestError
from toolmem.store.codec import require_storable
from toolmem.store.sqlite.lookup import one
from toolmem.store.words import index_words
from toolmem.stored import Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolmem.protocols import EmbedderIdentity

GUIDANCE = 0  # kinds of scope
RECORDS = 1

_EMBEDDER = "embedder"  # the row of `meta` that holds its identity


def write(
    db: apsw.Connection,
    workspace: int,
    kind: int,
    namespace: str,
    key: str,
    document: Document,
    now: int,
    embedder: EmbedderIdentity | None,
) -> None:
    """Insert or replace. Raises RequestError (a text or vector that cannot be kept) or EmbedderMismatch."""
    require_storable(document.text, "document.text")
    blob = None
    if document.vector is not None:
        claim_embedder(db, embedder)
        blob = unit_vector(document.vector, embedder, "document.vector").astype("<f4").tobytes()
    scope, change = _next_change(db, workspace, kind, namespace)
    row = one(db, "SELECT id FROM documents WHERE scope = ? AND key = ?", scope, key)
    if row is None:
        db.execute(
            "INSERT INTO documents (scope, change, key, time_modified, vector, text) VALUES (?, ?, ?, ?, ?, ?)",
            (scope, change, key, now, blob, document.text),
        )
        number = db.last_insert_rowid()
    else:
        number = row[0]
        db.execute(
            "UPDATE documents SET change = ?, time_modified = ?, vector = ?, text = ? WHERE id = ?",
            (change, now, blob, document.text, number),
        )
        db.execute("DELETE FROM document_words WHERE rowid = ?", (number,))
    words = " ".join(index_words(document.text))
    db.execute("INSERT INTO document_words (rowid, scope, words) VALUES (?, ?, ?)", (number, scope_word(scope), words))


def remove(db: apsw.Connection, workspace: int, kind: int, namespace: str, key: str) -> None:
    """Nothing happens where there is none."""
    row = one(
        db,
        "SELECT documents.id, scope FROM documents JOIN scopes ON scopes.id = scope "
        "WHERE workspace = ? AND kind = ? AND namespace = ? AND key = ?",
        *(workspace, kind, namespace, key),
    )
    if row is None:
        return
    db.execute("DELETE FROM documents WHERE id = ?", (row[0],))
    db.execute("DELETE FROM document_words WHERE rowid = ?", (row[0],))
    db.execute("UPDATE scopes SET deletions = deletions + 1 WHERE id = ?", (row[1],))


def remove_workspace(db: apsw.Connection, workspace: int) -> None:
    for (scope,) in db.execute("SELECT id FROM scopes WHERE workspace = ?", (workspace,)).fetchall():
        db.execute("DELETE FROM document_words WHERE rowid IN (SELECT id FROM documents WHERE scope = ?)", (scope,))
        db.execute("DELETE FROM documents WHERE scope = ?", (scope,))
    db.execute("DELETE FROM scopes WHERE workspace = ?", (workspace,))


def scope_word(scope: int) -> str:
    """The word by which the full-text index tells scopes apart."""
    return f"s{scope}"


def _next_change(db: apsw.Connection, workspace: int, kind: int, namespace: str) -> tuple[int, int]:
    where = (workspace, kind, namespace)
    row = one(db, "SELECT id, changes FROM scopes WHERE workspace = ? AND kind = ? AND namespace = ?", *where)
    if row is None:
        db.execute("INSERT INTO scopes (workspace, kind, namespace, changes, deletions) VALUES (?, ?, ?, 1, 0)", where)
        return db.last_insert_rowid(), 1
    db.execute("UPDATE scopes SET changes = changes + 1 WHERE id = ?", (row[0],))
    return row[0], row[1] + 1


# -- vectors and their embedder


def unit_vector(vector: NDArray[np.float32], embedder: EmbedderIdentity | None, field: str) -> NDArray[np.float32]:
    """Of unit length; a zero vector stays zero. Raises RequestError for a wrong shape, NaN or infinity."""
    import numpy as np

    array = np.asarray(vector, dtype=np.float64)
    if embedder is None:
        raise RequestError(f"{field}: this store was opened without an embedder; it takes no vectors", field=field)
    if array.shape != (embedder.dimension,):
        raise RequestError(
            f"{field}: expected {embedder.dimension} numbers ({embedder.name}/{embedder.model}), "
            f"got shape {tuple(array.shape)}",
            field=field,
        )
    if not np.isfinite(array).all():
        raise RequestError(f"{field}: holds NaN or infinity", field=field)
    length = float(np.linalg.norm(array))
    return (array / length if length else array).astype(np.float32)


def stored_embedder(db: apsw.Connection) -> EmbedderIdentity | None:
    """Whose vectors the store holds; None where it holds none yet. Needs no write transaction."""
    from toolmem.protocols import EmbedderIdentity

    row = one(db, "SELECT value FROM meta WHERE name = ?", _EMBEDDER)
    return None if row is None else EmbedderIdentity(**json.loads(row[0]))


def check_embedder(db: apsw.Connection, embedder: EmbedderIdentity | None) -> EmbedderIdentity | None:
    """Raises EmbedderMismatch where the store's vectors come from another embedder. Needs no write transaction."""
    stored = stored_embedder(db)
    require_embedder(stored, embedder)
    return stored


def require_embedder(stored: EmbedderIdentity | None, embedder: EmbedderIdentity | None) -> None:
    """Raises EmbedderMismatch where `stored` vectors are not those of this embedder."""
    if stored is not None and embedder is not None and stored != embedder:
        raise EmbedderMismatch(
            f"the vectors in the store come from the embedder {_named(stored)}, the one configured is "
            f"{_named(embedder)}; run `toolmem store reembed` once, or configure the former"
        )


def claim_embedder(db: apsw.Connection, embedder: EmbedderIdentity | None) -> None:
    """The first vector written decides whose vectors the store holds."""
    if check_embedder(db, embedder) is None and embedder is not None:
        replace_embedder(db, embedder)


def replace_embedder(db: apsw.Connection, embedder: EmbedderIdentity) -> None:
    value: dict[str, Any] = asdict(embedder)
    db.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", (_EMBEDDER, json.dumps(value)))


def _named(embedder: EmbedderIdentity) -> str:
    return f"{embedder.name}/{embedder.model} ({embedder.dimension} dimensions)"
