"""`toolmem mcp proxy`: between an MCP host and one of its servers; `wrap` puts it there."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from toolmem.cli.console import logs_to_stderr, say, tell
from toolmem.errors import RequestError

if TYPE_CHECKING:
    from toolmem.hosts.mcp_entries import EntryChange

Name = Annotated[str, typer.Argument(metavar="NAME", help="The server's name in that file.")]
File = Annotated[
    Path, typer.Option("--file", help="The host's configuration: .mcp.json, claude_desktop_config.json, ...")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")]
Store = Annotated[str | None, typer.Option("--store", help="The memory: a file, or a configuration (YAML).")]
Shadow = Annotated[bool, typer.Option("--shadow", help="Decide, record and log; change nothing.")]
NoArguments = Annotated[bool, typer.Option("--no-arguments", help="Keep no arguments of calls, not even masked ones.")]
OnError = Annotated[
    Literal["open", "closed"],
    typer.Option("--on-error", help="What becomes of calls that the memory cannot decide on: they run, or not."),
]


def proxy(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND...", help="The server's command line, behind `--`.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="The server's name in the records.")] = "mcp",
    url: Annotated[str | None, typer.Option("--url", help="The server's address, where it is no command.")] = None,
    address: Annotated[
        str | None,
        typer.Option("--listen", metavar="HOST:PORT", help="Serve streamable HTTP, and not stdin and stdout."),
    ] = None,
    store: Store = None,
    workspace: Annotated[str, typer.Option("--workspace", help="The workspace of the memory.")] = "default",
    shadow: Shadow = False,
    no_arguments: NoArguments = False,
    on_error: OnError = "open",
) -> None:
    """Stand between an MCP host and a server: hold calls against the memory, record them, describe what is known.

    Everything but tools/call and tools/list passes as it came. Messages of the proxy are on stderr. The exit code is
    the server's. `toolmem mcp wrap` puts this into a host's configuration.

    toolmem mcp proxy --name files -- npx -y @modelcontextprotocol/server-filesystem .

    toolmem mcp proxy --url http://127.0.0.1:3001/mcp --listen 127.0.0.1:8100
    """
    if bool(command) == bool(url):
        raise RequestError("COMMAND: name the server's command behind `--`, or its address with --url", field="command")
    with logs_to_stderr():
        options = {"name": name, "store": store, "workspace": workspace, "shadow": shadow}
        code = _run(command or [], url, address, arguments=not no_arguments, closed=on_error == "closed", **options)
    os._exit(code)  # a thread may wait for the host's pipes for ever


def _run(command: list[str], url: str | None, address: str | None, **options: Any) -> int:
    from toolmem.config.extras import need
    from toolmem.hosts.proxy_stores import noted_decisions, proxy_stores
    from toolmem.server.proxy.interception import Shared
    from toolmem.server.proxy.memory import ProxyMemory, ProxyOptions

    stores = proxy_stores(options.pop("store"))
    told = ProxyOptions(**options, store=stores.main, beside=stores.beside, noted=noted_decisions())
    shared = Shared(ProxyMemory(told))
    if address is None and url is None:
        from toolmem.server.proxy.child_server import serve_child

        return asyncio.run(serve_child(command, shared))
    need("toolmem mcp proxy over HTTP", "serve")
    if address is None and url is not None:
        from toolmem.server.proxy.remote_server import serve_remote

        return asyncio.run(serve_remote(url, shared, _headers()))
    assert address is not None
    from toolmem.server.proxy.serving import serve_http

    return asyncio.run(serve_http(command, url, address, shared, _headers()))


def _headers() -> dict[str, str]:
    """What `wrap` moved from an entry's `headers` into its `env`."""
    given = os.environ.get("TOOLMEM_MCP_HEADERS", "")
    try:
        return {str(name): str(value) for name, value in json.loads(given or "{}").items()}
    except (ValueError, AttributeError):
        raise RequestError("TOOLMEM_MCP_HEADERS: expected a JSON object of headers", field="headers") from None


def wrap(
    name: Name,
    file: File,
    store: Store = None,
    shadow: Shadow = False,
    no_arguments: NoArguments = False,
    on_error: OnError = "open",
    dry_run: DryRun = False,
) -> None:
    """Rewrite one server's entry in a host's configuration, so that the proxy stands before it.

    The difference is shown; values of `env` and `headers` are not. Everything else in the file stays byte for byte, and
    `toolmem mcp unwrap` brings the entry back. Done twice, it changes nothing. Restart the host afterwards.

    toolmem mcp wrap files --file .mcp.json --dry-run
    """
    from toolmem.hosts.installing import interpreter_command
    from toolmem.hosts.mcp_entries import plan_wrap

    options = ["--store", _whole(store)] if store else []
    options += ["--shadow"] * shadow + ["--no-arguments"] * no_arguments
    options += ["--on-error", "closed"] if on_error == "closed" else []
    change = plan_wrap(file, name, interpreter_command(), options)
    if _shown(change, "is wrapped already", dry_run=dry_run):
        change.wrap()
        say(f"{name} is wrapped: restart the host. `toolmem mcp unwrap` undoes it")


def unwrap(name: Name, file: File, dry_run: DryRun = False) -> None:
    """Bring back a server's entry as it was before `toolmem mcp wrap`.

    toolmem mcp unwrap files --file .mcp.json
    """
    from toolmem.cli.terminal import refuse_agents
    from toolmem.hosts.mcp_entries import plan_unwrap

    change = plan_unwrap(file, name)
    if _shown(change, "is not wrapped", dry_run=dry_run):
        refuse_agents("and what holds it is its user's")
        change.unwrap()
        say(f"{name} is as it was before: restart the host")


def _shown(change: EntryChange, unchanged: str, *, dry_run: bool) -> bool:
    """Show what changes. Is it to be written?"""
    if not change.changes:
        say(f"{change.name} {unchanged}: nothing changes")
        return False
    tell(change.difference())
    return not dry_run


def _whole(store: str) -> str:
    """Hosts start a server in a folder of their choice."""
    return store if store == ":memory:" else os.path.abspath(os.path.expanduser(store))
