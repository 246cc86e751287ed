"""A server that is a command, served over streamable HTTP: a process for each session, one for all stateless requests.

`served_process` says who gets what a process writes. Without a session a client is known by its connection alone: it
cancels a request by closing its stream, and a posted cancellation, whose id may be anybody's, cancels nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any

from toolmem.server.http.access import AccessControl
from toolmem.server.http.access import header as header_of
from toolmem.server.proxy.called import CANCELLED, NO_ANSWER
from toolmem.server.proxy.event_stream import event_of
from toolmem.server.proxy.frames import MAX_FRAME, Frame, UnreadableFrame, written
from toolmem.server.proxy.http_answers import SESSION, Receive, Scope, Send, StreamedAnswer, client_gone, read_body
from toolmem.server.proxy.interception import Interception, Shared, key_of
from toolmem.server.proxy.open_requests import OpenRequest
from toolmem.server.proxy.served_process import ServedProcess

log = logging.getLogger("toolmem.proxy")

PATH = "/mcp"
_MOST_SESSIONS = 100  # processes; the one that was used longest ago ends
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"via")  # by somebody whose connection may be used by several


class ServedSession:
    """A process and what passes between it and its client."""

    def __init__(self, process: ServedProcess, interception: Interception) -> None:
        self.process, self.interception = process, interception


class ServedChild:
    """An ASGI application."""

    path = PATH

    def __init__(self, command: Sequence[str], shared: Shared, access: AccessControl) -> None:
        self._command = list(command)
        self._shared = shared
        self._access = access
        self._sessions: OrderedDict[str, ServedSession] = OrderedDict()
        self._stateless: ServedProcess | None = None
        self._starting = asyncio.Lock()

    async def close(self) -> None:
        await asyncio.gather(*(self._end(session) for session in list(self._sessions)))
        if self._stateless is not None:
            await self._stateless.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer = StreamedAnswer(send)
        denied = self._access.refuses(scope["headers"])
        if denied is not None:
            await answer.json(denied.status, json.dumps({"error": denied.message}).encode())
            return
        name = header_of(scope["headers"], SESSION)
        session = self._sessions.get(name)
        if scope["path"].rstrip("/") != PATH or (name and session is None):
            await _refused(answer, 404, -32001, "Session not found" if name else "there is nothing at this path")
        elif scope["method"] == "POST":
            if session is not None:
                self._sessions.move_to_end(name)
            await self._post(session, client_of(scope), receive, answer)
        elif session is None:
            await _refused(answer, 405, -32000, "a session begins with a POST of initialize")
        elif scope["method"] == "DELETE":
            await self._end(name)
            await answer.whole(200, b"", [])
        else:
            await self._listen(session, receive, answer)

    async def _end(self, name: str) -> None:
        if (session := self._sessions.pop(name, None)) is not None:
            await session.process.close()
            await session.interception.left(NO_ANSWER)

    # -- streams of the server's own

    async def _listen(self, session: ServedSession, receive: Receive, answer: StreamedAnswer) -> None:
        has_body = asyncio.Event()
        has_body.set()
        gone = asyncio.create_task(client_gone(has_body, receive))
        session.process.listeners += 1
        try:
            await answer.stream()
            while (frame := await _next(session.process.unasked, gone)) is not None:
                await answer.write(event_of(await session.interception.seen(frame)))
        finally:
            session.process.listeners -= 1
            gone.cancel()
        await answer.end()

    # -- what a client posts

    async def _post(
        self, session: ServedSession | None, client: Hashable, receive: Receive, answer: StreamedAnswer
    ) -> None:
        body = await read_body(receive)
        if body is None:
            text = f"toolmem: not run: a message of more than {MAX_FRAME:,} bytes is not passed on"
            await _refused(answer, 413, -32600, text)
            return
        headers: list[tuple[bytes, bytes]] = []
        try:
            value = Frame(body).value
            if session is None:
                session, headers = await self._session_for(value)
        except UnreadableFrame:
            await _refused(answer, 400, -32700, "Parse error: the body is not JSON, or nested too deeply")
            return
        except OSError as error:
            log.error("the server cannot be started: %s", error.strerror or error)
            await _refused(answer, 502, -32000, "toolmem: the server cannot be started")
            return
        await _Post(session, client, answer, headers).run(b" ".join(body.splitlines()), receive)

    async def _session_for(self, value: Any) -> tuple[ServedSession, list[tuple[bytes, bytes]]]:
        """A session of its own for `initialize`; for everything else the process that all share. Raises OSError."""
        if isinstance(value, dict) and value.get("method") == "initialize":
            process = ServedProcess(self._command, is_shared=False)
            await process.start()
            name = uuid.uuid4().hex
            self._sessions[name] = session = ServedSession(process, Interception(self._shared, uuid.uuid4().hex))
            if len(self._sessions) > _MOST_SESSIONS:
                await self._end(next(iter(self._sessions)))
            return session, [(SESSION, name.encode())]
        async with self._starting:
            if self._stateless is None or not self._stateless.runs:
                self._stateless = ServedProcess(self._command, is_shared=True)
                await self._stateless.start()
        return ServedSession(self._stateless, Interception(self._shared, "")), []


def client_of(scope: Scope) -> Hashable:
    """A client as far as it can be told without a session: by its connection, unless others may be behind it too."""
    address = scope.get("client")
    if address is None or any(header_of(scope["headers"], name) for name in _FORWARDED):
        return object()
    return tuple(address)


class _Post:
    """One request, notification or response of a client, on its way to the process and back."""

    def __init__(
        self, session: ServedSession, client: Hashable, answer: StreamedAnswer, headers: list[tuple[bytes, bytes]]
    ) -> None:
        self._process, self._interception = session.process, session.interception
        self._client, self._answer, self._headers = client, answer, headers
        self._asked: list[OpenRequest] = []
        self._answers_nothing = False

    async def run(self, body: bytes, receive: Receive) -> None:
        has_body = asyncio.Event()
        has_body.set()
        gone = asyncio.create_task(client_gone(has_body, receive))
        try:
            rest = await self._interception.from_client(body, self)
            if rest is not None:
                await rest
            for request in self._asked:
                await self._relay(request, gone)
        finally:
            gone.cancel()
        if self._answer.has_begun:
            await self._answer.end()
        elif self._answers_nothing:
            await _refused(self._answer, 400, -32600, "toolmem: this answers no open request of the server")
        else:
            await self._answer.whole(202, b"", self._headers)
        if not self._interception.conversation:
            await self._interception.left(NO_ANSWER)

    async def to_client(self, frame: bytes) -> None:
        await self._answer.stream(self._headers)
        await self._answer.write(event_of(frame))

    async def to_server(self, raw: bytes) -> None:
        frame = Frame(raw)
        message = frame.value if isinstance(frame.value, dict) else {}
        method = message.get("method")
        if method is not None and "id" in message:
            self._asked.append(await self._process.ask(frame, self._client))
        elif method == "notifications/cancelled":
            await self._cancel(frame, message)
        elif method == "notifications/progress" or (method is None and "id" in message):
            self._answers_nothing = not await self._process.answer(frame) and method is None
        else:
            await self._process.send(frame.raw)

    async def _cancel(self, frame: Frame, message: dict[str, Any]) -> None:
        """By the name that the process knows the request by; one that it does not work on is not cancelled."""
        params, span = message.get("params"), frame.span("params", "requestId")
        if span is None or not isinstance(params, dict):
            return
        key, known = key_of(params["requestId"]), self._asked if self._process.is_shared else list(self._process)
        if (name := next((each.name for each in reversed(known) if key_of(each.id) == key), None)) is not None:
            await self._process.send(frame.edited([(*span, json.dumps(name))]))

    async def _relay(self, request: OpenRequest, gone: asyncio.Task[None]) -> None:
        await self._answer.stream(self._headers)
        while (frame := await _next(request.frames, gone)) is not None:
            await self._answer.write(event_of(await self._interception.seen(frame)))
        if gone.done():
            await self._unattended(request)

    async def _unattended(self, request: OpenRequest) -> None:
        """The client has left. In a session that cancels nothing: how its call ends is still to be kept."""
        request.is_listened_to = False
        if self._process.is_shared:
            await self._process.leave(request)
        while request in self._process or not request.frames.empty():
            if (frame := await request.frames.get()) is not None:
                await self._interception.seen(frame)
        if self._process.is_shared:
            await self._interception.left(CANCELLED)


async def _next(frames: asyncio.Queue[bytes | None], gone: asyncio.Task[None]) -> bytes | None:
    """The next message; None at the end, or once the client has gone."""
    got = asyncio.create_task(frames.get())
    await asyncio.wait([got, gone], return_when=asyncio.FIRST_COMPLETED)
    if not got.done():
        got.cancel()
        return None
    return got.result()


async def _refused(answer: StreamedAnswer, status: int, code: int, text: str) -> None:
    await answer.json(status, written({"id": None, "error": {"code": code, "message": text}}))
