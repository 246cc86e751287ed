"""Search: the full-text leg, the vector leg, the filters. Everything runs inside one read transaction."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import apsw

from toolmem.errors import RequestError
from toolmem.protocols import EmbedderIdentity
from toolmem.store import documents
from toolmem.store.codec import micros, storable
from toolmem.store.fusion import fuse, leg_depth
from toolmem.store.sqlite.lookup import one, workspace_id
from toolmem.store.words import query_words
from toolmem.stored import Hit, Where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolmem.store.vector_index import VectorIndex


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
        from toolmem.store.vector_index import VectorIndex  # and with it numpy, at the first search

        index = self._indexes.get(scope) or VectorIndex(scope, dimension)
        self._indexes.pop(scope, None)
        index.refresh(db)
        self._indexes[scope] = index
        while len(self._indexes) > 1 and sum(each.size_bytes for each in self._indexes.values()) > self._capacity:
            self._indexes.popitem(last=False)
        return index


def search(
    db: apsw.Connection,
    cache: VectorCache,
    embedder: EmbedderIdentity | None,
    workspace: str,
    text: str,
    vector: NDArray[np.float32] | None,
    top_k: int,
    where: Where,
) -> list[Hit]:
    """Raises EmbedderMismatch (the vector is another embedder's) or RequestError (a bad vector or filter)."""
    query = None
    if vector is not None:
        query = documents.unit_vector(vector, embedder, "vector")
        documents.check_embedder(db, embedder)
    _check_where(where)
    scope = _scope(db, workspace, where)
    if scope is None or top_k < 1:
        return []
    allowed = _allowed(db, scope, where)
    depth = leg_depth(top_k)
    by_text = _text_leg(db, scope, text, depth, allowed)
    by_vector: list[str] = []
    similarity: dict[str, float] = {}
    if query is not None and embedder is not None:
        index = cache.current(db, scope, embedder.dimension, embedder)
        nearest = index.nearest(query, depth, allowed)
        by_vector = [key for key, _ in nearest]
        similarity = {**index.similarities(query, by_text.values()), **dict(nearest)}
    return fuse(list(by_text), by_vector, similarity, top_k)


def _check_where(where: Where) -> None:
    if where.namespace is None and where.equals:
        raise RequestError(
            "where.equals: filters the fields of keyed records; the guidance of tools has none", field="where.equals"
        )


def _scope(db: apsw.Connection, workspace: str, where: Where) -> int | None:
    number = workspace_id(db, workspace)
    kind = documents.GUIDANCE if where.namespace is None else documents.RECORDS
    namespace = where.namespace or ""
    if number is None or not storable(namespace):
        return None
    sql = "SELECT id FROM scopes WHERE workspace = ? AND kind = ? AND namespace = ?"
    row = one(db, sql, number, kind, namespace)
    return None if row is None else int(row[0])


# -- filters


def _allowed(db: apsw.Connection, scope: int, where: Where) -> set[int] | None:
    """Ids of the documents that pass the filters; None where nothing is filtered."""
    if where.keys is None and where.modified_since is None and not where.equals:
        return None
    conditions: list[str] = ["documents.scope = ?"]
    values: list[Any] = [scope]
    if where.keys is not None:
        conditions.append("documents.key IN (SELECT value FROM json_each(?))")
        values.append(json.dumps([key for key in where.keys if storable(key)]))
    if where.modified_since is not None:
        try:
            values.append(micros(where.modified_since))
        except ValueError as error:
            raise RequestError(f"where.modified_since: {error}", field="where.modified_since") from error
        conditions.append("documents.time_modified >= ?")
    sql = f"SELECT documents.id FROM documents WHERE {' AND '.join(conditions)}"
    if not where.equals:
        return {number for (number,) in db.execute(sql, values)}
    sql = (
        "SELECT documents.id, records.value FROM documents JOIN scopes ON scopes.id = documents.scope "
        "JOIN records ON records.workspace = scopes.workspace AND records.namespace = scopes.namespace "
        f"AND records.key = documents.key WHERE {' AND '.join(conditions)}"
    )
    return {number for number, value in db.execute(sql, values) if holds(value, where.equals)}


def holds(value: str, equals: Mapping[str, Any]) -> bool:
    """Whether the record's fields equal, or, for a list, contain what is asked for. A damaged record does not."""
    try:
        fields = json.loads(value)
    except (ValueError, TypeError, RecursionError):
        return False
    return isinstance(fields, dict) and all(
        name in fields and _equal_or_contains(fields[name], expected) for name, expected in equals.items()
    )


def _equal_or_contains(actual: Any, expected: Any) -> bool:
    if isinstance(actual, list) and not isinstance(expected, list):
        return any(_equal(item, expected) for item in actual)
    return _equal(actual, expected)


def _equal(actual: Any, expected: Any) -> bool:
    """As in JSON: true is not 1."""
    return isinstance(actual, bool) == isinstance(expected, bool) and bool(actual == expected)


# -- the text leg


def _text_leg(db: apsw.Connection, scope: int, text: str, depth: int, allowed: set[int] | None) -> dict[str, int]:
    """Document ids by key, best BM25 first. Scope and words are matched together, so that other scopes cost nothing."""
    words = query_words(text)
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
