"""Search: the full-text leg, the vector leg, the filters. Everything runs inside one read transaction."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import apsw

from toolmem.store.codec import storables
from toolmem.store.searching import Legs, SearchRequest, holds, require_embedder
from toolmem.store.sqlite import documents
from toolmem.store.sqlite.lookup import one

if TYPE_CHECKING:
    from toolmem.protocols import EmbedderIdentity
    from toolmem.store.sqlite.vector_index import VectorIndex


def legs(
    db: apsw.Connection, cache: VectorCache, embedder: EmbedderIdentity | None, workspace: str, request: SearchRequest
) -> Legs:
    """Raises EmbedderMismatch: the vector is another embedder's."""
    if request.vector is not None:
        require_embedder(documents.stored_embedder(db), embedder)
    scope = documents.scope_of(db, workspace, request.where.namespace)
    if scope is None:
        return Legs(())
    allowed = _allowed(db, scope, request)
    by_text = _text_leg(db, scope, request.words, request.depth, allowed)
    if request.vector is None or embedder is None:
        return Legs(list(by_text))
    index = cache.current(db, scope, embedder.dimension, embedder)
    nearest = index.nearest(request.vector, request.depth, allowed)
    similarity = {**index.similarities(request.vector, by_text.values()), **dict(nearest)}
    return Legs(list(by_text), [key for key, _ in nearest], similarity)


CACHE_BYTES = 512 * 1024 * 1024  # of all scopes together; the one in use always stays


class VectorCache:
    """The indexes of the scopes that were searched last, for one embedder at a time."""

    def __init__(self, capacity_bytes: int = CACHE_BYTES) -> None:
        self._capacity = capacity_bytes
        self._owner: object = None
        self._indexes: OrderedDict[int, VectorIndex] = OrderedDict()

    def current(self, db: apsw.Connection, scope: int, dimension: int, owner: object) -> VectorIndex:
        """The up-to-date index of a scope. `owner`: whose vectors they are; another owner forgets everything."""
        if owner != self._owner:
            self._indexes.clear()
            self._owner = owner
        from toolmem.store.sqlite.vector_index import VectorIndex  # and with it numpy, at the first search

        index = self._indexes.get(scope) or VectorIndex(scope, dimension)
        self._indexes.pop(scope, None)
        index.refresh(db)
        self._indexes[scope] = index
        while len(self._indexes) > 1 and sum(each.size_bytes for each in self._indexes.values()) > self._capacity:
            self._indexes.popitem(last=False)
        return index


# -- filters


def _allowed(db: apsw.Connection, scope: int, request: SearchRequest) -> set[int] | None:
    """Ids of the documents that pass the filters; None where nothing is filtered."""
    where = request.where
    if where.keys is None and request.since is None and not where.equals:
        return None
    conditions: list[str] = ["documents.scope = ?"]
    values: list[Any] = [scope]
    if where.keys is not None:
        conditions.append("documents.key IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(storables(where.keys)))
    if request.since is not None:
        values.append(request.since)
        conditions.append("documents.time_modified >= ?")
    value, joined = "''", ""
    if where.equals:
        value, joined = (
            "records.value",
            (
                "JOIN scopes ON scopes.id = documents.scope JOIN records ON records.workspace = scopes.workspace "
                "AND records.namespace = scopes.namespace AND records.key = documents.key"
            ),
        )
    sql = f"SELECT documents.id, {value} FROM documents {joined} WHERE {' AND '.join(conditions)}"
    return {number for number, held in db.execute(sql, values) if not where.equals or holds(held, where.equals)}


# -- the text leg


def _text_leg(
    db: apsw.Connection, scope: int, words: Sequence[str], depth: int, allowed: set[int] | None
) -> dict[str, int]:
    """Document ids by key, best BM25 first. Scope and words are matched together, so that other scopes cost nothing."""
    if not words or (allowed is not None and not allowed):
        return {}
    quoted = " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
    match = f'scope : "{documents.scope_word(scope)}" AND words : ({quoted})'
    values: list[Any] = [match]
    chosen = ""
    if allowed is not None:
        chosen = "AND rowid IN (SELECT value FROM json_each(?))"
        values.append(json.dumps(sorted(allowed)))
    sql = (
        "SELECT rowid, bm25(document_words, 0.0, 1.0) AS badness FROM document_words "
        f"WHERE document_words MATCH ? {chosen} ORDER BY badness LIMIT ?"
    )
    rows: list[Any] = db.execute(sql, (*values, depth)).fetchall()
    found = [
        (round(badness, 9), one(db, "SELECT key FROM documents WHERE id = ?", number)[0], number)
        for number, badness in rows
    ]
    return {key: number for _, key, number in sorted(found)}
