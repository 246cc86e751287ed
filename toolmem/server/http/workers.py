"""Several worker processes on one store: started anew (never forked), replaced where one dies, stopped together.

Each worker has its own connections to the store, its own pacing, budget and limit of requests at once.

uvicorn's `Multiprocess` (0.54) does not do: its workers outlive a supervisor that is killed, a second Ctrl-C goes
unheard while it waits for them, a closed terminal (SIGHUP) restarts instead of ending, and all share one socket.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from toolmem.errors import StoreError, StoreUntrusted

logger = logging.getLogger("toolmem.service")

_READY = b"ready"
_FIRST_PAUSE = 0.1  # seconds before a worker is replaced; doubled each time one dies young
_LONGEST_PAUSE = 10.0
_YOUNG = 30.0  # seconds
_LOOK = 0.2  # seconds between two looks at workers that are ending
_GRACE = 20.0  # seconds over `http.shutdown_timeout` before a worker that does not end is killed

Listeners = list[socket.socket]


@dataclass
class _WorkerProcess:
    number: int
    process: SpawnProcess
    pipe: Connection  # the worker says that it is ready; closed, it tells the worker that nobody waits for it
    started: float = field(default_factory=time.monotonic)
    ready: bool = False


class Workers:
    """Supervises the workers of one service."""

    def __init__(
        self,
        files: Sequence[Path],
        overrides: Sequence[str],
        listeners: Sequence[Listeners],
        *,
        shutdown_timeout: float,
        ready: Callable[[], None],
    ) -> None:
        self._given = (list(files), list(overrides))
        self._listeners = listeners
        self._shutdown_timeout = shutdown_timeout
        self._ready = ready
        self._announced = False
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_WorkerProcess] = []
        self._waiting: dict[int, float] = {}  # worker number -> when its replacement starts
        self._pauses: dict[int, float] = {}
        self._stopping = False
        self._forced = False  # Ctrl-C once more: requests in flight are not waited for
        self._wake_read, self._wake_write = os.pipe()

    def run(self) -> int:
        """Until a signal comes; answers the exit code."""
        os.set_blocking(self._wake_write, False)
        before = {number: signal.signal(number, self._told_to_stop) for number in (signal.SIGTERM, signal.SIGINT)}
        # A signal may reach another thread: this one goes on waiting then, unless the interpreter itself wakes it.
        woken = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        try:
            for number in range(len(self._listeners)):
                self._start(number)
            return self._watch()
        finally:
            self._stop_all()
            signal.set_wakeup_fd(woken)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _told_to_stop(self, number: int, _: Any) -> None:
        self._forced = self._forced or (self._stopping and number == signal.SIGINT)
        self._stopping = True

    def _start(self, number: int) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_work,
            args=(*self._given, self._listeners[number], theirs),
            name=f"toolmem-worker-{number}",
        )
        process.start()
        theirs.close()
        self._workers.append(_WorkerProcess(number, process, ours))

    # -- watching

    def _watch(self) -> int:
        while not self._stopping:
            watched: list[Any] = [self._wake_read, *(worker.process.sentinel for worker in self._workers)]
            watched += [worker.pipe for worker in self._workers if not worker.ready]
            due = min(self._waiting.values(), default=None)
            wait(watched, None if due is None else max(0.0, due - time.monotonic()))
            for worker in list(self._workers):
                self._look_at(worker)
                if worker in self._workers and not worker.process.is_alive():
                    self._replace(worker)
                    if not self._announced:
                        logger.error("a worker could not start; the service stops")
                        return 1
            self._start_replacements()
        return 0

    def _look_at(self, worker: _WorkerProcess) -> None:
        if worker.ready or not worker.pipe.poll():
            return
        try:
            worker.ready = worker.pipe.recv_bytes() == _READY
        except EOFError:
            return
        if not self._announced and all(each.ready for each in self._workers):
            self._announced = True
            self._ready()

    def _replace(self, worker: _WorkerProcess) -> None:
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)
        if self._stopping or not self._announced:
            return
        young = time.monotonic() - worker.started < _YOUNG
        pause = min(self._pauses.get(worker.number, _FIRST_PAUSE / 2) * 2, _LONGEST_PAUSE) if young else _FIRST_PAUSE
        self._pauses[worker.number] = pause
        self._waiting[worker.number] = time.monotonic() + pause
        logger.error(
            "worker %d ended with code %s; another one starts in %g s",
            worker.process.pid,
            worker.process.exitcode,
            pause,
        )

    def _start_replacements(self) -> None:
        for number, due in list(self._waiting.items()):
            if due <= time.monotonic() and not self._stopping:
                del self._waiting[number]
                self._start(number)

    # -- stopping

    def _stop_all(self) -> None:
        for listener in {one for each in self._listeners for one in each}:
            listener.close()  # whoever comes now is refused, not left waiting
        for worker in self._workers:
            worker.process.terminate()
        deadline = time.monotonic() + self._shutdown_timeout + _GRACE
        forced = False
        while alive := [worker for worker in self._workers if worker.process.is_alive()]:
            if self._forced and not forced:
                forced = True
                for worker in alive:
                    worker.pipe.close()
            if time.monotonic() > deadline:
                for worker in alive:
                    logger.error("worker %d did not end and is killed", worker.process.pid)
                    worker.process.kill()
            wait([worker.process.sentinel for worker in alive], _LOOK)
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()


# ---------------------------------------------------------------- in the worker


def _work(files: list[Path], overrides: list[str], listeners: Listeners, pipe: Connection) -> None:
    """A worker's whole life. Ctrl-C reaches the whole group of processes; the supervisor passes on what it means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    from toolmem.server import loading

    with loading():
        from toolmem.server.http.access_log import log_to_stderr
        from toolmem.server.http.preparing import prepare
        from toolmem.server.http.running import run

        logging.disable(logging.WARNING)  # the supervisor has said it
        app, access = prepare(files, overrides)
        logging.disable(logging.NOTSET)
    log_to_stderr()
    try:
        run(
            app,
            access,
            listeners,
            ready=lambda: pipe.send_bytes(_READY),
            signals=(signal.SIGTERM,),
            stopper=lambda stop: _stop_when_alone(pipe, stop),
        )
    except (StoreError, StoreUntrusted) as error:
        logger.error("%s", error)
        raise SystemExit(1) from None


def _stop_when_alone(pipe: Connection, stop: Callable[[], None]) -> None:
    """Call `stop` when the supervisor has gone, so that no worker outlives it, or when it waits no longer."""
    import asyncio

    loop = asyncio.get_running_loop()

    def gone() -> None:
        loop.remove_reader(pipe.fileno())
        stop()

    loop.add_reader(pipe.fileno(), gone)
