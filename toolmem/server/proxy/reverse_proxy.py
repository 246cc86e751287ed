"""The proxy between HTTP clients and a server that speaks streamable HTTP: requests and answers pass as they came.

Both eras: where the server gives sessions, each is a conversation; a request without one stands for itself.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import OrderedDict
from contextlib import suppress

import httpx

from toolmem.readers.loopback import is_loopback
from toolmem.server.http.access import AccessControl, host_name
from toolmem.server.http.access import header as header_of
from toolmem.server.proxy.called import CANCELLED, NO_ANSWER
from toolmem.server.proxy.event_stream import event_of, seen_events
from toolmem.server.proxy.frames import MAX_FRAME, id_at_head, written
from toolmem.server.proxy.http_answers import (
    SESSION,
    RawHeaders,
    Receive,
    Scope,
    Send,
    StreamedAnswer,
    client_gone,
    read_body,
)
from toolmem.server.proxy.interception import Interception, Shared

log = logging.getLogger("toolmem.proxy")

_MOST_SESSIONS = 1000
_CONNECT = 10.0  # seconds
# Of one connection, or of how a body is carried; lengths are counted anew.
_HOP = frozenset(
    b"""connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding upgrade expect
    content-length content-encoding accept-encoding""".split()
)


def http_client(url: str) -> httpx.AsyncClient:
    """Nothing on this machine is asked through a proxy of the network's."""
    host = httpx.URL(url).host
    return httpx.AsyncClient(
        timeout=httpx.Timeout(None, connect=_CONNECT),
        trust_env=not is_loopback(host),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
    )


class KnownSessions:
    """The connection of each session, and one of its own for each request without one."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._known: OrderedDict[str, Interception] = OrderedDict()

    def of(self, session: str) -> Interception:
        known = self._known.get(session)
        if known is None:
            return self.fresh(session)
        self._known.move_to_end(session)
        return known

    def fresh(self, session: str = "") -> Interception:
        """What a session's id is stays with its server: it opens the session."""
        conversation = hashlib.sha256(session.encode()).hexdigest()[:32] if session else ""
        made = Interception(self._shared, conversation)
        return self.keep(session, made) if session else made

    def keep(self, session: str, made: Interception) -> Interception:
        if not made.conversation:
            made.conversation = hashlib.sha256(session.encode()).hexdigest()[:32]
        self._known[session] = made
        if len(self._known) > _MOST_SESSIONS:
            self._known.popitem(last=False)
        return made

    async def end(self, session: str) -> None:
        if (known := self._known.pop(session, None)) is not None:
            await known.left(NO_ANSWER)

    async def end_all(self) -> None:
        for session in list(self._known):
            await self.end(session)


