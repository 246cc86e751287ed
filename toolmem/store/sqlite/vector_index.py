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

from toolmem.store.sqlite.lookup import one

_LOAD_ROWS = 4096
_TOLERANCE = 1e-5  # float32 products of equal rows may differ by less than this, depending on where a row stands


class VectorIndex:
    """The unit vectors of one scope as rows of a float32 matrix. A zero vector has no direction: it is never ranked."""

    def __init__(self, scope: int, dimension: int) -> None:
        self._scope = scope
        self._changes = 0
        self._deletions = 0
        self._count = 0
        self._matrix: NDArray[np.float32] = np.zeros((0, dimension), dtype=np.float32)
        self._numbers: NDArray[np.int64] = np.zeros(0, dtype=np.int64)  # document ids, by row
        self._keys: list[str] = []  # by row
        self._row_of: dict[int, int] = {}  # by document id
        self._directed: NDArray[np.bool_] = np.zeros(0, dtype=bool)  # by row: not a zero vector

    @property
    def size_bytes(self) -> int:
        return self._matrix.nbytes

    def refresh(self, db: apsw.Connection) -> None:
        """Take in what was written since the last call; runs inside a read transaction."""
        changes, deletions = one(db, "SELECT changes, deletions FROM scopes WHERE id = ?", self._scope)
        if changes != self._changes:
            rows = db.execute(
                "SELECT id, key, vector FROM documents WHERE scope = ? AND change > ?", (self._scope, self._changes)
            )
            while chunk := list(islice(rows, _LOAD_ROWS)):
                self._take(chunk)
        if deletions != self._deletions:
            self._keep_only({number for (number,) in db.execute(_IDS, (self._scope,))})
        self._changes, self._deletions = changes, deletions

    def _take(self, rows: list[tuple[int, str, bytes | None]]) -> None:
        for number, _, blob in rows:
            if blob is None:
                self._drop(number)
        rows = [row for row in rows if row[2] is not None]
        new = sum(row[0] not in self._row_of for row in rows)
        self._reserve(self._count + new)
        places = np.empty(len(rows), dtype=np.int64)
        for i, (number, key, _) in enumerate(rows):
            place = self._row_of.get(number)
            if place is None:
                place = self._row_of[number] = self._count
                self._count += 1
                self._keys.append(key)
            self._keys[place] = key
            places[i] = place
            self._numbers[place] = number
        if rows:
            vectors = np.frombuffer(b"".join(row[2] or b"" for row in rows), dtype="<f4")
            vectors = vectors.reshape(len(rows), self._matrix.shape[1])
            self._matrix[places] = vectors
            self._directed[places] = vectors.any(axis=1)

    def _reserve(self, rows: int) -> None:
        if rows <= len(self._matrix):
            return
        size = max(rows, len(self._matrix) * 3 // 2, 16)
        matrix = np.zeros((size, self._matrix.shape[1]), dtype=np.float32)
        matrix[: self._count] = self._matrix[: self._count]
        self._matrix = matrix
        self._numbers = np.resize(self._numbers, size)
        directed = np.zeros(size, dtype=bool)
        directed[: self._count] = self._directed[: self._count]
        self._directed = directed

    def _keep_only(self, numbers: Collection[int]) -> None:
        for number in [number for number in self._row_of if number not in numbers]:
            self._drop(number)

    def _drop(self, number: int) -> None:
        """The last row moves to the free place."""
        place = self._row_of.pop(number, None)
        if place is None:
            return
        self._count -= 1
        last_key = self._keys.pop()
        if place != self._count:
            self._matrix[place] = self._matrix[self._count]
            self._directed[place] = self._directed[self._count]
            self._numbers[place] = self._numbers[self._count]
            self._keys[place] = last_key
            self._row_of[int(self._numbers[place])] = place

    def nearest(
        self, query: NDArray[np.float32], depth: int, allowed: Collection[int] | None
    ) -> list[tuple[str, float]]:
        """Key and cosine of the `depth` nearest documents, best first; equal ones by key. `allowed`: only these ids."""
        if not query.any():
            return []
        rows = None  # all
        if allowed is not None:
            rows = np.array([row for n in allowed if (row := self._row_of.get(n)) is not None], dtype=np.int64)
            rows = rows[self._directed[rows]]
        elif not self._directed[: self._count].all():
            rows = np.flatnonzero(self._directed[: self._count])
        products = self._matrix[: self._count] @ query if rows is None else self._matrix[rows] @ query
        best = _largest(products, depth)
        return self._ordered(best if rows is None else rows[best], query)[:depth]

    def _ordered(self, rows: NDArray[np.int64], query: NDArray[np.float32]) -> list[tuple[str, float]]:
        """Products in float64, row by row: equal vectors get equal figures, wherever they stand in the matrix."""
        cosines = _cosines(self._matrix[rows], query)
        found = zip((self._keys[row] for row in rows.tolist()), cosines, strict=True)
        return sorted(found, key=lambda each: (-round(each[1], 9), each[0]))

    def similarities(self, query: NDArray[np.float32], numbers: Iterable[int]) -> dict[str, float]:
        """Cosine by key, of those documents that have a vector; 0.0 where one of the two has no direction."""
        rows = [row for number in numbers if (row := self._row_of.get(number)) is not None]
        return {self._keys[row]: cosine for row, cosine in zip(rows, _cosines(self._matrix[rows], query), strict=True)}


_IDS = "SELECT id FROM documents WHERE scope = ?"


def _cosines(rows: NDArray[np.float32], query: NDArray[np.float32]) -> list[float]:
    products: list[float] = np.clip((rows.astype(np.float64) * query).sum(axis=1), -1.0, 1.0).tolist()
    return products


def _largest(values: NDArray[np.float32], depth: int) -> NDArray[np.int64]:
    """Positions of all values that may be among the `depth` largest."""
    if len(values) <= depth:
        return np.arange(len(values))
    threshold = np.partition(values, len(values) - depth)[len(values) - depth]
    return np.flatnonzero(values >= threshold - _TOLERANCE)
