"""`toolmem tools`: what a store knows of each tool."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click
import msgspec

from toolmem.cli.console import number, print_table
from toolmem.memory.toolmem import ToolMem
from toolmem.operations.results import ToolOverview

DEFAULT_STORE = ".toolmem/memory.db"


@click.command()
@click.option("--store", default=DEFAULT_STORE, show_default=True, help="The store file.")
@click.option("--workspace", default="default", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, guidance included.")
def tools(store: str, workspace: str, as_json: bool) -> None:
    """List the tools of a store with their figures.

    \b
    Examples:
      toolmem tools
      toolmem tools --store report/memory.db --workspace evaluate --json
    """
    if not os.path.exists(store):
        raise click.UsageError(f"--store: there is no file {store}")
    with ToolMem(store, workspace=workspace) as memory:
        found = memory.tools()
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    elif found:
        print_overviews(found)
    else:
        click.echo(f"workspace {workspace!r} has no tools", err=True)


def print_overviews(found: Sequence[ToolOverview]) -> None:
    """A table with one row per tool."""
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
