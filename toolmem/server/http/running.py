"""Runs the HTTP service in this process: from the configuration to the last request, and the store closed behind it."""

from __future__ import annotations

import asyncio
import logging
import math
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn

from toolmem.app import ToolMemApp
from toolmem.errors import StoreUnavailable
from toolmem.server.http.access import Doorkeeper
from toolmem.server.http.application import application
from toolmem.server.http.protocol import bounded

logger = logging.getLogger("toolmem.service")

_LAST_MOMENTS = 10.0  # seconds for cancelled requests to end

Ready = Callable[[], None]


def run(
    app: ToolMemApp,
    doorkeeper: Doorkeeper,
    listeners: list[socket.socket],
    *,
    ready: Ready,
    signals: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGINT),
    stopper: Callable[[Callable[[], None]], None] | None = None,
) -> None:
    """Serve until a signal comes: the requests in flight are finished then; a second SIGINT cancels them.

    `ready` is called when requests are taken; `stopper` is handed a function that stops the service as a signal does.
    Raises StoreError where the store cannot be opened, StoreUntrusted where it was found and this user neither made nor
    trusts it; a cluster that is not reached yet is waited for.
    """
    http = app.settings.http
    config = uvicorn.Config(
        application(app, doorkeeper),
        http=bounded(http.read_timeout),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=http.timeout_keep_alive,
        timeout_graceful_shutdown=math.ceil(http.shutdown_timeout),
    )
    server = _Server(config, ready, signals)
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_serve(app, server, listeners, stopper))


async def _serve(
    app: ToolMemApp,
    server: _Server,
    listeners: list[socket.socket],
    stopper: Callable[[Callable[[], None]], None] | None,
) -> None:
    try:
        await _open_store(app)
        if stopper is not None:
            stopper(server.stop)
        await server.serve(sockets=listeners)
        await server.end_requests()
    finally:
        await app.close()


async def _open_store(app: ToolMemApp) -> None:
    try:
        await app.services.store_named()
    except StoreUnavailable as error:
        if app.settings.vector_store["default"].backend == "sqlite":
            raise
        logger.warning("the store is not there yet, requests answer 503 until it is: %s", error)
    app.services.require_trusted()


class _Server(uvicorn.Server):
    """uvicorn's server, which ends with the process's own exit code and tells when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Ready, signals: Sequence[signal.Signals]) -> None:
        super().__init__(config)
        self._ready = ready
        self._signals = signals

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's, but a signal that was obeyed is not raised again: stopping when told to is a success."""
        before = {number: signal.signal(number, self.handle_exit) for number in self._signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Whoever stops a group of processes may send SIGTERM twice without meaning anything by it.
        if sig == signal.SIGINT:
            self.stop()
        self.should_exit = True

    def stop(self) -> None:
        """Finish what is in flight; called again, cancel it."""
        self.force_exit = self.should_exit
        self.should_exit = True

    async def end_requests(self) -> None:
        """What is still under way was given its time: cancel it, and wait until it has ended."""
        tasks: set[asyncio.Task[Any]] = set(self.server_state.tasks)
        for task in tasks:
            if not task.cancelling():  # a second time would cut off what it does to end well
                task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_LAST_MOMENTS)
