"""What stays in memory between reads: guidance that was read before, and vector indexes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from toolmem.models import Guidance

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


CACHED_TOOLS = 4096

_Key = tuple[
    str, int
]  # id stem and guidance version: no two tools bear one stem, and each new guidance raises the version


class GuidanceCache:
    """By tool and version, for one opening of one store.

    Only for reads of what is committed: a version that is being written may be taken back and be given to another
    guidance. Used in one thread. Hands out copies, because callers may change what they get.
    """

    def __init__(self, capacity: int = CACHED_TOOLS) -> None:
        self._capacity = capacity
        self._kept: OrderedDict[_Key, Guidance | None] = OrderedDict()

    def get(self, stem: str, version: int, read: Callable[[], Guidance | None]) -> Guidance | None:
        """The guidance of this version; `read` is asked where it is not known."""
        key = (stem, version)
        if key in self._kept:
            self._kept.move_to_end(key)
            kept = self._kept[key]
        else:
            kept = self._kept[key] = read()
            while len(self._kept) > self._capacity:
                self._kept.popitem(last=False)
        return None if kept is None else copied(kept)


def copied(guidance: Guidance) -> Guidance:
    """A copy whose lists and statistics are its own. What is frozen (the claims) is shared."""
    own = {
        "claims": [*guidance.claims],
        "covered": [*guidance.covered],
        "statistics": guidance.statistics.model_copy(),
    }
    return guidance.model_copy(update=own)
