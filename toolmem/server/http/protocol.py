"""uvicorn as toolmem runs it: heads of a bounded size that arrive in a bounded time, and an orderly end.

Its `h11_max_incomplete_event_size` bounds the size for its slower parser alone, and nothing bounds the time.
"""

from __future__ import annotations

import asyncio
import functools
import json
import math
import signal
import socket
from asyncio import TimerHandle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Literal

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from toolmem.config.settings import HttpSettings

MAX_HEAD = 64 * 1024  # bytes of the request line and the headers
SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LAST_MOMENTS = 10.0  # seconds for cancelled requests to end

Ready = Callable[[], None]


class HeadTooLarge(Exception):
    """Raised inside the parser, which turns it into an error of its own."""


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection on which a request's head does not arrive in time, and refuses one that is too large."""

    def __init__(self, read_timeout: float, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._read_timeout = read_timeout
        self._head_timer: TimerHandle | None = None
        self._head = 0  # bytes of the head that is being read
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        super().data_received(data)
        between_requests = self.cycle is None or self.cycle.response_complete
        if between_requests and self.timeout_keep_alive_task is None and not self.transport.is_closing():
            self._await_head()

    def on_message_begin(self) -> None:
        self._head = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        if self._head > MAX_HEAD:
            self._refuse(431, f"the head of the request is larger than {MAX_HEAD} bytes")
        else:
            self._refuse(400, "the request is not HTTP/1.1 that can be read")

    def _unsupported_upgrade_warning(self) -> None:
        """A request to change to another protocol is answered as any other request."""

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > MAX_HEAD:
            raise HeadTooLarge

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._read_timeout, self._head_is_late)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self._refuse(408, f"no request arrived within {self._read_timeout:g} s (http.read_timeout)")

    def _refuse(self, status: int, message: str) -> None:
        """Answered here: there is no request that an application could answer."""
        self._refused = True
        self._stop_waiting()
        errors = [{"type": "RequestError", "message": message}]
        body = json.dumps({"answer": message, "success": False, "metadata": {"errors": errors}}).encode()
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()


def config_of(app: ASGIApp, http: HttpSettings, *, lifespan: Literal["on", "off"] = "off") -> uvicorn.Config:
    """For an application of toolmem's own: it logs and answers itself."""
    return uvicorn.Config(
        app,
        http=functools.partial(BoundedProtocol, http.read_timeout),  # type: ignore[arg-type]
        ws="none",
        lifespan=lifespan,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=http.timeout_keep_alive,
        timeout_graceful_shutdown=math.ceil(http.shutdown_timeout),
    )


class Server(uvicorn.Server):
    """uvicorn's server, which ends with the process's own exit code and tells when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Ready, signals: Sequence[signal.Signals] = SIGNALS) -> None:
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
