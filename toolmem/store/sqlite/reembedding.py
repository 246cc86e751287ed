"""Taking on another embedder: all texts embedded again, then all vectors swapped in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import apsw

from toolmem.errors import Conflict
from toolmem.protocols import Embedder, EmbedderIdentity
from toolmem.store.searching import unit_vector
from toolmem.store.sqlite import documents
from toolmem.store.sqlite.lanes import Lanes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 256  # texts handed to the embedder at once
MAX_ROUNDS = 100  # of catching up with writers that go on meanwhile


@dataclass(frozen=True, slots=True)
class Pending:
    """A document whose new vector is still to be computed, as it was read."""

    number: int
    scope: int
    change: int
    text: str


class NewVectors:
    """The vectors of the new embedder so far. One is good as long as its document is still as it was read."""

    def __init__(self, embedder: EmbedderIdentity) -> None:
        self.embedder = embedder
        self._done: dict[int, tuple[int, int, bytes]] = {}  # by document id: scope, change, vector

    def __len__(self) -> int:
        return len(self._done)

    def add(self, pending: Sequence[Pending], vectors: NDArray[np.float32]) -> None:
        for item, vector in zip(pending, vectors, strict=True):
            unit = unit_vector(vector, self.embedder, "embedder")
            self._done[item.number] = (item.scope, item.change, unit.astype("<f4").tobytes())

    def missing(self, db: apsw.Connection) -> list[int]:
        """Ids of the documents that have no good vector yet; runs in a transaction."""
        rows = db.execute("SELECT id, scope, change FROM documents ORDER BY id")
        return [number for number, scope, change in rows if self._lacks(number, scope, change)]

    def _lacks(self, number: int, scope: int, change: int) -> bool:
        done = self._done.get(number)
        return done is None or done[:2] != (scope, change)

    def swap(self, db: apsw.Connection) -> int | None:
        """Replace every vector and the embedder, inside a write transaction; None (and nothing done) where a document
        was written meanwhile. Answers how many documents there are."""
        if self.missing(db):
            return None
        rows: list[Any] = db.execute("SELECT id, scope FROM documents").fetchall()
        scopes: list[Any] = db.execute("SELECT id, changes + 1 FROM scopes").fetchall()
        changes = dict(scopes)
        db.executemany(
            "UPDATE documents SET vector = ?, change = ? WHERE id = ?",
            [(self._done[number][2], changes[scope], number) for number, scope in rows],
        )
        db.execute("UPDATE scopes SET changes = changes + 1")
        documents.replace_embedder(db, self.embedder)
        return len(rows)


def read_pending(db: apsw.Connection, numbers: Sequence[int]) -> list[Pending]:
    """The documents of these ids that are still there; runs in a transaction."""
    sql = "SELECT id, scope, change, text FROM documents WHERE id = ?"
    return [Pending(*row) for number in numbers for row in db.execute(sql, (number,))]


async def reembed(lanes: Lanes, embedder: Embedder, progress: Callable[[int, int], None] | None) -> int:
    """See `MemoryStore.reembed`. Writers may go on meanwhile: what they change is embedded once more."""
    vectors = NewVectors(embedder.identity)
    for _ in range(MAX_ROUNDS):
        missing = await lanes.read(vectors.missing)
        for start in range(0, len(missing), BATCH):
            pending = await lanes.read(partial(read_pending, numbers=missing[start : start + BATCH]))
            if pending:
                vectors.add(pending, await embedder.embed([item.text for item in pending]))
            if progress is not None:
                progress(min(start + BATCH, len(missing)), len(missing))
        swapped = await lanes.write(None, lambda db, _: vectors.swap(db))
        if swapped is not None:
            return swapped
    raise Conflict("reembed: documents kept changing; stop the writers and run it again")
