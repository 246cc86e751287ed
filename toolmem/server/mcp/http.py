"""MCP over streamable HTTP: the SDK's transport behind toolmem's own access control.

Requests stand alone (no session on the server), so that any of them may be repeated after a restart; a call that wants
progress is answered as a stream of events.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import INVALID_REQUEST, PARSE_ERROR
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolmem.config import Settings
from toolmem.server.http.access import AccessControl
from toolmem.server.http.access_layer import AccessLayer
from toolmem.server.http.access_log import AccessLog
from toolmem.server.http.limits import Limits, Unreadable
from toolmem.server.http.listening import listen, url_of
from toolmem.server.http.protocol import Server, config_of
from toolmem.server.http.responses import refusal
from toolmem.server.json_text import read_aside, read_json
from toolmem.server.mcp.server import McpService

PATH = "/mcp"


def http_app(service: McpService, access: AccessControl, limits: Limits) -> ASGIApp:
    """The whole ASGI application. Without a token pages of other origins are refused as well."""
    inner = service.server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        max_request_body_size=limits.body,
        # `AccessLayer` looks at hosts and origins.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return AccessLog(AccessLayer(FrameLayer(inner, PATH, limits), access))


async def serve_http(service: McpService, settings: Settings, announce: Callable[[str], None]) -> None:
    """Until a SIGTERM or SIGINT; then requests in flight are finished. `announce` gets the address once it answers.

    Raises ConfigError where the address may not be, or cannot be, bound.
    """
    access = AccessControl.of(settings, "mcp")
    sockets = listen(settings.mcp.host, settings.mcp.port, section="mcp")[0]
    address = url_of(settings.mcp.host, sockets) + PATH
    app = http_app(service, access, Limits.of(settings.http))
    async with service:
        await Server(config_of(app, settings.http, lifespan="on"), lambda: announce(address)).serve(sockets=sockets)


# ---------------------------------------------------------------- frames
# The SDK takes a request whose id is none (NaN, null, a list) for a notification, and who asked would wait for an
# answer. So a frame is read first: JSON of a bounded size and depth that arrives in time, with a proper id.


class FrameLayer:
    """Reads what is posted, and answers what is no frame."""

    def __init__(self, inner: ASGIApp, path: str, limits: Limits) -> None:
        self._inner = inner
        self._path = path
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: Response | None = None
        if scope["type"] == "http" and scope["method"] == "POST":
            answer, receive = await read_frame(receive, self._limits)
        elif scope["type"] == "http" and scope["path"] == self._path:
            # There are no sessions, so there is nothing to listen to and nothing to delete.
            answer = refusal(405, f"expected POST {self._path}", kind="MethodNotAllowed", headers={"Allow": "POST"})
        await (answer or self._inner)(scope, receive, send)


async def read_frame(receive: Receive, limits: Limits) -> tuple[Response | None, Receive]:
    """(the refusal of a frame that is none, what the SDK receives instead). Raises Gone."""
    try:
        body = await limits.body_of(receive)
    except Unreadable as unreadable:
        return unreadable.answer, receive
    whole: Iterator[Message] = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive_again() -> Message:
        message = next(whole, None)
        return await receive() if message is None else message

    return await _refusal(body), receive_again


async def _refusal(body: bytes) -> Response | None:
    try:
        frame = await read_aside(body, functools.partial(read_json, body))
    except ValueError as error:
        return _error(PARSE_ERROR, f"Parse error: {error}")
    if isinstance(frame, list):
        return _error(INVALID_REQUEST, "Invalid Request: MCP has no batches: one message each")
    asks = isinstance(frame, dict) and "method" in frame and "id" in frame
    if asks and (isinstance(frame["id"], bool) or not isinstance(frame["id"], int | str)):
        return _error(INVALID_REQUEST, "Invalid Request: id: expected text or a whole number")
    return None


def _error(code: int, message: str) -> Response:
    said: dict[str, Any] = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return JSONResponse(said, 400)
