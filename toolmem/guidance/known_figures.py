"""Figures of tools that did not change since they were last counted."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from weakref import WeakKeyDictionary

from toolmem.guidance.memory import Measured, measured
from toolmem.protocols import MemoryStore
from toolmem.stored import StoredMemory


class KnownFigures:
    """Figures of tools that were read before, so that a tool without new commits is not counted again.

    It remembers the `size` tools of one store that were asked for last. Usable from any thread.
    """

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._known: OrderedDict[tuple[str, str], tuple[Hashable, Measured]] = OrderedDict()
        self._lock = threading.Lock()

    async def memories(
        self, store: MemoryStore, workspace: str, tools: Sequence[str]
    ) -> list[tuple[StoredMemory, Measured]]:
        """As the store has them now, without calls, and what all their kept calls come to."""
        known = self.known(workspace, tools)
        read = await store.memories(workspace, tools, known={tool: state for tool, (state, _) in known.items()})
        found = []
        for stored in read:
            tool = stored.record.tool_name
            state, figures = known.get(tool, (None, None))
            if figures is None or state != stored.state:
                figures = measured(stored)
                self._remember((workspace, tool), stored.state, figures)
            found.append((stored, figures))
        return found

    def known(self, workspace: str, tools: Iterable[str]) -> dict[str, tuple[Hashable, Measured]]:
        """By tool: its state when it was counted, and its figures then. These tools are now the last asked for."""
        found = {}
        with self._lock:
            for tool in tools:
                key = (workspace, tool)
                if key in self._known:
                    self._known.move_to_end(key)
                    found[tool] = self._known[key]
        return found

    def _remember(self, key: tuple[str, str], state: Hashable, figures: Measured) -> None:
        if state is None:
            return
        with self._lock:
            self._known[key] = (state, figures)
            self._known.move_to_end(key)
            while len(self._known) > self._size:
                self._known.popitem(last=False)


_of_stores: WeakKeyDictionary[MemoryStore, KnownFigures] = WeakKeyDictionary()


def known_figures(store: MemoryStore) -> KnownFigures:
    """Of this store, for all who read it in this process."""
    return _of_stores.setdefault(store, KnownFigures())
