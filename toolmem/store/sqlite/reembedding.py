"""Changing the embedder of a SQLite store: new vectors are kept aside in the file, then swapped in one transaction.

A run that is killed changes nothing of what searches find, and the next one goes on where it stood.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from toolmem.store.new_vectors import BATCH
from toolmem.store.searching import pack
from toolmem.store.sqlite import documents
from toolmem.store.sqlite.lookup import one

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolmem.protocols import EmbedderIdentity
    from toolmem.store.sqlite.worker_threads import WorkerThreads

_BEGUN = "reembed"  # in `meta`: whose vectors are kept aside
_ASIDE = "reembed:"  # and, with a document's id behind it, one of them: scope, change, vector


class _Lacking(NamedTuple):
    """A document whose new vector is still to be computed, as it was read."""

    number: int
    scope: int
    change: int
    text: str


class KeptAside:
    """A new vector is good as long as its document is still as it was read."""

    def __init__(self, threads: WorkerThreads, embedder: EmbedderIdentity) -> None:
        self._threads = threads
        self._embedder = embedder
        self._missing: list[int] = []

    async def begin(self) -> KeptAside:
        """Go on with what an earlier run for this embedder left; that of another one is dropped."""
        await self._threads.write(self._begin)
        return self

    def _begin(self, db: apsw.Connection) -> None:
        name = json.dumps(asdict(self._embedder), sort_keys=True)
        if one(db, "SELECT value FROM meta WHERE name = ?", _BEGUN) != (name,):
            _drop(db)
            db.execute("INSERT INTO meta (name, value) VALUES (?, ?)", (_BEGUN, name))

    async def lacking(self) -> int:
        self._missing = await self._threads.read(_without_vector)
        return len(self._missing)

    async def batches(self) -> AsyncIterator[list[_Lacking]]:
        for start in range(0, len(self._missing), BATCH):
            numbers = self._missing[start : start + BATCH]
            if pending := await self._threads.read(lambda db, numbers=numbers: _read(db, numbers)):  # type: ignore[misc]
                yield pending

    async def take(self, pending: Sequence[_Lacking], vectors: Sequence[NDArray[np.float32]]) -> None:
        rows = [
            (f"{_ASIDE}{item.number}", f"{item.scope} {item.change} {b64encode(pack(vector)).decode()}")
            for item, vector in zip(pending, vectors, strict=True)
        ]
        sql = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)"
        await self._threads.write(lambda db: db.executemany(sql, rows))

    async def swap(self) -> int | None:
        return await self._threads.write(self._swap)

    def _swap(self, db: apsw.Connection) -> int | None:
        if _without_vector(db):
            return None
        rows: list[Any] = db.execute("SELECT id, scope FROM documents").fetchall()
        scopes: list[Any] = db.execute("SELECT id, changes + 1 FROM scopes").fetchall()
        changes = dict(scopes)
        for number, scope in rows:
            value = one(db, "SELECT value FROM meta WHERE name = ?", f"{_ASIDE}{number}")[0]
            vector = b64decode(value.split(" ")[2])
            db.execute("UPDATE documents SET vector = ?, change = ? WHERE id = ?", (vector, changes[scope], number))
        db.execute("UPDATE scopes SET changes = changes + 1")
        _drop(db)
        documents.replace_embedder(db, self._embedder)
        return len(rows)


def _without_vector(db: apsw.Connection) -> list[int]:
    kept: dict[str, str] = {}
    for name, value in db.execute("SELECT name, value FROM meta WHERE name GLOB ?", (f"{_ASIDE}*",)):
        kept[str(name)] = str(value).rpartition(" ")[0]
    rows = db.execute("SELECT id, scope, change FROM documents ORDER BY id")
    return [number for number, scope, change in rows if kept.get(f"{_ASIDE}{number}") != f"{scope} {change}"]


def _drop(db: apsw.Connection) -> None:
    db.execute("DELETE FROM meta WHERE name = ? OR name GLOB ?", (_BEGUN, f"{_ASIDE}*"))


def _read(db: apsw.Connection, numbers: Sequence[int]) -> list[_Lacking]:
    """The documents of these ids that are still there."""
    sql = "SELECT id, scope, change, text FROM documents WHERE id = ?"
    return [_Lacking(*row) for number in numbers for row in db.execute(sql, (number,))]
