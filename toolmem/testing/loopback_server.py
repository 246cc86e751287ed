"""A web server on 127.0.0.1 in a thread of its own: what the servers of this package stand on."""

from __future__ import annotations

import asyncio
import socket
import threading
from abc import ABC, abstractmethod
from typing import Self

from aiohttp import web

BACKLOG = 256  # connections that may wait to be accepted; with the usual 100 a burst of clients gets resets


class LoopbackServer(ABC):
    """Runs from `start` (or `with`) to `stop`. `port` 0: any free one."""

    def __init__(self, *, port: int = 0) -> None:
        self.connections_made = 0
        self._port = port
        self._thread: threading.Thread | None = None
        self._stopped: asyncio.Future[None] | None = None
        self._http: web.Server | None = None

    @abstractmethod
    async def handle(self, http: web.Request) -> web.StreamResponse:
        """Answer one request, on the server's own loop."""

    def start(self) -> Self:
        """Raises OSError where the port is taken."""
        listener = socket.create_server(("127.0.0.1", self._port), backlog=BACKLOG)
        self._port = listener.getsockname()[1]
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(listener, ready)), name=type(self).__name__, daemon=True
        )
        self._thread.start()
        ready.wait()
        return self

    def stop(self) -> None:
        """Ends at once; requests that are being answered are cut."""
        if self._thread is not None and self._stopped is not None:
            self._stopped.get_loop().call_soon_threadsafe(self._stopped.set_result, None)
            self._thread.join()
        self._thread = self._stopped = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        return self._port

    @property
    def open_connections(self) -> int:
        return len(self._http.connections) if self._http else 0

    async def _serve(self, listener: socket.socket, ready: threading.Event) -> None:
        loop = asyncio.get_running_loop()
        self._stopped = loop.create_future()
        app = web.Application(client_max_size=0)
        app.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
        await runner.setup()
        self._http = runner.server
        server = await loop.create_server(self._connection, sock=listener, backlog=BACKLOG)
        ready.set()
        await self._stopped
        server.close()
        for connection in self._http.connections if self._http else ():
            connection.force_close()
        await runner.cleanup()

    def _connection(self) -> asyncio.Protocol:
        assert self._http is not None
        self.connections_made += 1
        return self._http()
