"""Guidance that was read before: nine tenths of reading a record are spent on its text."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from toolmem.schema import Guidance

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
