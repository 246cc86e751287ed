"""Vector indexes that stay in memory between searches."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import apsw

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
