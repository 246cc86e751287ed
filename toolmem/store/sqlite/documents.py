"""The searchable side of guidance and keyed records: texts, vectors, and whose vectors they are.

A document lives in a scope: the guidance of one workspace, or one namespace of its records. The scope's counters
tell every process that its cached vectors are no longer the newest. Each function runs inside a write transaction,
but for those that say otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import apsw

from toolmem.store.codec import storables
from toolmem.store.searching import pack, stored_document, unpack
from toolmem.store.sqlite.lookup import one, workspace_id
from toolmem.store.words import index_words
from toolmem.stored import Document

if TYPE_CHECKING:
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
    stored = None if document.vector is None else stored_embedder(db)
    kept = stored_document(document, embedder, stored)
    blob = None if kept.vector is None else pack(kept.vector)
    if blob is not None and stored is None and embedder is not None:
        replace_embedder(db, embedder)  # the first vector written decides whose vectors the store holds
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


def scope_of(db: apsw.Connection, workspace: str, namespace: str | None) -> int | None:
    """Of the records in this namespace, or of the guidance of tools (None); None where nothing was ever written."""
    number = workspace_id(db, workspace)
    kind = GUIDANCE if namespace is None else RECORDS
    sql = "SELECT id FROM scopes WHERE workspace = ? AND kind = ? AND namespace = ?"
    row = one(db, sql, number, kind, namespace or "")
    return None if row is None else int(row[0])


def read(db: apsw.Connection, workspace: str, namespace: str | None, keys: Sequence[str]) -> dict[str, Document]:
    """By key; those without a searchable side are absent."""
    scope = scope_of(db, workspace, namespace)
    if scope is None:
        return {}
    found = {}
    for key in storables(keys):
        row = one(db, "SELECT text, vector FROM documents WHERE scope = ? AND key = ?", scope, key)
        if row is not None:
            found[key] = Document(row[0], None if row[1] is None else unpack(row[1]))
    return found


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
    scope, change = one(
        db,
        "INSERT INTO scopes (workspace, kind, namespace, changes, deletions) VALUES (?, ?, ?, 1, 0) "
        "ON CONFLICT (workspace, kind, namespace) DO UPDATE SET changes = changes + 1 RETURNING id, changes",
        *(workspace, kind, namespace),
    )
    return scope, change


# -- vectors and their embedder


def stored_embedder(db: apsw.Connection) -> EmbedderIdentity | None:
    """Whose vectors the store holds; None where it holds none yet. Needs no write transaction."""
    from toolmem.protocols import EmbedderIdentity

    row = one(db, "SELECT value FROM meta WHERE name = ?", _EMBEDDER)
    return None if row is None else EmbedderIdentity(**json.loads(row[0]))


def replace_embedder(db: apsw.Connection, embedder: EmbedderIdentity) -> None:
    from dataclasses import asdict

    value: dict[str, Any] = asdict(embedder)
    db.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", (_EMBEDDER, json.dumps(value)))
