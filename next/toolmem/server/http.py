"""The HTTP application: flows and operations as `POST /<name>`, and JSON-RPC.

Work runs in threads, under two limits: what may wait for a model takes the one, everything short
the other, so that a guard's check never waits behind an `add`. A request that was begun finishes
its commit, whoever leaves.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio.to_thread
import msgspec
from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolmem import __version__
from toolmem.config.names import hint
from toolmem.errors import (
    ConfigError,
    Conflict,
    ModelError,
    RequestError,
    StoreError,
    ToolMemError,
)
from toolmem.formats.files import read_json
from toolmem.memory.toolmem import ToolMem
from toolmem.operations.operation import OPERATIONS
from toolmem.server.access import Access, Refused, headers_of
from toolmem.server.openapi import described, page
from toolmem.server.rpc import Rpc

log = logging.getLogger("toolmem.server")
Answer = TypeVar("Answer")

MAX_BODY = 32 << 20  # bytes of a request
MAX_WAITING = 64  # requests that may wait for a model
MAX_SHORT = 32  # requests of which none does
# Operations that may ask a model or an embedder.
WAITING = ("add", "summarize", "retrieve", "recall", "capture_rules")
_WAITS_IN_RPC = re.compile(rb"memory[._](?:%s)" % "|".join(WAITING).encode())
_STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (RequestError, 422),
    (Conflict, 409),
    (StoreError, 503),
    (ConfigError, 500),
    (ModelError, 502),
    (ToolMemError, 500),
)


class Service:
    """One memory behind the application."""

    def __init__(self, memory: ToolMem, access: Access) -> None:
        self.memory, self.access = memory, access
        self.rpc = Rpc(memory.workspace)
        flows = memory.engine.configuration.settings.flow
        self.document = described({name: flows[name] for name in memory.engine.flows.ready})
        self._waiting: CapacityLimiter | None = None
        self._short: CapacityLimiter | None = None

    async def ask(self, request: Request) -> Response:
        """An operation or a flow by its name."""
        name = request.path_params["name"]
        body = await _body(request)
        given = await self._in_thread(lambda: read_json(body), waits=False)
        if not isinstance(given, dict):
            raise RequestError("body: expected a JSON object", "body")
        given = {key: value for key, value in given.items() if value is not None}
        workspace = given.pop("workspace_id", None)
        if not isinstance(workspace, str) or not workspace:
            raise RequestError("workspace_id: expected the name of a workspace", "workspace_id")
        memory = self.memory.workspace(workspace)
        operation = OPERATIONS.get(name)
        if operation is None and name in self.memory.engine.flows.ready:
            return _json(await self._in_thread(lambda: memory.run(name, **given), waits=True))
        if operation is None:
            known = {**self.memory.engine.flows.ready, **OPERATIONS}
            return _problem(404, f"there is no {name!r} ({hint(name, known)})")
        checked = operation.read(given)
        waits = name in WAITING
        return _json(await self._in_thread(lambda: operation.run(memory, checked), waits=waits))

    async def ask_rpc(self, request: Request) -> Response:
        """JSON-RPC 2.0."""
        body = await _body(request)
        waits = _WAITS_IN_RPC.search(body) is not None
        answer = await self._in_thread(lambda: self.rpc.answer(body), waits=waits)
        if answer is None:
            return Response(status_code=204)
        return Response(answer, media_type="application/json")

    async def health(self, request: Request) -> Response:
        """Whether the store answers; more to those who carry the token."""

        def ask() -> str:
            self.memory.rules.is_guarded()
            return "ok"

        status = 200
        try:
            told: dict[str, Any] = {"status": await self._in_thread(ask, waits=False)}
        except ToolMemError as error:
            status, told = 503, {"status": "unavailable", "reason": str(error)}
        if not self.access.knows(headers_of(request.scope)):
            return _json({"status": told["status"]}, status)
        return _json({**told, "name": "toolmem", "version": __version__}, status)

    async def _in_thread(self, work: Callable[[], Answer], *, waits: bool) -> Answer:
        if self._waiting is None or self._short is None:
            self._waiting, self._short = CapacityLimiter(MAX_WAITING), CapacityLimiter(MAX_SHORT)
        limiter = self._waiting if waits else self._short
        return await anyio.to_thread.run_sync(work, limiter=limiter)


class Gate:
    """Middleware: lets requests in, and answers errors as JSON."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            headers = headers_of(scope)
            if scope["path"] != "/health":
                self.access.check(headers)
            if scope["method"] == "POST" and not _is_json(headers.get("content-type", "")):
                raise Refused(415, "Content-Type: expected application/json")
        except Refused as error:
            await _problem(error.status, str(error))(scope, receive, send)
            return
        await self.app(scope, receive, send)


def application(memory: ToolMem, access: Access) -> Starlette:
    """The ASGI application over a memory."""
    service = Service(memory, access)

    async def openapi(request: Request) -> Response:
        return _json(service.document)

    async def docs(request: Request) -> Response:
        return HTMLResponse(page(service.document))

    routes = [
        Route("/health", service.health),
        Route("/openapi.json", openapi),
        Route("/docs", docs),
        Route("/rpc", service.ask_rpc, methods=["POST"]),
        Route("/{name}", service.ask, methods=["POST"]),
    ]
    handlers: dict[Any, Callable[[Request, Exception], Awaitable[Response]]]
    handlers = {ToolMemError: _told, Refused: _refused, 404: _nothing, 405: _nothing}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.add_middleware(Gate, access=access)
    return app


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise Refused(413, f"body: over {MAX_BODY >> 20} MB")
    return bytes(body)


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


async def _told(request: Request, error: Exception) -> Response:
    status = next(status for kind, status in _STATUSES if isinstance(error, kind))
    if status >= 500:
        log.error("%s: %s", request.url.path, error)
    return _problem(status, str(error), getattr(error, "field", ""))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _problem(error.status, str(error))


async def _nothing(request: Request, error: Exception) -> Response:
    told = "ask by POST /<flow or operation>; GET /openapi.json lists them"
    return _problem(getattr(error, "status_code", 404), told)


def _problem(status: int, message: str, field: str = "") -> Response:
    told = {"error": message, **({"field": field} if field else {})}
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return Response(
        msgspec.json.encode(told), status, headers=headers, media_type="application/json"
    )


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
