"""An event loop in a thread of its own, for synchronous callers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
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

    async def awaited(self, work: Coroutine[Any, Any, T]) -> T:
        """The same from another loop, which goes on meanwhile."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    @property
    def is_here(self) -> bool:
        """Is this its own thread, which cannot wait for itself?"""
        return threading.current_thread() is self._thread

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Beside:
    """The default store in the hands of a thread of its own, for synchronous code in the thread of a running loop.

    `opened`: answers the store as that thread may use it. Raises StoreError where it cannot be opened.
    """

    def __init__(self, opened: Callable[[], Awaitable[tuple[MemoryStore, bool]]]) -> None:
        self._portal = Portal()
        self._opened = opened
        self._store: MemoryStore | None = None
        self._is_own = False  # and is closed with this

    def call(self, work: Callable[[MemoryStore], Coroutine[Any, Any, T]]) -> T:
        """Wait for `work` on the store."""
        return self._portal.call(self._with_store(work))

    async def _with_store(self, work: Callable[[MemoryStore], Coroutine[Any, Any, T]]) -> T:
        if self._store is None:
            self._store, self._is_own = await self._opened()
        return await work(self._store)

    def close(self) -> None:
        if self._store is not None and self._is_own:
            self._portal.call(self._store.close())
        self._portal.stop()


async def _settled() -> None:
    """Until no other task of this loop is left."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    if others:
        await asyncio.wait(others)
