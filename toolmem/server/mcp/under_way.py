"""Work that was taken on for a client, and is seen to its end though the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class UnderWay:
    """Runs each piece of work in a task of its own.

    When the one who waits is cancelled the work is cancelled once and left to end by itself: a write that was started
    finishes. (A cancel scope would cancel it again at each step.)
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    async def run(self, work: Awaitable[T]) -> T:
        """What the work answers."""
        task: asyncio.Task[T] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited was told, or has gone

    async def settled(self) -> None:
        """Cancel what is left, unless it was cancelled before, and wait until it has ended."""
        while self._tasks:
            for task in self._tasks:
                if not task.cancelling():
                    task.cancel()
            await asyncio.wait(self._tasks)
