"""A server that is a command, served over streamable HTTP: a process for each session, one for all stateless requests.

Ids and progress tokens of different clients may be alike, so that the process is given others, and the client its own
back. Everything else passes as it came.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from toolmem.server.http.access import AccessControl
from toolmem.server.http.access import header as header_of
from toolmem.server.proxy.called import CANCELLED, NO_ANSWER
from toolmem.server.proxy.event_stream import event_of
from toolmem.server.proxy.frames import MAX_FRAME, Frame, FrameLines, UnreadableFrame, written
from toolmem.server.proxy.http_answers import SESSION, Receive, Scope, Send, StreamedAnswer, client_gone, read_body
from toolmem.server.proxy.interception import Interception, Shared
from toolmem.server.proxy.piped_client import CHUNK

log = logging.getLogger("toolmem.proxy")

PATH = "/mcp"
_MOST_SESSIONS = 100  # processes; the one that was used longest ago ends
_MOST_WAITING = 1000  # messages for a client that listens to none
_GRACE = 5.0
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class OpenRequest:
    """One request of a client, for as long as its answers come."""

    def __init__(self, id_text: str, token_text: str) -> None:
        self.id_text, self.token_text = id_text, token_text  # as the client wrote them
        self.frames: asyncio.Queue[bytes | None] = asyncio.Queue()


class ServedProcess:
    """A child process whose messages go to whoever they are for."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._numbers = itertools.count(1)
        self._waiting: OrderedDict[str, OpenRequest] = OrderedDict()
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

    async def send(self, frame: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(ConnectionError):
            self._process.stdin.write(frame + b"\n")
            await self._process.stdin.drain()

    async def ask(self, frame: Frame) -> tuple[str, OpenRequest]:
        """Send a request under a name of its own."""
        name = f"c{next(self._numbers)}"
        given, token = frame.span("id"), frame.span("params", "_meta", "progressToken")
        assert given is not None
        edits = [(*given, json.dumps(name))] + ([(*token, json.dumps(name))] if token is not None else [])
        token_text = frame.text[slice(*token)] if token is not None else ""
        waiting = self._waiting[name] = OpenRequest(frame.text[slice(*given)], token_text)
        await self.send(frame.edited(edits))
        return name, waiting

    def name_of(self, id_text: str) -> str:
        """Under which name a request is known here; "" where it is not."""
        return next((name for name, each in self._waiting.items() if each.id_text == id_text), "")

    def forget(self, name: str) -> bool:
        """Nobody waits for it. Did somebody?"""
        return self._waiting.pop(name, None) is not None

    async def _read(self) -> None:
        assert self._process.stdout is not None
        lines = FrameLines()
        while chunk := await self._process.stdout.read(CHUNK):
            for piece, is_whole in lines.feed(chunk):
                if is_whole and piece.lstrip()[:1] in (b"{", b"["):
                    self._route(piece)
                elif piece.strip():
                    log.warning("the server wrote what is no message, or one of more than %s bytes", f"{MAX_FRAME:,}")
        for waiting in self._waiting.values():
            waiting.frames.put_nowait(None)
        self._hand_on(None)

    def _route(self, raw: bytes) -> None:
        try:
            frame = Frame(raw)
        except UnreadableFrame:
            return
        message = frame.value if isinstance(frame.value, dict) else {}
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        if "method" not in message:
            if (waiting := self._waiting.pop(str(message.get("id")), None)) is not None:
                waiting.frames.put_nowait(_with(frame, waiting.id_text, "id"))
                waiting.frames.put_nowait(None)
            return
        if (waiting := self._waiting.get(str(params.get("progressToken")))) is not None:
            waiting.frames.put_nowait(_with(frame, waiting.token_text, "params", "progressToken"))
        elif isinstance(meta, dict) and (waiting := self._waiting.get(str(meta.get(_SUBSCRIPTION)))) is not None:
            waiting.frames.put_nowait(_with(frame, waiting.id_text, "params", "_meta", _SUBSCRIPTION))
        else:
            self._hand_on(raw)

    def _hand_on(self, raw: bytes | None) -> None:
        """What no request of a client asked for: to its open stream, or with the answer to its newest request."""
        if raw is not None and not self.listeners and self._waiting:
            self._waiting[next(reversed(self._waiting))].frames.put_nowait(raw)
            return
        if self.unasked.full():
            self.unasked.get_nowait()
        self.unasked.put_nowait(raw)

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


def _with(frame: Frame, text: str, *path: str) -> bytes:
    span = frame.span(*path)
    return frame.edited([(*span, text)]) if span is not None else frame.raw


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
            await self._post(session, receive, answer)
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

    async def _post(self, session: ServedSession | None, receive: Receive, answer: StreamedAnswer) -> None:
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
        await _Post(session, answer, headers).run(b" ".join(body.splitlines()), receive)

    async def _session_for(self, value: Any) -> tuple[ServedSession, list[tuple[bytes, bytes]]]:
        """A session of its own for `initialize`; for everything else the process that all share. Raises OSError."""
        if isinstance(value, dict) and value.get("method") == "initialize":
            process = ServedProcess(self._command)
            await process.start()
            name = uuid.uuid4().hex
            self._sessions[name] = session = ServedSession(process, Interception(self._shared, uuid.uuid4().hex))
            if len(self._sessions) > _MOST_SESSIONS:
                await self._end(next(iter(self._sessions)))
            return session, [(SESSION, name.encode())]
        async with self._starting:
            if self._stateless is None or not self._stateless.runs:
                self._stateless = ServedProcess(self._command)
                await self._stateless.start()
        return ServedSession(self._stateless, Interception(self._shared, "")), []


class _Post:
    """One request, notification or response of a client, on its way to the process and back."""

    def __init__(self, session: ServedSession, answer: StreamedAnswer, headers: list[tuple[bytes, bytes]]) -> None:
        self._process, self._interception = session.process, session.interception
        self._answer, self._headers = answer, headers
        self._asked: list[tuple[str, OpenRequest]] = []

    async def run(self, body: bytes, receive: Receive) -> None:
        has_body = asyncio.Event()
        has_body.set()
        gone = asyncio.create_task(client_gone(has_body, receive))
        try:
            rest = await self._interception.from_client(body, self)
            if rest is not None:
                await rest
            for name, waiting in self._asked:
                await self._relay(name, waiting, gone)
        finally:
            gone.cancel()
        if self._answer.has_begun:
            await self._answer.end()
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
        if message.get("method") is not None and "id" in message:
            self._asked.append(await self._process.ask(frame))
            return
        await self._process.send(self._renamed(frame, message))

    def _renamed(self, frame: Frame, message: dict[str, Any]) -> bytes:
        """A cancellation with the name that the process knows the request by."""
        span = frame.span("params", "requestId") if message.get("method") == "notifications/cancelled" else None
        if span is None:
            return frame.raw
        return frame.edited([(*span, json.dumps(self._process.name_of(frame.text[slice(*span)])))])

    async def _relay(self, name: str, waiting: OpenRequest, gone: asyncio.Task[None]) -> None:
        await self._answer.stream(self._headers)
        while (frame := await _next(waiting.frames, gone)) is not None:
            await self._answer.write(event_of(await self._interception.seen(frame)))
        if gone.done() and not self._interception.conversation and self._process.forget(name):
            params = {"requestId": name, "reason": "the client closed the stream"}
            await self._process.send(written({"method": "notifications/cancelled", "params": params}))
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
