"""Exact cosine search over the vectors of one scope, kept in memory and kept current.

Loading 100,000 vectors takes about a second, so it happens once: afterwards the scope's counters, which every
process's writes advance, tell which rows are new and whether any have gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice

import apsw
import numpy as np
from numpy.typing import NDArray

from toolmem.store.searching import cosines, unpack
from toolmem.store.sqlite.lookup import one

_LOAD_ROWS = 4096
_TOLERANCE = 1e-5  # float32 products of equal rows may differ by less than this, depending on where a row stands


class VectorIndex:
    """The unit vectors of one scope as rows of a float32 matrix. A row that is outdated, or of a zero vector, which has
    no direction, is never ranked.
    """

    def __init__(self, scope: int, dimension: int) -> None:
        self._scope = scope
        self._matrix: NDArray[np.float32] = np.zeros((0, dimension), dtype=np.float32)
        self._ranked: NDArray[np.bool_] = np.zeros(0, dtype=bool)  # by row
        self._forget()

    def _forget(self) -> None:
        self._changes = self._deletions = 0
        self._keys: list[str] = []  # by row
        self._row_of: dict[int, int] = {}  # by document id

    @property
    def size_bytes(self) -> int:
        return self._matrix.nbytes

    def refresh(self, db: apsw.Connection) -> None:
        """Take in what was written since the last call; runs inside a read transaction."""
        changes, deletions = one(db, "SELECT changes, deletions FROM scopes WHERE id = ?", self._scope)
        if len(self._keys) > 2 * len(self._row_of) + _LOAD_ROWS:
            self._forget()  # most rows are outdated: load anew
        if changes != self._changes:
            sql = "SELECT id, key, vector FROM documents WHERE scope = ? AND change > ?"
            rows = db.execute(sql, (self._scope, self._changes))
            while chunk := list(islice(rows, _LOAD_ROWS)):
                self._take(chunk)
        if deletions != self._deletions:
            there = {number for (number,) in db.execute("SELECT id FROM documents WHERE scope = ?", (self._scope,))}
            self._drop([number for number in self._row_of if number not in there])
        self._changes, self._deletions = changes, deletions

    def _take(self, rows: list[tuple[int, str, bytes | None]]) -> None:
        self._drop([number for number, _, _ in rows])
        start = len(self._keys)
        blobs = []
        for number, key, blob in rows:
            if blob is not None:
                self._row_of[number] = len(self._keys)
                self._keys.append(key)
                blobs.append(blob)
        self._reserve(len(self._keys))
        vectors = unpack(b"".join(blobs)).reshape(len(blobs), self._matrix.shape[1])
        self._matrix[start : len(self._keys)] = vectors
        self._ranked[start : len(self._keys)] = vectors.any(axis=1)

    def _drop(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            row = self._row_of.pop(number, None)
            if row is not None:
                self._ranked[row] = False

    def _reserve(self, rows: int) -> None:
        if rows > len(self._matrix):
            more = max(rows, len(self._matrix) * 3 // 2, 16) - len(self._matrix)
            self._matrix = np.pad(self._matrix, ((0, more), (0, 0)))
            self._ranked = np.pad(self._ranked, (0, more))

    def nearest(
        self, query: NDArray[np.float32], depth: int, allowed: Collection[int] | None
    ) -> list[tuple[str, float]]:
        """Key and cosine of the `depth` nearest documents, best first; equal ones by key. `allowed`: only these ids."""
        if not query.any():
            return []
        count = len(self._keys)
        if allowed is None:
            products = np.where(self._ranked[:count], self._matrix[:count] @ query, -np.inf)
            rows = _largest(products, depth)
        else:
            chosen = np.array([row for n in allowed if (row := self._row_of.get(n)) is not None], dtype=np.int64)
            chosen = chosen[self._ranked[chosen]]
            rows = chosen[_largest(self._matrix[chosen] @ query, depth)]
        return self._ordered(rows[self._ranked[rows]], query)[:depth]

    def _ordered(self, rows: NDArray[np.int64], query: NDArray[np.float32]) -> list[tuple[str, float]]:
        found = zip((self._keys[row] for row in rows.tolist()), cosines(self._matrix[rows], query), strict=True)
        return sorted(found, key=lambda each: (-round(each[1], 9), each[0]))

    def similarities(self, query: NDArray[np.float32], numbers: Iterable[int]) -> dict[str, float]:
        """Cosine by key, of those documents that have a vector; 0.0 where one of the two has no direction."""
        rows = [row for number in numbers if (row := self._row_of.get(number)) is not None]
        return {self._keys[row]: cosine for row, cosine in zip(rows, cosines(self._matrix[rows], query), strict=True)}


def _largest(values: NDArray[np.float32], depth: int) -> NDArray[np.int64]:
    """Positions of all values that may be among the `depth` largest."""
    if len(values) <= depth:
        return np.arange(len(values))
    threshold = np.partition(values, len(values) - depth)[len(values) - depth]
    return np.flatnonzero(values >= threshold - _TOLERANCE)
