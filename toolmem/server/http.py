"""The HTTP application: flows and operations as `POST /<name>`, and JSON-RPC.

Requests run in threads: one that has begun commits even if its client disconnects.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, TypeVar

import anyio.to_thread
import h11
import msgspec
from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route, request_response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolmem import __version__
from toolmem.config.names import hint
from toolmem.errors import RequestError, ToolMemError
from toolmem.formats.files import read_json
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import with_all_fields
from toolmem.models.decisions import Decision
from toolmem.models.protocols import KeepsRuleCopies
from toolmem.models.tools import FlowResponse
from toolmem.operations.operation import OPERATIONS
from toolmem.operations.results import NEXT_HEADER, Calls
from toolmem.server.access import Access, Refused, read_body, status_of
from toolmem.server.console.app import Console
from toolmem.server.console.visitors import Terminal
from toolmem.server.openapi import openapi_document
from toolmem.server.rpc import READ_ONLY, Rpc, split_workspace

log = logging.getLogger("toolmem.server")
Answer = TypeVar("Answer")

MAX_BODY = 32 << 20  # bytes of a request
MAX_BODIES = 256 << 20  # bytes of all open requests
MAX_UNFINISHED = 64  # connections with an incomplete request
HEADERS_TIMEOUT = 10.0  # seconds
MAX_WAITING = 64  # requests that may wait for a model
MAX_SHORT = 32  # other requests
MAX_PAGES = 8  # pages of the console
# Operations that may ask a model or an embedder.
WAITING = ("add", "summarize", "retrieve", "recall", "capture_rules")
# What a read-only service answers: operations, and the flows that these run.
_READING = {each.name for each in OPERATIONS.values() if each.reads_only}
_READING_FLOWS = {OPERATIONS[name].flow for name in _READING} - {""}
# Addresses of the API that a browser may open.
_JSON_PAGES = ("/health", "/openapi.json")
_WAITING_RPC = re.compile(rb"memory[._](?:%s)" % "|".join(WAITING).encode())


class Threads:
    """Runs work in threads. Each kind has its own limit: a check never waits for an `add`."""

    def __init__(self) -> None:
        self._waiting = CapacityLimiter(MAX_WAITING)
        self._short = CapacityLimiter(MAX_SHORT)
        self._pages = CapacityLimiter(MAX_PAGES)

    async def run(self, work: Callable[[], Answer], *, waits: bool = False) -> Answer:
        """Run work in a thread, and return its result. `waits`: the work may wait for a model."""
        limiter = self._waiting if waits else self._short
        return await anyio.to_thread.run_sync(work, limiter=limiter)

    async def run_page(self, work: Callable[[], Answer]) -> Answer:
        """Answer a request of the console in a thread."""
        return await anyio.to_thread.run_sync(work, limiter=self._pages)


class Service:
    """The HTTP endpoints of one memory. `read_only`: refuse every change."""

    def __init__(self, memory: ToolMem, access: Access, *, read_only: bool = False) -> None:
        self.memory = memory
        self.access = access
        self.read_only = read_only
        self.rpc = Rpc(memory.workspace, read_only=read_only)
        self.document = openapi_document(memory.engine.flows.ready)
        self.threads = Threads()

    async def run_named(self, flows: Mapping[str, Any], request: Request) -> Response:
        """Run what the path names: one of `flows` or, if none has this name, an operation."""
        name = request.path_params["name"]
        body = await _body(request)
        waits = name in WAITING or name not in OPERATIONS
        done = await self.threads.run(lambda: self._run(name, body, flows), waits=waits)
        older = done.next if isinstance(done, Calls) else None
        return _json(done, headers=None if older is None else {NEXT_HEADER: str(older)})

    def _run(self, name: str, body: bytes, flows: Mapping[str, Any]) -> Any:
        if name not in OPERATIONS and name not in flows:
            if f"/{name}" in _JSON_PAGES:
                raise Refused(405, f"send GET /{name}")
            raise Refused(404, f"there is no {name!r} ({hint(name, {**flows, **OPERATIONS})})")
        if self.read_only and name not in (_READING_FLOWS if name in flows else _READING):
            raise Refused(403, f"{name}: {READ_ONLY}")
        arguments = read_json(body)
        if not isinstance(arguments, dict):
            raise RequestError("body: expected a JSON object", "body")
        workspace, arguments = split_workspace(arguments)
        memory = self.memory.workspace(workspace)
        if name in flows:
            return memory.run(name, **arguments)
        done = memory.perform(OPERATIONS[name], arguments)
        if isinstance(done, Decision):  # the same as the flow `check_tool_call` answers
            return FlowResponse(done.reason, metadata={"decision": done})
        return done

    async def run_rpc(self, request: Request) -> Response:
        """Answer JSON-RPC 2.0."""
        body = await _body(request)
        waits = _WAITING_RPC.search(body) is not None
        answer = await self.threads.run(lambda: self.rpc.answer(body), waits=waits)
        if answer is None:
            return Response(status_code=204)
        return Response(answer, media_type="application/json")

    async def health(self, request: Request) -> Response:
        """Answer 200 if the store works and lost no rules, else 503. With the token, say why."""
        status = 200
        state = {"status": "ok"}
        try:
            reason = await self.threads.run(self._lost_rules)
        except ToolMemError as error:
            reason = str(error)
        if reason:
            status = 503
            state = {"status": "unavailable", "reason": reason}
        if not self.access.has_token(request.headers):
            return _json({"status": state["status"]}, status)
        return _json({**state, "name": "toolmem", "version": __version__}, status)

    def _lost_rules(self) -> str:
        """Describe the rules that the store lost; "" if it has all. Raises StoreError."""
        self.memory.rules.is_guarded()
        store = self.memory.services.store()
        if isinstance(store, KeepsRuleCopies):
            return "; ".join(store.rule_losses().values())
        return self.memory.services.guard(self.memory.workspace_name).lost

    async def describe(self, request: Request) -> Response:
        return _json(self.document)


class Gate:
    """Middleware that checks access and content type, and answers errors as JSON."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["type"] == "http":
                headers = Headers(scope=scope)
                if scope["path"] != "/health":
                    self.access.check(headers)
                kind = headers.get("content-type", "").partition(";")[0].strip().lower()
                is_json = kind == "application/json" or kind.endswith("+json")
                if scope["method"] == "POST" and not is_json:
                    raise Refused(415, "Content-Type: expected application/json")
            await self.app(scope, receive, send)
        except Refused as error:
            await _problem(error.status, str(error))(scope, receive, send)
        except ToolMemError as error:
            status = status_of(error)
            if status >= 500:
                log.error("%s: %s", scope["path"], error)
            field = error.field if isinstance(error, RequestError) else ""
            await _problem(status, str(error), field)(scope, receive, send)


