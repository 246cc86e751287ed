"""Search documents by words (FTS5) and by vectors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from toolmem.errors import RequestError
from toolmem.models.records import Document, EmbedderIdentity, TextRow
from toolmem.store.search import Query, Ranking, scope_of
from toolmem.store.sqlite.database import find_workspace, first_row, json_list
from toolmem.store.sqlite.records import RecordStore, Scope, scope_word

_EMBEDDER = "embedder"  # the row of `meta` that names the embedder of the vectors


def _stored_embedder(db: apsw.Connection) -> EmbedderIdentity | None:
    row = first_row(db, "SELECT value FROM meta WHERE name = ?", _EMBEDDER)
    return None if row is None else msgspec.json.decode(row[0], type=EmbedderIdentity)


class Vectors(NamedTuple):
    """The vectors of one namespace in a matrix, a row for each key. Zero vectors are left out."""

    state: Any  # changes with the vectors
    rows: dict[str, int]  # by key
    keys: list[str]
    matrix: Any  # float32, shape (len(keys), dimension)


def _nearest(
    vectors: Vectors, query: Query, extra: Sequence[str]
) -> tuple[list[str], dict[str, float]]:
    """Return the keys nearest to the query, and the cosines of these and of `extra` keys."""
    import numpy as np

    if not vectors.keys or not query.unit.any():
        return [], {}
    cosines = np.round(vectors.matrix @ query.unit, 6)
    rows = np.arange(len(vectors.keys))
    if query.keys is not None:
        rows = np.array(sorted(vectors.rows[key] for key in query.keys if key in vectors.rows), int)
    best = rows[np.argsort(-cosines[rows], kind="stable")[: query.depth]].tolist()
    reported = {*best, *(vectors.rows[key] for key in extra if key in vectors.rows)}
    similarity = {vectors.keys[row]: float(cosines[row]) for row in reported}
    return [vectors.keys[row] for row in best], similarity


class SearchStore(RecordStore):
    """Finds guidance and records by the words and the vectors of their texts."""

    _vector_cache: Vectors | None = None  # of the scope searched last; replaced as a whole

    def _rank(self, query: Query) -> Ranking:
        with self._database.read() as db:
            scope = _scope_ids(db, *query.scope)
            by_words = _by_words(db, scope, query)
            if query.identity is None or _stored_embedder(db) != query.identity:
                return Ranking(by_words)
            return Ranking(by_words, *_nearest(self._vectors(db, scope, query), query, by_words))

    def _vectors(self, db: apsw.Connection, scope: Scope, query: Query) -> Vectors:
        import numpy as np

        source = "FROM documents WHERE workspace = ? AND namespace = ?"
        # Every change of the vectors changes these numbers, because new documents get new ids.
        counts = first_row(db, f"SELECT count(*), max(id) {source}", *scope)
        missing = first_row(db, f"SELECT count(*) {source} AND vector IS NULL", *scope)
        state = (scope, query.identity, counts, missing)
        vectors = self._vector_cache
        if vectors is None or vectors.state != state:
            rows = db.execute(f"SELECT key, vector {source} ORDER BY key", scope)
            found = [(key, blob) for key, blob in rows if blob is not None]
            matrix = np.frombuffer(b"".join(blob for _, blob in found), dtype="<f4")
            matrix = matrix.reshape(len(found), query.unit.size)
            is_nonzero: Any = matrix.any(axis=1)
            keys = [key for (key, _), kept in zip(found, is_nonzero, strict=True) if kept]
            row_of = {key: row for row, key in enumerate(keys)}
            vectors = self._vector_cache = Vectors(state, row_of, keys, matrix[is_nonzero])
        return vectors

    def documents(
        self, workspace: str, namespace: str | None, keys: Collection[str]
    ) -> dict[str, Document]:
        sql = (
            "SELECT documents.key, text FROM json_each(?) AS asked CROSS JOIN documents "
            "ON workspace = ? AND namespace = ? AND documents.key = asked.value"
        )
        with self._database.read() as db:
            found = db.execute(sql, (json_list(keys), *_scope_ids(db, workspace, namespace)))
            return {key: Document(text) for key, text in found}

    def embedder(self) -> EmbedderIdentity | None:
        with self._database.read() as db:
            return _stored_embedder(db)

    def use_embedder(self, identity: EmbedderIdentity) -> None:
        with self._database.write() as db:
            stored = _stored_embedder(db)
            if stored not in (None, identity):
                db.execute("UPDATE documents SET vector = NULL WHERE vector IS NOT NULL")
            if stored != identity:
                sql = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)"
                db.execute(sql, (_EMBEDDER, msgspec.json.encode(identity).decode()))

    def texts_without_vector(
        self, workspace: str, namespace: str | None, limit: int
    ) -> list[TextRow]:
        sql = (
            "SELECT id, text FROM documents "
            "WHERE workspace = ? AND namespace = ? AND vector IS NULL ORDER BY id LIMIT ?"
        )
        with self._database.read() as db:
            rows = db.execute(sql, (*_scope_ids(db, workspace, namespace), limit))
            return [TextRow(str(number), text) for number, text in rows]

    def put_vectors(self, identity: EmbedderIdentity, vectors: Mapping[str, Any]) -> None:
        rows = [(vector.astype("<f4").tobytes(), int(row)) for row, vector in vectors.items()]
        with self._database.write() as db:
            if _stored_embedder(db) != identity:
                raise RequestError("the store holds the vectors of another embedder", "vector")
            db.executemany("UPDATE documents SET vector = ? WHERE id = ?", rows)


def _scope_ids(db: apsw.Connection, workspace: str, namespace: str | None) -> Scope:
    return find_workspace(db, workspace), scope_of(workspace, namespace).namespace


def _by_words(db: apsw.Connection, scope: Scope, query: Query) -> list[str]:
    """Return keys by BM25, best first. One match has scope and words: other scopes cost nothing."""
    if not query.words:
        return []
    quoted = " OR ".join('"' + word.replace('"', '""') + '"' for word in query.words)
    values: list[Any] = [f"scope : {scope_word(scope)} AND words : ({quoted})"]
    sql = (
        "SELECT key, bm25(document_words, 0.0, 1.0) AS badness FROM document_words "
        "JOIN documents ON documents.id = document_words.rowid WHERE document_words MATCH ?"
    )
    if query.keys is not None:
        sql += " AND key IN (SELECT value FROM json_each(?))"
        values.append(json_list(query.keys))
    rows = db.execute(f"{sql} ORDER BY badness, key LIMIT ?", (*values, query.depth))
    return [key for key, _ in rows]
