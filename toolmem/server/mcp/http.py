"""MCP over streamable HTTP: the SDK's transport behind toolmem's own access control.

Requests stand alone (no session on the server), so that any of them may be repeated after a restart; a call that wants
progress is answered as a stream of events.
"""

from __future__ import annotations

from collections.abc import Callable

from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from toolmem.config import Settings
from toolmem.server.http.access import AccessControl
from toolmem.server.http.access_layer import AccessLayer
from toolmem.server.http.access_log import AccessLog
from toolmem.server.http.limits import Limits
from toolmem.server.http.listening import listen, url_of
from toolmem.server.http.protocol import Server, config_of
from toolmem.server.mcp.posted_frames import FrameLayer
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