class Bounded:
    """Middleware that limits the bytes of all open requests together."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._held = 0  # bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        held = 0

        async def counted() -> Message:
            nonlocal held
            message = await receive()
            size = len(message.get("body", b""))
            if self._held + size > MAX_BODIES:
                raise Refused(503, f"bodies: over {MAX_BODIES >> 20} MB at once; send it again")
            held += size
            self._held += size
            return message

        try:
            await self.app(scope, counted, send)
        except ClientDisconnect:
            log.info("%s: the client hung up", scope["path"])
        finally:
            self._held -= held


class BoundedProtocol(H11Protocol):
    """Closes connections whose headers are late, and the oldest if too many are unfinished."""

    _unfinished: ClassVar[dict[BoundedProtocol, None]] = {}  # the oldest first
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unfinished.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _watch(self) -> None:
        state = self.conn.their_state
        if state is h11.IDLE and self._deadline is None:
            self._deadline = self.loop.call_later(HEADERS_TIMEOUT, self.transport.abort)
        elif state is not h11.IDLE and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if state not in (h11.IDLE, h11.SEND_BODY):
            self._unfinished.pop(self, None)
        elif self not in self._unfinished:
            self._unfinished[self] = None
            # Most of many requests at once are complete by then.
            self.loop.call_later(0.2, self._cut_oldest)

    def _cut_oldest(self) -> None:
        while len(self._unfinished) > MAX_UNFINISHED:
            without_headers = (e for e in self._unfinished if e.conn.their_state is h11.IDLE)
            oldest = next(without_headers, None) or next(iter(self._unfinished))
            del self._unfinished[oldest]
            oldest.transport.abort()


def application(
    memory: ToolMem, access: Access, terminal: Terminal | None = None, *, read_only: bool = False
) -> Starlette:
    """Make the ASGI application of a memory: the API and the console.

    `terminal`: prints the links to sign in to the console. `read_only`: refuse every change.
    """
    service = Service(memory, access, read_only=read_only)
    flows = memory.engine.flows
    run_named = partial(service.run_named, {**flows.ready, **flows.left_out})
    run_operation = partial(service.run_named, {})  # also where a flow has the same name
    routes = [
        Route("/health", service.health),
        Route("/openapi.json", service.describe),
        Route("/rpc", service.run_rpc, methods=["POST"]),
        Route("/operations/{name}", run_operation, methods=["POST"]),
        Route("/{name}", run_named, methods=["POST"]),
    ]
    api = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_found})
    api.add_middleware(Gate, access=access)
    run_page = service.threads.run_page
    console = Console(memory, access, run_page, terminal, read_only=read_only)
    missing = request_response(console.missing)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an unknown address with a page if a browser asks for it."""
        await (missing if _wants_page(scope) else api)(scope, receive, send)

    return Starlette(routes=[*console.routes(), Mount("/", app=answer)])


def _wants_page(scope: Scope) -> bool:
    is_read = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
    if not is_read or scope["path"] in _JSON_PAGES:
        return False
    return "text/html" in Headers(scope=scope).get("accept", "")


async def _body(request: Request) -> bytes:
    return await read_body(request.stream(), MAX_BODY, f"{MAX_BODY >> 20} MB")


async def _not_found(request: Request, error: Any) -> Response:
    message = "send POST /<flow or operation>; GET /openapi.json lists them"
    return _problem(error.status_code, message)


def _problem(status: int, message: str, field: str = "") -> Response:
    body = {"error": message, **({"field": field} if field else {})}
    return _json(body, status, {"WWW-Authenticate": "Bearer"} if status == 401 else None)


def _json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        msgspec.json.encode(with_all_fields(value)), status, headers, "application/json"
    )
