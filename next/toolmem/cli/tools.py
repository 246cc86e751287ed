"""`toolmem tools`: what a store knows of its tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click
import msgspec

from toolmem.cli.console import number, print_error, print_table
from toolmem.config.names import hint
from toolmem.memory.toolmem import ToolMem
from toolmem.operations.results import ToolOverview
from toolmem.text.display import plain

DEFAULT_STORE = ".toolmem/memory.db"
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class _ListByDefault(click.Group):
    """`toolmem tools` is `toolmem tools list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] != "--help"):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def _in_store(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: the options that name a store and a workspace."""
    workspace = click.option("--workspace", default="default", show_default=True)
    store = click.option(
        "--store", default=DEFAULT_STORE, show_default=True, help="The store file."
    )
    return store(workspace(command))


def _opened(store: str, workspace: str) -> ToolMem:
    if not os.path.exists(store):
        raise click.UsageError(f"--store: there is no file {store}")
    return ToolMem(store, workspace=workspace)


@click.group(cls=_ListByDefault)
def tools() -> None:
    """Show what a store knows of its tools."""


@tools.command("list")
@_in_store
@_JSON
def list_tools(store: str, workspace: str, as_json: bool) -> None:
    """List the tools with their figures.

    \b
    Examples:
      toolmem tools list
      toolmem tools list --store report/memory.db --workspace evaluate --json
    """
    with _opened(store, workspace) as memory:
        found = memory.tools()
    if as_json:
        _print_json(found)
    elif found:
        _print_overviews(found)
    else:
        click.echo(f"workspace {workspace!r} has no tools", err=True)


@tools.command("show")
@click.argument("tool")
@_in_store
@_JSON
def show_tool(tool: str, store: str, workspace: str, as_json: bool) -> None:
    """Show one tool's guidance, as an agent gets it. Exit code 1: the tool is not known.

    \b
    Example:
      toolmem tools show send_email --store memory.db
    """
    with _opened(store, workspace) as memory:
        found = memory.guidance([tool])
        names = [each.tool_name for each in memory.tools()] if found.not_found else []
    if found.not_found:
        print_error(f"no tool is called {tool!r} ({hint(tool, names)})")
        sys.exit(1)
    if as_json:
        _print_json(found.memory_list[0])
        return
    for line in found.text.splitlines():
        click.echo(plain(line, 2_000))


def _print_json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def _print_overviews(found: Sequence[ToolOverview]) -> None:
    rows = [
        (
            tool.tool_name,
            str(tool.calls_ever),
            number(tool.window.success_rate),
            number(tool.window.avg_score),
            str(tool.new_calls),
        )
        for tool in found
    ]
    print_table(("tool", "calls", "success rate", "score", "not summarized"), rows)
