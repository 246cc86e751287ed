"""The two connections of an open store, each in a thread of its own, and what happens to them at close and fork."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import apsw

from toolmem.errors import StoreClosed, StoreError
from toolmem.late import late_logger
from toolmem.store.sqlite.connection import (
    MEMORY,
    Synchronous,
    can_be_written,
    is_unmade,
    open_read_only,
    open_reader,
    open_writer,
    patiently,
)
from toolmem.store.sqlite.open_file import OpenFile, moved

logger = late_logger("toolmem.store")

T = TypeVar("T")
Opener = Callable[[], apsw.Connection]
Accepted = Callable[[apsw.Connection], None] | None  # as of `OpenFile`

CHECKPOINT_PAGES = 1000  # of the log, before they are moved into the file


class _Worker:
    """A connection, and the only thread that touches it.

    The thread is a daemon, so that a store that nobody closed never holds up the end of the process. It knows nothing
    of the store, so that a forgotten store can be collected.
    """

    file: OpenFile

    def __init__(self, name: str) -> None:
        self._log_pages = 0
        self.beside: _Worker | None = None  # that of another connection to the file
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=f"toolmem {name}", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # or the result of the last call would live as long as the thread is idle
            if self._log_pages >= CHECKPOINT_PAGES:
                self._checkpoint()  # after the write that made the log long was acknowledged

    async def run(self, function: Callable[[], T], *, must_run: bool) -> T:
        """A caller that is cancelled leaves at once; with `must_run` the function runs to its end all the same,
        otherwise it is dropped where it had not begun.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put(partial(_perform, function, loop, future, must_run))
        return await future

    def connect(
        self, opened: Callable[[], apsw.Connection], path: str, busy_timeout: float, accepted: Accepted
    ) -> None:
        self.file = OpenFile(opened, path, busy_timeout, taken=self._take, accepted=accepted)

    def _take(self, db: apsw.Connection) -> None:
        db.set_wal_hook(self._logged)  # takes the place of SQLite's own automatic checkpoint
        if self.beside is not None:
            self.beside.expect()

    def expect(self) -> None:
        """The file was made: open it, so that one that is taken away again is missed."""
        if hasattr(self, "file"):
            self.file.is_expected = True
            self._jobs.put(self._open_made)

    def _open_made(self) -> None:
        with suppress(StoreError):  # who reads is told
            self.file.make()

    def _logged(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self) -> None:
        """Move the log into the file."""
        self._log_pages = 0
        db = self.file.db
        try:
            if db is not None and self.file.in_place(db):  # who has it open where it is now would not know of it
                db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.BusyError:
            logger.debug("another process is moving the log")
        except Exception:
            logger.exception("maintenance of the store failed")

    def close(self) -> None:
        if hasattr(self, "file"):  # else it could not be opened
            self.file.close()

    def end(self, timeout: float | None = None) -> None:
        """Close after what is queued, without any event loop, and let the thread end; wait so many seconds for it."""
        self._jobs.put(self._last)
        self._jobs.put(None)
        if timeout is not None and threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def _last(self) -> None:
        try:
            self.close()
        except Exception:
            logger.exception("closing a forgotten store failed")


def _perform(
    function: Callable[[], Any], loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], must_run: bool
) -> None:
    if future.cancelled() and not must_run:
        return
    try:
        result, error = function(), None
    except Exception as raised:
        result, error = None, raised
    try:
        loop.call_soon_threadsafe(_settle, future, result, error)
    except RuntimeError:  # the loop was closed meanwhile: nobody waits any more
        _report(error)


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        _report(error)
    elif error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


def _report(error: Exception | None) -> None:
    if error is not None:
        logger.warning("a store operation failed after its caller had gone away: %s", error)


class WorkerThreads:
    """The writer and the reader of one open store, of the process that opened it."""

    def __init__(
        self,
        path: str,
        synchronous: Synchronous,
        busy_timeout: float,
        accept_read_only: bool = False,
        accepted: Accepted = None,
    ) -> None:
        self._path = path
        self._accepted = accepted
        self._accept_read_only = accept_read_only
        self._pid = os.getpid()
        self._synchronous: Synchronous = synchronous
        self._busy_timeout = busy_timeout
        self._writer = _Worker("writer")
        self._reader = self._writer if path == MEMORY else _Worker("reader")
        self._writer.beside = None if self._reader is self._writer else self._reader
        self.workers = (self._writer,) if self._reader is self._writer else (self._writer, self._reader)
        self._forgotten = weakref.finalize(self, _abandon, self._pid, self.workers)
        _alive.add(self)

    async def open(self) -> None:
        given = (self._path, self._synchronous, self._busy_timeout)
        writer = partial(patiently, partial(open_writer, *given))
        reader = partial(patiently, partial(_open_reader, *given, is_unmade(self._path)))
        if self._accept_read_only and not can_be_written(self._path):
            writer = reader = partial(open_read_only, self._path, self._busy_timeout)
        try:
            for worker, opened in zip(self.workers, (writer, reader), strict=False):
                connect = partial(worker.connect, opened, self._path, self._busy_timeout, self._accepted)
                await worker.run(connect, must_run=True)
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
        return await self._reader.run(lambda: self._reader.file.read(job), must_run=False)

    async def write(self, job: Callable[[apsw.Connection], T], prepare: Callable[[], None] | None = None) -> T:
        """One transaction; `prepare` runs before the lock is taken. Once handed over, it is carried out, whether or not
        the caller still waits.
        """
        file = self._writer.file

        def prepared() -> T:
            if prepare is not None:
                prepare()
            return file.write(job)

        return await self._writer.run(prepared, must_run=True)

    @property
    def is_made(self) -> bool:
        """Is there a file?"""
        return self._writer.file.is_made or self._reader.file.is_made

    async def close(self) -> None:
        """What was handed over is done first."""
        for worker in reversed(self.workers):  # the writer last: with it the log goes
            await worker.run(worker.close, must_run=True)
            worker.end()
        self._forgotten.detach()


def _open_reader(path: str, synchronous: Synchronous, busy_timeout: float, was_unmade: bool) -> apsw.Connection:
    """`was_unmade`: the file was made since, perhaps by another process, which may still be about it."""
    if was_unmade:
        if is_unmade(path):
            raise moved(path)
        open_writer(path, synchronous, busy_timeout).close()
    return open_reader(path, busy_timeout)


def _abandon(pid: int, workers: tuple[_Worker, ...]) -> None:
    """Close what nobody closed, at collection or at the end of the process."""
    if os.getpid() == pid:
        for worker in reversed(workers):
            worker.end(timeout=2.0)


# A connection must not be closed in a forked child: SQLite would clean up after locks that the child never held,
# under the eyes of the parent. So the child keeps every inherited connection alive, unused, until it ends.
_alive: weakref.WeakSet[WorkerThreads] = weakref.WeakSet()
_inherited: list[_Worker] = []


def _keep_inherited() -> None:
    for threads in list(_alive):
        _inherited.extend(threads.workers)


if hasattr(os, "register_at_fork"):  # where processes fork
    os.register_at_fork(after_in_child=_keep_inherited)
