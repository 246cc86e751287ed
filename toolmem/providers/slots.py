"""A cap on what is under way at once, for coroutines of any event loop and thread."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from types import TracebackType


class Slots:
    """`size` places, first come, first served. `async with slots:` holds one.

    asyncio's own semaphore belongs to the loop that first waits for it; an adapter outlives its loops.
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"size: expected at least 1, got {size}")
        self._free = size
        self._lock = threading.Lock()
        self._waiters: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()

    async def acquire(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            loop = asyncio.get_running_loop()
            waiter = (loop, loop.create_future())
            self._waiters.append(waiter)
        try:
            await waiter[1]
        except asyncio.CancelledError:
            with self._lock:
                granted = waiter not in self._waiters
                if not granted:
                    self._waiters.remove(waiter)
            if granted:
                self.release()
            raise

    def release(self) -> None:
        with self._lock:
            while self._waiters:
                loop, granted = self._waiters.popleft()
                try:
                    loop.call_soon_threadsafe(_grant, granted)
                except RuntimeError:  # that loop is closed, nobody waits there any more
                    continue
                return
            self._free += 1

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _grant(granted: asyncio.Future[None]) -> None:
    if not granted.done():
        granted.set_result(None)
