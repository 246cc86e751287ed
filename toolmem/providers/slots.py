"""A cap on what is under way at once, for coroutines of any event loop and thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from types import TracebackType


class Slots:
    """`size` places, first come, first served. `async with slots:` holds one.

    asyncio's own semaphore belongs to the loop that first waits for it; an adapter outlives its loops. What a loop held
    or waited for that was closed meanwhile goes to the others.
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"size: expected at least 1, got {size}")
        self._size = size
        self._held: list[asyncio.AbstractEventLoop] = []  # by coroutines of these, one entry a place
        self._lock = threading.Lock()
        self._waiters: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()

    async def acquire(self) -> None:
        """Wait for a place."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._pass_on()
            if len(self._held) < self._size:
                self._held.append(loop)
                return
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
        """Give a place back, in the event loop that acquired it."""
        with self._lock:
            with contextlib.suppress(RuntimeError, ValueError):  # no loop is running: that of the place is closed
                self._held.remove(asyncio.get_running_loop())
            self._pass_on()

    def _pass_on(self) -> None:
        """Free places to those who wait, in their own event loops."""
        self._held = [loop for loop in self._held if not loop.is_closed()]
        while self._waiters and len(self._held) < self._size:
            loop, granted = self._waiters.popleft()
            with contextlib.suppress(RuntimeError):  # that loop is closed, nobody waits there any more
                loop.call_soon_threadsafe(_grant, granted)
                self._held.append(loop)

    async def __aenter__(self) -> None:
        """Wait for a place."""
        await self.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back."""
        self.release()


def _grant(granted: asyncio.Future[None]) -> None:
    if not granted.done():
        granted.set_result(None)
