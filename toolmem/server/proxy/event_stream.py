"""Server-sent events as they came, and the message that each carries."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable

from toolmem.server.proxy.frames import MAX_FRAME

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r|\n\r\n")
_LINE = re.compile(rb"\r\n|\n|\r")

Seen = Callable[[bytes], Awaitable[bytes]]


class EventChunks:
    """Whole events out of bytes as they arrive; of one that is longer than `most`, the pieces as they come."""

    def __init__(self, most: int = MAX_FRAME) -> None:
        self._most = most
        self._waiting = bytearray()
        self._searched = 0  # bytes of it that hold no end

    def feed(self, chunk: bytes) -> list[bytes]:
        self._waiting += chunk
        events = []
        while found := _END.search(self._waiting, max(0, self._searched - 3)):
            events.append(bytes(self._waiting[: found.end()]))
            del self._waiting[: found.end()]
            self._searched = 0
        self._searched = len(self._waiting)
        if self._searched > self._most:
            events.append(self.rest())
        return events

    def rest(self) -> bytes:
        """What stands behind the last event."""
        rest, self._waiting, self._searched = bytes(self._waiting), bytearray(), 0
        return rest


def message_in(event: bytes) -> bytes:
    """What an event carries; b"" where it carries nothing, as a comment does."""
    data = []
    for line in _LINE.split(event):
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
    return b"\n".join(data)


def event_of(message: bytes, like: bytes = b"") -> bytes:
    """An event that carries this message, with the other fields of `like`."""
    fields = [line for line in _LINE.split(like) if line and line.partition(b":")[0] != b"data"]
    fields = fields or [b"event: message"]
    return b"\n".join([*fields, b"data: " + message, b"", b""])


async def seen_events(chunks: AsyncIterable[bytes], seen: Seen) -> AsyncIterator[bytes]:
    """A stream of events whose messages were shown to `seen`; what it leaves alone passes as it came."""
    events = EventChunks()
    async for chunk in chunks:
        for event in events.feed(chunk):
            yield await _seen_event(event, seen)
    if rest := events.rest():
        yield rest


async def _seen_event(event: bytes, seen: Seen) -> bytes:
    message = message_in(event)
    if not message.strip():
        return event
    shown = await seen(message)
    return event if shown == message else event_of(shown, event)
