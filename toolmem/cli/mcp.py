"""`toolmem mcp`: the MCP server, and the proxy before other servers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from toolmem.cli import console, options
from toolmem.cli.console import LazyGroup, require_mcp
from toolmem.errors import RequestError
from toolmem.guard.stores import open_stores
from toolmem.hooks import mcp_entries
from toolmem.hooks.installs import interpreter

shadow_mode = click.option(
    "--shadow", is_flag=True, help="Only record calls and decisions: stop no call, add no text."
)
settings_file = click.option(
    "--file",
    "path",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Change this settings file of the host, such as .mcp.json or claude_desktop_config.json.",
)


@click.group(cls=LazyGroup, lazy={"serve": "toolmem.cli.serve:serve_mcp"}, default="serve")
def mcp() -> None:
    """Serve the memory over MCP, or put a proxy before another server. The default is `serve`.

    \b
    Examples:
      toolmem mcp --workspace team
      toolmem mcp mcp.transport=streamable-http mcp.port=8001
      toolmem mcp proxy --name files -- npx -y @modelcontextprotocol/server-filesystem .
      toolmem mcp wrap files --file .mcp.json
    """


@mcp.command()
@click.argument("command", nargs=-1, metavar="[-- COMMAND...]")
@click.option("--url", help="Connect to the server at this address.")
@click.option(
    "--name",
    default="mcp",
    show_default=True,
    help="Record this name of the server with each call.",
)
@console.store_file
@shadow_mode
@console.on_error
def proxy(command: tuple[str, ...], url: str | None, store: str | None, **more: Any) -> None:
    """Check and record the calls between an agent and an MCP server.

    The agent's program (the host) starts the proxy, which starts COMMAND or connects to --url. It
    checks each tools/call, and adds rules and guidance to the descriptions in tools/list; all else
    passes unchanged. Messages of the proxy go to stderr; the exit code is the server's.

    \b
    Examples:
      toolmem mcp proxy --name files -- npx -y @modelcontextprotocol/server-filesystem .
      toolmem mcp proxy --name wiki --url https://example.com/mcp
    """
    from toolmem.server.proxy.child import leave, run_child
    from toolmem.server.proxy.memory import ProxyMemory

    for item in command[:1]:
        options.refuse_setting(item, "toolmem mcp proxy")
    if bool(command) == bool(url):
        problem = "give the command of the server behind `--`, or its address by --url"
        raise RequestError(f"COMMAND: {problem}", "command")
    memory = ProxyMemory(lambda: open_stores(os.getcwd(), store or ""), **more)
    if url is None:
        leave(run_child(command, memory))
    require_mcp()
    from toolmem.server.proxy.remote import run_remote

    leave(run_remote(str(url), _headers(), memory))


@mcp.command()
@click.argument("name")
@settings_file
@console.store_file
@shadow_mode
@console.on_error
@console.dry_run
@options.no_settings
def wrap(
    name: str, path: Path, store: str | None, shadow: bool, on_error: str, dry_run: bool
) -> None:
    """Put a proxy that checks calls before the server NAME in a host's settings.

    It also records them. Restart the host afterwards.

    \b
    Example:
      toolmem mcp wrap files --file .mcp.json --dry-run
    """
    proxy_options = ["--store", os.path.abspath(store)] if store else []
    proxy_options += ["--shadow"] if shadow else []
    proxy_options += ["--on-error", on_error] if on_error != "open" else []
    change = mcp_entries.plan_wrap(path, name, interpreter(), proxy_options)
    _apply(change, name, dry_run, wraps=True)


@mcp.command()
@click.argument("name")
@settings_file
@console.dry_run
def unwrap(name: str, path: Path, dry_run: bool) -> None:
    """Undo `wrap`: restore the entry of the server NAME. Restart the host afterwards.

    \b
    Example:
      toolmem mcp unwrap files --file .mcp.json
    """
    _apply(mcp_entries.plan_unwrap(path, name), name, dry_run, wraps=False)


def _apply(change: mcp_entries.EntryChange, name: str, dry_run: bool, *, wraps: bool) -> None:
    if not dry_run:
        mcp_entries.apply(change, wraps=wraps)
    click.echo(f"{name} {'would start' if dry_run else 'starts'}: {change.starts}")


def _headers() -> dict[str, str]:
    """The headers that `wrap` moved from an entry into the environment. Raises RequestError."""
    text = os.environ.get(mcp_entries.HEADERS, "{}")
    try:
        return {name: str(value) for name, value in json.loads(text).items()}
    except (ValueError, AttributeError):
        problem = f"{mcp_entries.HEADERS}: expected a JSON object of headers"
        raise RequestError(problem, "headers") from None
