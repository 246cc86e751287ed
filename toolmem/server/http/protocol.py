"""HTTP/1.1 on a connection, with bounds that uvicorn leaves open: the size of a head, and the time it may take.

uvicorn's `h11_max_incomplete_event_size` bounds the size for its slower parser alone, and nothing bounds the time.
"""

from __future__ import annotations

import asyncio
import json
from asyncio import TimerHandle
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

MAX_HEAD = 64 * 1024  # bytes of the request line and the headers


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


def bounded(read_timeout: float) -> Callable[..., BoundedProtocol]:
    """What uvicorn makes its connections with."""

    def make(*given: Any, **named: Any) -> BoundedProtocol:
        return BoundedProtocol(read_timeout, *given, **named)

    return make
