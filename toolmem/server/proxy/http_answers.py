"""What an HTTP client of the proxy is answered, and what it sends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from toolmem.server.proxy.frames import MAX_FRAME

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]

SESSION = b"mcp-session-id"


class StreamedAnswer:
    """What a client is answered, in pieces or as a whole."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False
        self.is_stream = False
        self._has_ended = False

    async def start(self, status: int, headers: RawHeaders) -> None:
        self.has_begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def stream(self, headers: RawHeaders | None = None) -> None:
        """Begin a stream of events of our own."""
        if not self.has_begun:
            self.is_stream = True
            told = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
            await self.start(200, [*told, *(headers or [])])

    async def write(self, data: bytes) -> None:
        if data:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        if self.has_begun and not self._has_ended:
            self._has_ended = True
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def whole(self, status: int, body: bytes, headers: RawHeaders) -> None:
        await self.start(status, [*headers, (b"content-length", str(len(body)).encode())])
        await self.write(body)
        await self.end()

    async def json(self, status: int, body: bytes, headers: RawHeaders | None = None) -> None:
        await self.whole(status, body, [(b"content-type", b"application/json"), *(headers or [])])


async def read_body(receive: Receive) -> bytes | None:
    """None where it is longer than a message may be; the rest of it is read and dropped."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise asyncio.CancelledError
        chunk = message.get("body", b"")
        size += len(chunk)
        parts.append(chunk)
        if size > MAX_FRAME:
            parts.clear()
        if not message.get("more_body"):
            return b"".join(parts) if size <= MAX_FRAME else None


async def client_gone(has_body: asyncio.Event, receive: Receive) -> None:
    """Wait until the client leaves; `has_body`: nobody else reads what it sends any more."""
    await has_body.wait()
    while (await receive())["type"] != "http.disconnect":
        pass
