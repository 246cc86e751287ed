"""A thread that owns one database connection, and the bridge from any event loop to it."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

logger = logging.getLogger("toolmem.store")

T = TypeVar("T")


class _Job:
    """One function to run in the thread, and the future that waits for it in some loop."""

    __slots__ = ("function", "future", "loop", "must_run")

    def __init__(
        self, function: Callable[[], Any], loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], must_run: bool
    ) -> None:
        self.function = function
        self.loop = loop
        self.future = future
        self.must_run = must_run

    def perform(self) -> None:
        if self.future.cancelled() and not self.must_run:
            return
        try:
            result, error = self.function(), None
        except Exception as raised:
            result, error = None, raised
        try:
            self.loop.call_soon_threadsafe(self._settle, result, error)
        except RuntimeError:  # the loop was closed meanwhile: nobody waits any more
            self._report(error)

    def _settle(self, result: Any, error: Exception | None) -> None:
        if self.future.done():
            self._report(error)
        elif error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)

    @staticmethod
    def _report(error: Exception | None) -> None:
        if error is not None:
            logger.warning("a store operation failed after its caller had gone away: %s", error)


class _Farewell:
    """A last function that nobody waits for in a loop."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[], None]) -> None:
        self.function = function

    def perform(self) -> None:
        try:
            self.function()
        except Exception:
            logger.exception("closing a forgotten store failed")


class Worker:
    """Runs functions one after the other in one thread.

    `after` runs in the thread after each function, once its result is on its way: work that no caller should
    wait for. The thread is a daemon, so that a store that nobody closed never holds up the end of the process.
    """

    def __init__(self, name: str, after: Callable[[], None] | None = None) -> None:
        self._queue: queue.SimpleQueue[_Job | _Farewell | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=_serve, args=(self._queue, after), name=name, daemon=True)
        self._thread.start()

    async def run(self, function: Callable[[], T], *, must_run: bool = False) -> T:
        """Run `function` in the thread. A caller that is cancelled leaves at once; with `must_run` the function
        runs to its end all the same, otherwise it is dropped where it had not begun."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._queue.put(_Job(function, loop, future, must_run))
        return await future

    def stop(self) -> None:
        """Let the thread end after what is queued; nothing may be handed over any more."""
        self._queue.put(None)

    def end_with(self, function: Callable[[], None], timeout: float) -> None:
        """Run a last function after what is queued, without any event loop, and wait up to `timeout` seconds for it."""
        self._queue.put(_Farewell(function))
        self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)


def _serve(jobs: queue.SimpleQueue[_Job | _Farewell | None], after: Callable[[], None] | None) -> None:
    while (job := jobs.get()) is not None:
        job.perform()
        del job  # or the result of the last call would live as long as the thread is idle
        if after is not None:
            try:
                after()
            except Exception:
                logger.exception("maintenance of the store failed")
