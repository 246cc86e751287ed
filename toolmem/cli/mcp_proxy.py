"""`toolmem mcp proxy`: between an MCP host and one of its servers."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, Literal

import typer

from toolmem.cli.console import logs_to_stderr
from toolmem.errors import RequestError


def proxy(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND...", help="The server's command line, behind `--`.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="The server's name in the records.")] = "mcp",
    store: Annotated[str | None, typer.Option("--store", help="The memory: a file, or a configuration (YAML).")] = None,
    workspace: Annotated[str, typer.Option("--workspace", help="The workspace of the memory.")] = "default",
    shadow: Annotated[bool, typer.Option("--shadow", help="Decide, record and log; change nothing.")] = False,
    no_arguments: Annotated[
        bool, typer.Option("--no-arguments", help="Keep no arguments of calls, not even masked ones.")
    ] = False,
    on_error: Annotated[
        Literal["open", "closed"],
        typer.Option("--on-error", help="What becomes of calls that the memory cannot decide on: they run, or not."),
    ] = "open",
) -> None:
    """Stand between an MCP host and a server: hold calls against the memory, record them, describe what is known.

    Everything but tools/call and tools/list passes as it came. Messages of the proxy are on stderr. The exit code is
    the server's. `toolmem mcp wrap` puts this into a host's configuration.

    toolmem mcp proxy --name files -- npx -y @modelcontextprotocol/server-filesystem .
    """
    if not command:
        raise RequestError("COMMAND: missing; name the server's command behind `--`", field="command")
    with logs_to_stderr():
        code = _run(
            command,
            name=name,
            store=store,
            workspace=workspace,
            shadow=shadow,
            arguments=not no_arguments,
            closed=on_error == "closed",
        )
    os._exit(code)  # a thread may wait for the host's pipes for ever


def _run(
    command: list[str], *, name: str, store: str | None, workspace: str, shadow: bool, arguments: bool, closed: bool
) -> int:
    from toolmem.server.proxy.child_server import serve_stdio
    from toolmem.server.proxy.interception import Shared
    from toolmem.server.proxy.memory import ProxyMemory, ProxyOptions

    options = ProxyOptions(
        name=name, store=store, workspace=workspace, shadow=shadow, arguments=arguments, closed=closed
    )
    return asyncio.run(serve_stdio(command, Shared(ProxyMemory(options))))
