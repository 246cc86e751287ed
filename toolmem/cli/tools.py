"""`toolmem tools`: list the tools of a store, show their guidance, or remove a line of it."""

from __future__ import annotations

import sys
from typing import Any, get_args

import click

from toolmem.cli import options
from toolmem.cli.console import LazyGroup, print_error, print_json, print_table
from toolmem.config.names import hint
from toolmem.guidance.shown import numbered
from toolmem.memory.toolmem import ToolMem
from toolmem.operations.calls import ToolOrder
from toolmem.operations.results import ToolOverview
from toolmem.text.display import plain


@click.group(cls=LazyGroup, default="list")
def tools() -> None:
    """List the tools of a store, and show or shorten their guidance. The default is `list`."""


@tools.command("list")
@click.option("--text", help="Show only tools with this text in their name.")
@click.option(
    "--sort",
    type=click.Choice(get_args(ToolOrder)),
    default="name",
    show_default=True,
    help="Sort by name, or put the tools first that have most lost, failed, new or all calls "
    "(`calls`), most failures a call, the lowest score or the longest `time` a call.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Show at most this many tools.")
@options.with_memory()
@options.as_json
def list_tools(memory: ToolMem, as_json: bool, **wanted: Any) -> None:
    """List the tools with their figures.

    `calls` counts all calls ever, `new` those since the guidance was written. The other figures are
    of the calls that are kept: `lost` calls failed or were of no use; `worked` is a share; `score`
    and `seconds` are means.

    \b
    Examples:
      toolmem tools list
      toolmem tools list --sort failed --limit 10
      toolmem tools list --store report/memory.db --json
    """
    found = memory.tools(**wanted, guidance=as_json)
    columns = ("tool", "calls", "kept", "failed", "lost", "worked", "score", "seconds", "new")
    which = "tool with this text in its name" if wanted["text"] else "tools"
    nothing = f"workspace {memory.workspace_name!r} has no {which}"
    if as_json:
        print_json(found)
    else:
        print_table(columns, list(map(_row, found)), nothing=nothing)


@tools.command("show")
@click.argument("tool")
@options.with_memory()
@options.as_json
def show_tool(memory: ToolMem, tool: str, as_json: bool) -> None:
    """Show one tool's guidance, its lines numbered. Exit code 1: the tool is not known.

    \b
    Example:
      toolmem tools show send_email --store memory.db
    """
    known = {each.tool_name: each for each in memory.tools()}
    if tool not in known:
        print_error(f"no tool is called {tool!r} ({hint(tool, known)})")
        sys.exit(1)
    if as_json:
        print_json(known[tool])
        return
    for line in numbered(known[tool].guidance) or ["there is no guidance yet"]:
        click.echo(plain(line, 2_000))


@tools.command("forget-line")
@click.argument("tool")
@click.argument("line", metavar="N", type=click.IntRange(min=1))
@options.with_memory()
def forget_line(memory: ToolMem, tool: str, line: int) -> None:
    """Remove line N of a tool's guidance, as `show` numbers it. Later guidance lacks it, too.

    \b
    Example:
      toolmem tools forget-line send_email 2 --store memory.db
    """
    click.echo(f"taken away: {memory.forget_guidance_line(tool, line)}")


def _row(tool: ToolOverview) -> tuple[Any, ...]:
    kept = tool.window
    counts = (tool.calls_ever, kept.calls, tool.failed, tool.lost)
    means = (kept.success_rate, kept.avg_score, kept.avg_time_cost)
    return tool.tool_name, *counts, *means, tool.new_calls
