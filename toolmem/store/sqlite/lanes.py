"""The two connections of an open store, each in a thread of its own, and what happens to them at close and fork."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import apsw

from toolmem.errors import StoreClosed
from toolmem.store.sqlite.connection import (
    MEMORY,
    InPlace,
    Synchronous,
    can_be_written,
    explained,
    open_read_only,
    open_reader,
    open_writer,
    read_transaction,
    write_transaction,
)

logger = logging.getLogger("toolmem.store")

T = TypeVar("T")

CHECKPOINT_PAGES = 1000  # of the log, before they are moved into the file


class _Lane:
    """A connection, and the only thread that touches it."""

    def __init__(self, name: str, path: str, busy_timeout: float) -> None:
        self._state = _State()
        self._path = path
        self._busy_timeout = busy_timeout
        self.worker = Worker(f"toolmem {name}", after=self._state.checkpoint)

    @property
    def db(self) -> apsw.Connection | None:
        return self._state.db

    async def connect(self, opened: Callable[[], apsw.Connection]) -> None:
        await self.worker.run(partial(self._state.connect, opened), must_run=True)

    async def run(self, job: Callable[[apsw.Connection, InPlace], T], *, must_run: bool) -> T:
        return await self.worker.run(partial(self._explained, job), must_run=must_run)

    def _explained(self, job: Callable[[apsw.Connection, InPlace], T]) -> T:
        with explained(self._path, self._busy_timeout):
            if self._state.db is None:
                raise StoreClosed(f"the store {self._path} is closed")
            return job(self._state.db, self._state.place)

    async def close(self) -> None:
        await self.worker.run(self._state.close, must_run=True)
        self.worker.stop()

    def abandon(self, timeout: float) -> None:
        self.worker.end_with(self._state.close, timeout)


class _State:
    """What the thread holds on to; it does not know the store, so that a forgotten store can still be collected."""

    place: InPlace

    def __init__(self) -> None:
        self.db: apsw.Connection | None = None
        self._log_pages = 0

    def connect(self, opened: Callable[[], apsw.Connection]) -> None:
        self.db = opened()
        self.place = InPlace(self.db)
        self.db.set_wal_hook(self._logged)  # takes the place of SQLite's own automatic checkpoint

    def _logged(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def checkpoint(self) -> None:
        """Move the log into the file when it has grown long: after the write that made it so was acknowledged."""
        if self.db is not None and self._log_pages >= CHECKPOINT_PAGES:
            self._log_pages = 0
            if not self.place.holds(self.db):
                return  # who has it open where it is now would not know of what is moved into it
            try:
                self.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            except apsw.BusyError:
                logger.debug("another process is moving the log")

    def close(self) -> None:
        if self.db is not None:
            db, self.db = self.db, None
            db.close()


class Lanes:
    """The writer and the reader of one open store, of the process that opened it."""

    def __init__(
        self, path: str, synchronous: Synchronous, busy_timeout: float, accept_read_only: bool = False
    ) -> None:
        self._path = path
        self._accept_read_only = accept_read_only
        self._pid = os.getpid()
        self._synchronous: Synchronous = synchronous
        self._busy_timeout = busy_timeout
        self._writer = _Lane("writer", path, busy_timeout)
        self._reader = self._writer if path == MEMORY else _Lane("reader", path, busy_timeout)
        self._forgotten = weakref.finalize(self, _abandon, self._pid, self._lanes())
        _alive.add(self)

    def _lanes(self) -> tuple[_Lane, ...]:
        return (self._writer,) if self._reader is self._writer else (self._reader, self._writer)

    async def open(self) -> None:
        writer = partial(open_writer, self._path, self._synchronous, self._busy_timeout)
        reader = partial(open_reader, self._path, self._busy_timeout)
        if self._accept_read_only and not can_be_written(self._path):
            writer = reader = partial(open_read_only, self._path, self._busy_timeout)
        try:
            await self._writer.connect(writer)
            if self._reader is not self._writer:
                await self._reader.connect(reader)
        except BaseException:
            self._forgotten()
            raise

    def require_own_process(self) -> None:
        if os.getpid() != self._pid:
            raise StoreClosed(
                f"the store {self._path} belongs to process {self._pid}, which forked; open a store of your own"
            )

    async def read(self, job: Callable[[apsw.Connection], T]) -> T:
        """`job` sees one moment of the store."""
        return await self._reader.run(partial(_reading, job), must_run=False)

    async def write(self, prepare: Callable[[], Any] | None, job: Callable[..., T]) -> T:
        """`job(db, prepared)` in one transaction; `prepare` runs before the lock is taken. Once handed over, it is
        carried out, whether or not the caller still waits."""
        return await self._writer.run(partial(_writing, prepare, job), must_run=True)

    async def close(self) -> None:
        """What was handed over is done first."""
        for lane in self._lanes():
            await lane.close()
        self._forgotten.detach()

    def connections(self) -> list[apsw.Connection]:
        return [lane.db for lane in self._lanes() if lane.db is not None]


def _reading(job: Callable[[apsw.Connection], T], db: apsw.Connection, place: InPlace) -> T:
    place.require(db)
    with read_transaction(db):
        return job(db)


def _writing(prepare: Callable[[], Any] | None, job: Callable[..., T], db: apsw.Connection, place: InPlace) -> T:
    prepared = prepare() if prepare is not None else None
    with write_transaction(db):
        place.require(db)
        result = job(db, prepared)
        place.require(db)
    place.require(db)  # it may have been taken away while the commit was under way: then nothing is acknowledged
    return result


def _abandon(pid: int, lanes: tuple[_Lane, ...]) -> None:
    """Close what nobody closed, at collection or at the end of the process."""
    if os.getpid() == pid:
        for lane in lanes:
            lane.abandon(timeout=2.0)


# A connection must not be closed in a forked child: SQLite would clean up after locks that the child never held,
# under the eyes of the parent. So the child keeps every inherited connection alive, unused, until it ends.
_alive: weakref.WeakSet[Lanes] = weakref.WeakSet()
_inherited: list[apsw.Connection] = []


def _keep_inherited() -> None:
    for lanes in list(_alive):
        _inherited.extend(lanes.connections())


if hasattr(os, "register_at_fork"):  # where processes fork
    os.register_at_fork(after_in_child=_keep_inherited)


# ---------------------------------------------------------------- a thread that owns one connection


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
