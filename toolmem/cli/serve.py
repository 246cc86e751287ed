"""`toolmem serve` serves HTTP, and `toolmem mcp` (`mcp serve`) MCP."""

from __future__ import annotations

import errno
import os
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import partial
from socket import AF_INET, AF_INET6, create_server, socket
from typing import TYPE_CHECKING, Any, Literal

import click

from toolmem.cli import options
from toolmem.cli.console import require_mcp, user_actor
from toolmem.config.environment import is_loopback
from toolmem.config.layers import OVERRIDE, Setting
from toolmem.errors import ConfigError
from toolmem.memory.toolmem import ToolMem
from toolmem.server.access import Access, read_token
from toolmem.text.display import plain

if TYPE_CHECKING:
    from starlette.applications import Starlette

GRACE = 30  # seconds that running requests may take when the server stops
_SPEAKER_NOTICES = {
    "owner": "session.speaker=owner: user_message is believed to be its owner's, and lifts rules; "
    "for an agent that serves others say session.speaker=guest",
    "guest": "session.speaker=guest: user_message binds in its session alone, and lifts nothing",
}


@click.command()
@click.option("--open", "opens", is_flag=True, help="Open the console in a browser.")
@click.option("--read-only", is_flag=True, help="Refuse every change, on the pages and over HTTP.")
@options.config
@options.store
@options.overrides
def serve(opens: bool, read_only: bool, **where: Any) -> None:
    """Serve the memory over HTTP, with a console for your browser.

    The address is http://127.0.0.1:8002 (http.host, http.port). Ctrl-C stops it. Without a token in
    TOOLMEM_TOKEN or auth.token_file, it can be reached only from this machine. To decide on rules
    in the console, sign in by the link that is printed in your terminal.

    \b
    Examples:
      toolmem serve --store memory.db --open
      toolmem serve --store memory.db --read-only
      TOOLMEM_TOKEN=... toolmem serve http.host=0.0.0.0 http.port=8002
    """
    from toolmem.cli.sign_in import SignInTerminal
    from toolmem.server.http import application

    with options.open_memory(**where) as memory:
        memory.rules.is_guarded()  # fails now if the store cannot be opened
        can_ask = bool(user_actor().evidence) and SignInTerminal.is_possible()
        terminal = SignInTerminal() if can_ask and not read_only else None

        def started(address: str) -> None:
            if terminal is not None:
                terminal.open(address)
            if opens:
                # Not the link to sign in: other programs see the command line of a browser.
                threading.Thread(target=webbrowser.open, args=[f"{address}/"], daemon=True).start()

        make = partial(application, memory, terminal=terminal, read_only=read_only)
        try:
            listen(memory, "http", make, started=started)
        finally:
            if terminal is not None:
                terminal.close()


@click.command("serve")
@options.memory_options
def serve_mcp(workspace: str, **where: Any) -> None:
    """Serve the memory over MCP, by stdin and stdout or by HTTP.

    By default the agent's program starts it, and talks to it by stdin and stdout. For HTTP, set
    mcp.transport=streamable-http; the address is http://127.0.0.1:8001/mcp (mcp.host, mcp.port).
    Other machines can reach it only with a token in TOOLMEM_TOKEN or auth.token_file.
    """
    require_mcp()
    from toolmem.server.mcp.server import McpService

    with redirect_stdout(sys.stderr):  # modules of ops may print while they are imported
        memory = options.open_memory(workspace=workspace, **where)
    with memory:
        service = McpService(memory, workspace)
        memory.rules.is_guarded()  # fails now if the store cannot be opened
        if memory.engine.configuration.settings.mcp.transport == "stdio":
            import anyio

            anyio.run(service.serve_stdio)
            return
        listen(memory, "mcp", service.application, "/mcp")


def listen(
    memory: ToolMem,
    section: Literal["http", "mcp"],
    make: Callable[[Access], Starlette],
    path: str = "",
    started: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve an application at the address that a section sets, until Ctrl-C. Raises ConfigError.

    `make` builds it. `path` ends the printed address. `started` gets the address once it listens.
    """
    import uvicorn

    from toolmem.server.http import Bounded, BoundedProtocol

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                port = listening.getsockname()[1]  # http.port may be 0: any
                address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
                click.echo(f"toolmem on {address}{path}, {over} (Ctrl-C stops it)", err=True)
                started(address)

    settings = memory.engine.configuration.settings
    token = read_token(settings.auth)
    host = _host(memory, section, bool(token))
    if not is_loopback(host):
        click.echo(_SPEAKER_NOTICES[settings.session.speaker], err=True)
    store = memory.services.store()
    # A store of Elasticsearch has no file; it is new if it has no workspace.
    is_new = not os.path.exists(store.location) and not store.workspaces()
    over = f"store {plain(store.location)}{' (new)' if is_new else ''}"
    listening = _open_socket(section, host, getattr(settings, section).port)
    server = Server(
        uvicorn.Config(
            Bounded(make(Access(token))),
            http=BoundedProtocol,
            timeout_keep_alive=int(settings.http.timeout_keep_alive),
            limit_concurrency=settings.http.limit_concurrency,
            timeout_graceful_shutdown=GRACE,
            log_level="warning",
            server_header=False,
        )
    )
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listening])
    if not server.started:
        raise SystemExit(3)  # as uvicorn's own command does; it has said why


def _open_socket(section: str, host: str, port: int) -> socket:
    """Open a socket that listens at this address. Raises ConfigError."""
    try:
        return create_server((host, port), family=AF_INET6 if ":" in host else AF_INET)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            problem = f"{section}.port: {port} is taken (by another program); choose another with"
            raise ConfigError([f"{problem} {section}.port={(port + 1) % 65_536}"]) from None
        reason = str(error.strerror).partition(" (while")[0]
        problem = f"{section}.host: cannot listen on {host}, port {port}: {reason}"
        raise ConfigError([problem]) from None


def _host(memory: ToolMem, section: str, has_token: bool) -> str:
    """The configured host, or 127.0.0.1 with a warning if others would reach it without a token.

    Raises ConfigError if an override sets such a host.
    """
    configuration = memory.engine.configuration
    host: str = getattr(configuration.settings, section).host
    if has_token or is_loopback(host):
        return host
    setting = configuration.layer.get((section, "host"), Setting(host, OVERRIDE))
    problem = f"{section}.host: {host} lets others in, and no token is configured"
    if setting.origin == OVERRIDE:
        raise ConfigError([f"{problem}: set TOOLMEM_TOKEN or auth.token_file"])
    click.echo(f"warning: {problem}: listening on 127.0.0.1", err=True)
    return "127.0.0.1"
