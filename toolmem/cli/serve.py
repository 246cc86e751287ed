"""`toolmem serve`: the flows over HTTP, until it is told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolmem.cli.console import Config, Overrides, exit_code, in_app, print_json_text
from toolmem.errors import ConfigError

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp
    from toolmem.config import Settings


def serve(
    overrides: Overrides = None,
    host: Annotated[str | None, typer.Option("--host", help="As http.host. Default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="As http.port; 0: any free one. Default: 8002.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="As http.workers: processes. Default: 1.")] = None,
    config: Config = None,
) -> None:
    """Serve the flows over HTTP: POST /<flow>, POST /rpc, GET /health, GET /docs, GET /openapi.json.

    One line on stdout tells the address when requests are taken; each request is one line of JSON on stderr. SIGTERM
    or Ctrl-C finishes what is in flight and stops (exit code 0). An address other than loopback needs a token: in the
    variable TOOLMEM_TOKEN, or in the file `auth.token_file`. A configuration that says `backend: mcp` starts the MCP
    server instead, one that says `backend: cmd` runs the flow `cmd.flow` once.

    toolmem serve

    TOOLMEM_TOKEN=... toolmem serve --host 0.0.0.0 --workers 2 llm.default.backend=dashscope
    """
    given = {"http.host": host, "http.port": port, "http.workers": workers}
    options = [f"{name}={value}" for name, value in given.items() if value is not None]
    raise typer.Exit(start(config or [], [*(overrides or []), *options]))


def start(files: list[Path], overrides: list[str]) -> int:
    """Start what `backend` names; answers the exit code.

    Raises ConfigError before anything is opened, StoreError where the store fails.
    """
    backend = _backend(files, overrides)
    if backend == "mcp":
        from toolmem.cli import mcp

        mcp.start(files, overrides)
        return 0
    if backend == "cmd":
        return in_app(_run_once, files, overrides)
    return _serve_http(files, overrides)


def _backend(files: list[Path], overrides: list[str]) -> str:
    if not files and not any(each.lstrip("-").startswith("backend=") for each in overrides):
        return "http"
    from toolmem.config.loading import read

    return read(files, overrides).settings.backend


async def _run_once(app: ToolMemApp) -> int:
    """`backend: cmd`: the flow that `cmd.flow` names, on the request `cmd.params`."""
    cmd = app.settings.cmd
    if not cmd.flow:
        raise ConfigError("cmd.flow: missing; the backend cmd runs one flow, on the request cmd.params")
    response = await app.run_flow(cmd.flow, **cmd.params)
    print_json_text(response.model_dump_json(indent=2))
    return exit_code(response)


def _serve_http(files: list[Path], overrides: list[str]) -> int:
    from toolmem import __version__
    from toolmem.config.extras import need
    from toolmem.server import loading

    need("toolmem serve", "serve")
    with loading():
        from toolmem.server.http.access_log import log_to_stderr
        from toolmem.server.http.listening import listen, url_of
        from toolmem.server.http.preparing import prepare

        log_to_stderr()
        app, access = prepare(files, overrides)
        if app.settings.http.workers == 1:
            from toolmem.server.http.running import run
    http = app.settings.http
    listeners = listen(http.host, http.port, count=http.workers)
    url = url_of(http.host, listeners[0])

    from toolmem.hosts.detached import catch_up_with_what_is_left

    catch_up_with_what_is_left()

    def ready() -> None:
        print(f"toolmem {__version__} serves {url} ({_described(app.settings)})", flush=True)

    if http.workers == 1:
        run(app, access, listeners[0], ready=ready)
        return 0
    from toolmem.server.http.workers import Workers

    return Workers(files, overrides, listeners, shutdown_timeout=http.shutdown_timeout, ready=ready).run()


def _described(settings: Settings) -> str:
    model = settings.llm["default"]
    workers = f", {settings.http.workers} workers" if settings.http.workers > 1 else ""
    named = f"{model.backend} {model.asked_model}".strip()
    return f"store: {settings.vector_store['default'].backend}, model: {named}{workers}"
