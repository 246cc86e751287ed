"""MCP over streamable HTTP: the SDK's transport behind toolmem's own door.

Requests stand alone (no session on the server), so that any of them may be repeated after a restart; a call that wants
progress is answered as a stream of events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from toolmem.config import Settings
from toolmem.server.http.access import AccessControl
from toolmem.server.http.access_log import AccessLog
from toolmem.server.http.limits import Limits
from toolmem.server.http.listening import listen, url_of
from toolmem.server.http.protocol import Server, config_of
from toolmem.server.mcp.posted_frames import read_frame
from toolmem.server.mcp.server import McpService

PATH = "/mcp"
_NAMES = ("127.0.0.1", "localhost", "[::1]")
_ORIGINS = [f"{scheme}://{name}{port}" for scheme in ("http", "https") for name in _NAMES for port in ("", ":*")]


class Door:
    """Lets in what carries the token (where one is configured) and is meant for this service."""

    def __init__(self, app: ASGIApp, access: AccessControl, limits: Limits) -> None:
        self._app = app
        self._doorkeeper = access
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._turned_away(scope) if scope["type"] == "http" else None
        if answer is None and scope["type"] == "http" and scope["method"] == "POST":
            answer, receive = await read_frame(receive, self._limits)
        await (answer or self._app)(scope, receive, send)

    def _turned_away(self, scope: Scope) -> Response | None:
        if refused := self._doorkeeper.refuses(scope["headers"]):
            return _refused(refused.status, refused.message, refused.headers)
        if scope["path"] == PATH and scope["method"] != "POST":
            # There are no sessions, so there is nothing to listen to and nothing to delete.
            return _refused(405, f"expected POST {PATH}", {"Allow": "POST"})
        return None


def _refused(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": message}, status, headers=headers)


def http_app(service: McpService, access: AccessControl, limits: Limits) -> ASGIApp:
    """The whole ASGI application. Without a token pages of other origins are turned away as well."""
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=access.token is None,
        allowed_hosts=[*_NAMES, *(f"{name}:*" for name in _NAMES)],
        allowed_origins=_ORIGINS,
    )
    inner = service.server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        max_request_body_size=limits.body,
        transport_security=security,
    )
    return AccessLog(Door(inner, access, limits))


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
