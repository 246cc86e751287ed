"""A child process whose messages go to whoever they are for.

The process of a session has one client. Of the one that all stateless requests share, a message goes to the request
that it names; one that names none only while a single client was ever served: it might be meant for another.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from toolmem.server.proxy.frames import MAX_FRAME, Frame, FrameLines, UnreadableFrame, written
from toolmem.server.proxy.open_requests import AskedClients, OpenRequest, OpenRequests, replaced
from toolmem.server.proxy.piped_client import CHUNK

log = logging.getLogger("toolmem.proxy")

_MOST_WAITING = 1000  # messages for a client that listens to none
_MOST_UNREAD = 1 << 20  # bytes of refusals that the process does not read
_GRACE = 5.0
_NOT_DELIVERED = -32000
_OVER = "toolmem: the request that this belongs to is over"
_WHOSE = "toolmem: nothing says which of two clients or more this is for: name its request in _meta.relatedRequestId"


class ServedProcess:
    """`is_shared`: by clients that cannot be told apart."""

    def __init__(self, command: Sequence[str], *, is_shared: bool) -> None:
        self._command = list(command)
        self.is_shared = is_shared
        self._open = OpenRequests()
        self._asked = AskedClients()
        self.unasked: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=_MOST_WAITING)
        self.listeners = 0
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Raises OSError."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=CHUNK
        )
        self._reading = asyncio.create_task(self._read())

    @property
    def runs(self) -> bool:
        return self._reading is not None and not self._reading.done()

    # -- to the process

    async def send(self, frame: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(ConnectionError):
            self._process.stdin.write(frame + b"\n")
            await self._process.stdin.drain()

    async def ask(self, frame: Frame, client: Hashable) -> OpenRequest:
        """Send a request under a name of its own."""
        request = self._open.add(frame, client)
        await self.send(request.renamed)
        return request

    async def answer(self, frame: Frame) -> bool:
        """Pass on what a client answers, or reports of, a request of the process. Was it asked?"""
        if not self.is_shared:
            told: bytes | None = frame.raw
        else:
            told = self._asked.reported(frame) if "method" in frame.value else self._asked.answered(frame)
        if told is not None:
            await self.send(told)
        return told is not None

    async def leave(self, request: OpenRequest) -> None:
        """Nobody waits for it any more: the process is told, unless it answered."""
        if self._open.pop(request.name) is not None:
            self._give_up(request)
            params = {"requestId": request.name, "reason": "the client closed the stream"}
            await self.send(written({"method": "notifications/cancelled", "params": params}))

    def __iter__(self) -> Iterator[OpenRequest]:
        """The requests that it works on, oldest first."""
        return iter(self._open)

    def __contains__(self, request: OpenRequest) -> bool:
        return request in self._open

    # -- from the process

    async def _read(self) -> None:
        assert self._process.stdout is not None
        lines = FrameLines()
        while chunk := await self._process.stdout.read(CHUNK):
            for piece, is_whole in lines.feed(chunk):
                if is_whole and piece.lstrip()[:1] == b"{":
                    self._read_line(piece)
                elif piece.strip():
                    log.warning("the server wrote what is no message, or one of more than %s bytes", f"{MAX_FRAME:,}")
        for request in self._open:
            self._open.pop(request.name)
            request.frames.put_nowait(None)
        self._hand_on(None)

    def _read_line(self, raw: bytes) -> None:
        with suppress(UnreadableFrame):
            self._route(Frame(raw))

    def _route(self, frame: Frame) -> None:
        message = frame.value if isinstance(frame.value, dict) else {}
        if "method" not in message:
            self._answered(frame, message)
            return
        name, places = self._open.named_in(message)
        if (request := self._open.get(name)) is not None:
            self._deliver(frame, message, replaced(frame, places, request), request)
        elif message.get("method") == "notifications/progress" or (name and self.is_shared):
            self._refuse(message, _OVER)
        elif self.is_shared:
            self._unnamed(frame, message)
        else:
            self._hand_on(frame.raw)

    def _answered(self, frame: Frame, message: dict[str, Any]) -> None:
        request, span = self._open.pop(message.get("id")), frame.span("id")
        if request is not None and span is not None:
            self._give_up(request)
            request.frames.put_nowait(frame.edited([(*span, request.id_text)]))
            request.frames.put_nowait(None)

    def _deliver(self, frame: Frame, message: dict[str, Any], told: bytes, request: OpenRequest) -> None:
        if self.is_shared and "id" in message:
            told, dropped = self._asked.asked(Frame(told), request)
            if dropped:
                self._say_refused(dropped, "toolmem: too many questions wait for an answer")
        request.frames.put_nowait(told)

    def _unnamed(self, frame: Frame, message: dict[str, Any]) -> None:
        """What a process that has no session says without saying to whom."""
        method, newest = str(message["method"]), self._open.newest
        if method.startswith("notifications/") and method.endswith("/list_changed"):
            for each in self._open:
                each.frames.put_nowait(frame.raw)
        elif method == "notifications/cancelled":
            if (withdrawn := self._asked.withdrawn(frame)) is not None:
                withdrawn[1].frames.put_nowait(withdrawn[0])
        elif newest is None:
            self._refuse(message, _OVER)
        elif self._open.are_of_one_client:
            self._deliver(frame, message, frame.raw, newest)
        else:
            self._refuse(message, _WHOSE)

    def _hand_on(self, raw: bytes | None) -> None:
        """What no request of a client asked for: to its open stream, or with the answer to its newest request."""
        if raw is not None and not self.listeners and (newest := self._open.newest) is not None:
            newest.frames.put_nowait(raw)
            return
        if self.unasked.full():
            self.unasked.get_nowait()
        self.unasked.put_nowait(raw)

    # -- what nobody can be given

    def _give_up(self, request: OpenRequest) -> None:
        for id_text in self._asked.given_up(request):
            self._say_refused(id_text, _OVER)

    def _refuse(self, message: dict[str, Any], why: str) -> None:
        if "id" in message:
            self._say_refused(json.dumps(message["id"]), why)
        else:
            log.debug("a notification of the server is for nobody: %s", str(message.get("method"))[:100])

    def _say_refused(self, id_text: str, why: str) -> None:
        """Not awaited: who reads what the process writes must not wait until the process reads."""
        log.warning("a request of the server is refused: %s", why)
        stdin = self._process.stdin
        if stdin is not None and stdin.transport.get_write_buffer_size() < _MOST_UNREAD:
            id = json.loads(id_text, strict=False)
            error = written({"id": id, "error": {"code": _NOT_DELIVERED, "message": why}})
            with suppress(ConnectionError):
                stdin.write(error + b"\n")

    async def close(self) -> None:
        if self._reading is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        for end in (self._process.terminate, self._process.kill):
            try:
                async with asyncio.timeout(_GRACE):
                    await self._process.wait()
                break
            except TimeoutError:
                with suppress(ProcessLookupError):
                    end()
        self._reading.cancel()