class ReverseProxy:
    """An ASGI application. `headers`: added to each request, e.g. what the server wants to know its user by."""

    def __init__(self, url: str, shared: Shared, access: AccessControl, headers: dict[str, str] | None = None) -> None:
        self._url = httpx.URL(url)
        self._sessions = KnownSessions(shared)
        self._access = access
        self._headers = [(name.encode().lower(), value.encode()) for name, value in (headers or {}).items()]
        self._client = http_client(url)
        # A server of this machine sees who asks for which host, as it does without the proxy, and decides itself.
        self._is_open = is_loopback(self._url.host) and not headers and access.token is None

    @property
    def path(self) -> str:
        return self._url.path

    async def close(self) -> None:
        await self._sessions.end_all()
        await self._client.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers: RawHeaders = scope["headers"]
        answer = StreamedAnswer(send)
        denied = None if self._is_open else self._access.refuses(headers)
        if denied is not None:
            more = [(name.lower().encode(), value.encode()) for name, value in denied.headers.items()]
            await answer.json(denied.status, json.dumps({"error": denied.message}).encode(), more)
            return
        if header_of(headers, b"content-encoding") not in {"", "identity"}:
            await answer.json(415, b'{"error":"a message is read before it is passed on: send it uncompressed"}')
            return
        if scope["path"] != self._url.path and scope["path"].rstrip("/") != self._url.path.rstrip("/"):
            await answer.json(404, b'{"error":"there is nothing at this path"}')
            return
        session = header_of(headers, SESSION)
        exchange = _Exchange(self, scope, answer, self._sessions.of(session) if session else self._sessions.fresh())
        work = asyncio.create_task(self._served(exchange, scope, receive, session))
        await self._until_done(work, exchange, receive, has_body=scope["method"] == "POST")

    async def _until_done(
        self, work: asyncio.Task[None], exchange: _Exchange, receive: Receive, *, has_body: bool
    ) -> None:
        """A client that goes away ends what is done for it alone."""
        gone = asyncio.create_task(client_gone(exchange.has_body, receive))
        await asyncio.wait([work, gone], return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        left = not work.done()
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
        if not exchange.session:  # nobody comes back for it
            await exchange.interception.left(CANCELLED if left else NO_ANSWER)

    async def _served(self, exchange: _Exchange, scope: Scope, receive: Receive, session: str) -> None:
        method = scope["method"]
        if method != "POST":
            exchange.has_body.set()
            await exchange.to_server(b"")
            if method == "DELETE":
                await self._sessions.end(session)
            return
        body = await read_body(receive)
        exchange.has_body.set()
        if body is None:
            text = f"toolmem: not run: a message of more than {MAX_FRAME:,} bytes is not passed on"
            await exchange.answer.json(413, written({"id": None, "error": {"code": -32600, "message": text}}))
            return
        rest = await exchange.interception.from_client(body, exchange)
        if rest is not None:
            await rest
        await exchange.finish()

    # -- upstream

    async def asked(self, scope: Scope, body: bytes) -> httpx.Response:
        """The server's answer, whose body is still to be read. Raises httpx.HTTPError."""
        ours = {name for name, _ in self._headers} | ({b"authorization"} if self._access.token else set())
        passed = [(name, value) for name, value in scope["headers"] if name not in _HOP and name not in ours]
        if not self._is_open:
            passed = [(name, value) for name, value in passed if name not in {b"host", b"origin"}]
        elif is_loopback(host_name(header_of(passed, b"host"))):  # the server knows its own address, and not ours
            passed = [(name, value) for name, value in passed if name != b"host"]
        url = self._url.copy_with(query=scope["query_string"] or None)
        passed += [*self._headers, (b"accept-encoding", b"identity")]
        request = httpx.Request(scope["method"], url, headers=passed, content=body or None)
        return await self._client.send(request, stream=True, follow_redirects=False)

    def session_began(self, session: str, interception: Interception) -> None:
        self._sessions.keep(session, interception)


class _Exchange:
    """One request of a client: its link to the server, and what it is answered."""

    def __init__(self, proxy: ReverseProxy, scope: Scope, answer: StreamedAnswer, interception: Interception) -> None:
        self._proxy, self._scope = proxy, scope
        self.answer = answer
        self.interception = interception
        self.session = header_of(scope["headers"], SESSION)
        self.has_body = asyncio.Event()
        self._own: list[bytes] = []  # our messages, while nothing was answered yet

    async def to_client(self, frame: bytes) -> None:
        """A message of ours. One that asks needs a stream; one that answers can be the whole body."""
        self._own.append(frame)
        if self.answer.is_stream or "method" in json.loads(frame):
            await self._streamed()

    async def _streamed(self) -> None:
        await self.answer.stream()
        for frame in self._own:
            await self.answer.write(event_of(frame))
        self._own.clear()

    async def to_server(self, frame: bytes) -> None:
        try:
            response = await self._proxy.asked(self._scope, frame)
        except httpx.HTTPError as error:
            await self._unreachable(frame, error)
            return
        try:
            await self._passed(response)
        except httpx.HTTPError as error:
            log.warning("the server's answer broke off (%s)", type(error).__name__)
            raise asyncio.CancelledError from None  # the client sees the end, and no whole answer
        finally:
            await response.aclose()

    async def _unreachable(self, body: bytes, error: httpx.HTTPError) -> None:
        text = f"toolmem: the server cannot be reached ({type(error).__name__})"
        log.warning(text)
        said = written({"id": id_at_head(body), "error": {"code": -32000, "message": text}})
        if self.answer.is_stream:
            await self.answer.write(event_of(said))
        else:
            await self.answer.json(502, said)

    async def _passed(self, response: httpx.Response) -> None:
        headers: RawHeaders = [(name.lower(), value) for name, value in response.headers.raw]
        session = header_of(headers, SESSION)
        if session and not self.session:
            self.session = session
            self._proxy.session_began(session, self.interception)
        kind = header_of(headers, b"content-type").partition(";")[0].strip().lower()
        events = kind == "text/event-stream"
        if self.answer.is_stream:
            await self._joined(response, events)
            return
        kept = [(name, value) for name, value in headers if name not in _HOP]
        if events or kind != "application/json":
            await self.answer.start(response.status_code, kept)
            chunks = seen_events(response.aiter_bytes(), self.interception.seen) if events else response.aiter_bytes()
            async for chunk in chunks:
                await self.answer.write(chunk)
            return
        await self._json(response, kept)

    async def _json(self, response: httpx.Response, headers: RawHeaders) -> None:
        parts, size = [], 0
        async for chunk in response.aiter_bytes():
            parts.append(chunk)
            size += len(chunk)
            if size > MAX_FRAME and not self.answer.has_begun:
                await self.answer.start(response.status_code, headers)
            if self.answer.has_begun:
                await self.answer.write(b"".join(parts))
                parts.clear()
        if not self.answer.has_begun:
            await self.answer.whole(response.status_code, await self.interception.seen(b"".join(parts)), headers)

    async def _joined(self, response: httpx.Response, events: bool) -> None:
        """The server's answer inside a stream that we began."""
        if events:
            async for chunk in seen_events(response.aiter_bytes(), self.interception.seen):
                await self.answer.write(chunk)
        elif body := (await response.aread()).strip():
            await self.answer.write(event_of(b" ".join((await self.interception.seen(body)).splitlines())))

    async def finish(self) -> None:
        """Answer what was not answered by the server."""
        if self.answer.has_begun:
            await self.answer.end()
        elif self._own:
            await self.answer.json(200, self._own[-1])
        else:
            await self.answer.whole(202, b"", [])
