"""One connection of a `ModelServer`: HTTP/1.1 with keep-alive, as much of it as model clients use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

MAX_HEAD = 64 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class HttpRequest:
    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    def json(self) -> Any:
        """The body, None where it is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """`cut`: "before" or "within" reset the connection in place of (the end of) the answer."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    cut: str = ""

    def encoded(self) -> bytes:
        """Headers and body in one piece: two sends wait for the other side's delayed acknowledgement."""
        reason = HTTPStatus(self.status).phrase if self.status in HTTPStatus._value2member_map_ else "Status"
        lines = [f"HTTP/1.1 {self.status} {reason}", f"Content-Length: {len(self.body)}"]
        lines += [f"{name}: {value}" for name, value in {"Content-Type": "application/json", **self.headers}.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + self.body


Handler = Callable[[HttpRequest], Awaitable[HttpAnswer]]


class HttpConnection(asyncio.Protocol):
    """Answers one request after the other. A client that leaves ends the answer it was waiting for."""

    def __init__(self, handler: Handler, connections: set[HttpConnection]) -> None:
        self._handler = handler
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._answering: asyncio.Task[None] | None = None
        self._continued = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # TCP: asyncio sets TCP_NODELAY itself
        self._connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._connections.discard(self)
        if self._answering is not None:
            self._answering.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._next()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _next(self) -> None:
        """Start answering the next request, if it has come whole and nothing is being answered."""
        if self._answering is not None and not self._answering.done():
            return
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            if len(self._received) > MAX_HEAD:
                self.close()
            return
        try:
            method, path, headers = _read_head(bytes(self._received[:end]))
            length = int(headers.get("content-length", "0"))
        except ValueError:
            self.close()
            return
        if len(self._received) < end + 4 + length:
            self._continue(headers)
            return
        body = bytes(self._received[end + 4 : end + 4 + length])
        del self._received[: end + 4 + length]
        self._continued = False
        request = HttpRequest(method, path, headers, body)
        self._answering = asyncio.get_running_loop().create_task(self._answer(request))

    def _continue(self, headers: Mapping[str, str]) -> None:
        if headers.get("expect", "").lower() == "100-continue" and not self._continued and self._transport is not None:
            self._continued = True
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def _answer(self, request: HttpRequest) -> None:
        answer = await self._handler(request)
        if self._transport is None or self._transport.is_closing():
            return
        if answer.cut == "before":
            self.close()
            return
        encoded = answer.encoded()
        if answer.cut == "within":
            self._transport.write(encoded[: len(encoded) - max(len(answer.body) // 2, 1)])
            self._transport.close()
            return
        self._transport.write(encoded)
        if request.headers.get("connection", "").lower() == "close":
            self._transport.close()
        elif self._received:
            asyncio.get_running_loop().call_soon(self._next)


def _read_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    """Raises ValueError."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError(line)
        headers[name.strip().lower()] = value.strip()
    return method, path, headers
