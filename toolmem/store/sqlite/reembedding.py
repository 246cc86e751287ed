"""Changing the embedder of a SQLite store: all vectors are kept in memory, then swapped in one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from toolmem.store.new_vectors import BATCH
from toolmem.store.searching import pack
from toolmem.store.sqlite import documents

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolmem.protocols import EmbedderIdentity
    from toolmem.store.sqlite.worker_threads import WorkerThreads


class _Lacking(NamedTuple):
    """A document whose new vector is still to be computed, as it was read."""

    number: int
    scope: int
    change: int
    text: str


class InMemory:
    """A new vector is good as long as its document is still as it was read."""

    def __init__(self, threads: WorkerThreads, embedder: EmbedderIdentity) -> None:
        self._threads = threads
        self._embedder = embedder
        self._done: dict[int, tuple[int, int, bytes]] = {}  # by document id: scope, change, vector
        self._missing: list[int] = []

    async def lacking(self) -> int:
        self._missing = await self._threads.read(self._without_vector)
        return len(self._missing)

    def _without_vector(self, db: apsw.Connection) -> list[int]:
        rows = db.execute("SELECT id, scope, change FROM documents ORDER BY id")
        return [number for number, *read in rows if [*self._done.get(number, ())[:2]] != read]

    async def batches(self) -> AsyncIterator[list[_Lacking]]:
        for start in range(0, len(self._missing), BATCH):
            numbers = self._missing[start : start + BATCH]
            if pending := await self._threads.read(lambda db, numbers=numbers: _read(db, numbers)):  # type: ignore[misc]
                yield pending

    async def take(self, pending: Sequence[_Lacking], vectors: Sequence[NDArray[np.float32]]) -> None:
        for item, vector in zip(pending, vectors, strict=True):
            self._done[item.number] = (item.scope, item.change, pack(vector))

    async def swap(self) -> int | None:
        return await self._threads.write(self._swap)

    def _swap(self, db: apsw.Connection) -> int | None:
        if self._without_vector(db):
            return None
        rows: list[Any] = db.execute("SELECT id, scope FROM documents").fetchall()
        scopes: list[Any] = db.execute("SELECT id, changes + 1 FROM scopes").fetchall()
        changes = dict(scopes)
        db.executemany(
            "UPDATE documents SET vector = ?, change = ? WHERE id = ?",
            [(self._done[number][2], changes[scope], number) for number, scope in rows],
        )
        db.execute("UPDATE scopes SET changes = changes + 1")
        documents.replace_embedder(db, self._embedder)
        return len(rows)


def _read(db: apsw.Connection, numbers: Sequence[int]) -> list[_Lacking]:
    """The documents of these ids that are still there."""
    sql = "SELECT id, scope, change, text FROM documents WHERE id = ?"
    return [_Lacking(*row) for number in numbers for row in db.execute(sql, (number,))]
