"""Runs the HTTP service in this process: from the configuration to the last request, and the store closed behind it."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Sequence

from toolmem.app import ToolMemApp
from toolmem.errors import StoreUnavailable
from toolmem.server.http.access import AccessControl
from toolmem.server.http.application import application
from toolmem.server.http.protocol import SIGNALS, Ready, Server, config_of

logger = logging.getLogger("toolmem.service")


def run(
    app: ToolMemApp,
    access: AccessControl,
    listeners: list[socket.socket],
    *,
    ready: Ready,
    signals: Sequence[signal.Signals] = SIGNALS,
    stopper: Callable[[Callable[[], None]], None] | None = None,
) -> None:
    """Serve until a signal comes: the requests in flight are finished then; a second SIGINT cancels them.

    `ready` is called when requests are taken; `stopper` is handed a function that stops the service as a signal does.
    Raises StoreError where the store cannot be opened, StoreUntrusted where it was found and this user neither made nor
    trusts it; a cluster that is not reached yet is waited for.
    """
    config = config_of(application(app, access), app.settings.http)
    server = Server(config, ready, signals)
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_serve(app, server, listeners, stopper))


async def _serve(
    app: ToolMemApp,
    server: Server,
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
