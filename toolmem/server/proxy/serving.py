"""The proxy as a server of its own: `--listen HOST:PORT`."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn

from toolmem.errors import ConfigError
from toolmem.server.http.access import AccessControl, BearerToken, check_address
from toolmem.server.http.listening import listen, url_of
from toolmem.server.proxy.interception import Shared
from toolmem.server.proxy.reverse_proxy import ReverseProxy
from toolmem.server.proxy.served_child import ServedChild

_TOKEN = "TOOLMEM_TOKEN"
_GRACE = 5  # seconds for requests in flight


def read_address(given: str) -> tuple[str, int]:
    """`HOST:PORT`, or a port alone. Raises ConfigError."""
    host, _, port = given.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"--listen: expected HOST:PORT such as 127.0.0.1:8100, got {given!r}")
    return host or "127.0.0.1", int(port)


def access_to(host: str) -> AccessControl:
    """Who may come in: with a token who has it, without one pages and programs of this machine. Raises ConfigError."""
    given = os.environ.get(_TOKEN, "").strip()
    token = BearerToken(given) if given else None
    if problems := check_address("--listen", host, token):
        raise ConfigError(problems)
    return AccessControl(token)


async def serve_http(command: list[str], url: str | None, address: str, shared: Shared, headers: dict[str, str]) -> int:
    """In front of a server with an address, or of one that is a command. Raises ConfigError."""
    host, port = read_address(address)
    access = access_to(host)
    proxy = ReverseProxy(url, shared, access, headers) if url is not None else ServedChild(command, shared, access)
    shared.memory.warm_up()
    try:
        return await serve(proxy, host, port, proxy.path, proxy.close)
    finally:
        await shared.memory.close()


async def serve(app: Any, host: str, port: int, path: str, close: Callable[[], Awaitable[None]]) -> int:
    """Until a SIGTERM or SIGINT; then what is in flight gets a few seconds. Raises ConfigError."""
    sockets = listen(host, port, section="--listen")[0]
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,  # who a client is, nobody says in its stead
        lifespan="off",
        timeout_graceful_shutdown=_GRACE,
    )
    print(f"toolmem serves MCP at {url_of(host, sockets)}{path}", file=sys.stderr, flush=True)
    try:
        await uvicorn.Server(config).serve(sockets=sockets)
    finally:
        await close()
    return 0
