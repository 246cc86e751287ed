"""`toolmem serve`: the memory over HTTP."""

from __future__ import annotations

from typing import Any

import click

from toolmem.cli import options
from toolmem.config.layers import OVERRIDE, Setting
from toolmem.errors import ConfigError
from toolmem.memory.toolmem import ToolMem
from toolmem.server.access import Access, is_loopback, read_token

GRACE = 30  # seconds that requests under way have when it is stopped


@click.command()
@options.config
@options.store
@options.overrides
def serve(**where: Any) -> None:
    """Serve flows, rules and checks over HTTP, until Ctrl-C.

    Without a token it listens on this machine alone; TOOLMEM_TOKEN, or auth.token_file, lets
    `http.host` be any address.

    \b
    Examples:
      toolmem serve --store memory.db
      TOOLMEM_TOKEN=... toolmem serve http.host=0.0.0.0 http.port=8002
    """
    import uvicorn

    from toolmem.server.http import application

    with options.open_memory(**where) as memory:
        settings = memory.engine.configuration.settings
        token = read_token(settings.auth)
        host = _host(memory, bool(token))
        click.echo(f"toolmem on http://{host}:{settings.http.port} (Ctrl-C stops it)", err=True)
        uvicorn.run(
            application(memory, Access(token)),
            host=host,
            port=settings.http.port,
            timeout_keep_alive=int(settings.http.timeout_keep_alive),
            limit_concurrency=settings.http.limit_concurrency,
            timeout_graceful_shutdown=GRACE,
            log_level="warning",
            server_header=False,
        )


def _host(memory: ToolMem, has_token: bool) -> str:
    """The configured address. A file's 0.0.0.0 without a token becomes 127.0.0.1, with a warning.

    Raises ConfigError where an override asks for an address of others without a token.
    """
    host = memory.engine.configuration.settings.http.host
    if has_token or is_loopback(host):
        return host
    setting = memory.engine.configuration.layer.get(("http", "host"), Setting(host, OVERRIDE))
    problem = f"http.host: {host} lets others in, and no token is configured"
    if setting.origin == OVERRIDE:
        raise ConfigError([f"{problem}: set TOOLMEM_TOKEN or auth.token_file"])
    click.echo(f"warning: {problem}: listening on 127.0.0.1", err=True)
    return "127.0.0.1"
