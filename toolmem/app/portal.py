"""An event loop in a thread of its own, for synchronous callers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from toolmem.protocols import MemoryStore

T = TypeVar("T")


class Portal:
    """Runs coroutines from synchronous code, also from inside a running event loop (a notebook's cell)."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="toolmem", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for `work`. An interrupt cancels it and waits until it has ended: a started write finishes."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            asyncio.run_coroutine_threadsafe(_settled(), self._loop).result(timeout=10)
            raise

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Aside:
    """A second handle on a store whose handles belong to one loop each, for synchronous code on the first one's loop.

    Raises StoreError where it cannot be opened.
    """

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self._portal = Portal()
        self.call = self._portal.call
        try:
            self.call(store.open())
        except BaseException:
            self._portal.stop()
            raise

    def close(self) -> None:
        self.call(self.store.close())
        self._portal.stop()


async def _settled() -> None:
    """Until no other task of this loop is left."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    if others:
        await asyncio.wait(others)
