"""The `toolmem` command. Results go to stdout, progress and messages to stderr."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from toolmem.errors import ToolMemError
from toolmem.memory.toolmem import ToolMem
from toolmem.operations.results import ToolOverview
from toolmem.research.csv_files import write_csv_files
from toolmem.research.evaluation import WORKSPACE, sample
from toolmem.research.evaluation import evaluate as evaluate_recording


@click.group()
def commands() -> None:
    """Tool memory for LLM agents."""


@commands.command()
@click.option("--input", "source", type=click.Path(path_type=Path), help="JSON Lines, .gz too.")
@click.option("--out", default="report", type=click.Path(path_type=Path), show_default=True)
@click.option("--store", default=":memory:", help="Keep the calls in this file.")
@click.option("--ignore-success", is_flag=True, help="Withhold the recorded flag from the judge.")
@click.option("--limit", type=click.IntRange(min=1), help="Read so many records.")
def evaluate(
    source: Path | None, out: Path, store: str, ignore_success: bool, limit: int | None
) -> None:
    """Judge a recording, summarize its tools, and write tables.

    Without --input the packaged sample is judged.

    \b
    Examples:
      toolmem evaluate
      toolmem evaluate --input calls.jsonl --out report --ignore-success
    """
    path, tools = (source, []) if source is not None else sample()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(f"--out: {error}") from error
    found = evaluate_recording(
        path,
        store=store,
        tools=tools,
        ignore_success=ignore_success,
        limit=limit,
        progress=lambda done, total: click.echo(f"judged {done} of {total} calls", err=True),
    )
    for bad in found.bad_records:
        click.echo(f"line {bad.line}: {bad.error}", err=True)
    written = write_csv_files(found, out)
    _print_tools(found.tools)
    click.echo(found.summary.answer)
    click.echo(f"{len(found.calls)} calls, {len(found.bad_records)} bad records")
    click.echo("wrote " + ", ".join(map(str, written)))
    if not found.summary.success or (found.bad_records and not found.calls):
        sys.exit(1)


@commands.command()
@click.option("--store", default=".toolmem/memory.db", show_default=True)
@click.option("--workspace", default=WORKSPACE, show_default=True)
def tools(store: str, workspace: str) -> None:
    """List the tools of a store with their figures.

    \b
    Example:
      toolmem tools --store memory.db
    """
    with ToolMem(store, workspace=workspace) as memory:
        _print_tools(memory.tools())


def _print_tools(found: list[ToolOverview]) -> None:
    click.echo(f"{'tool':32} {'calls':>7} {'success':>8} {'score':>6}")
    for tool in found:
        name = "".join(c if c.isprintable() else "\ufffd" for c in tool.tool_name)[:32]
        rate, score = tool.window.success_rate, tool.window.avg_score
        shown_rate = "-" if rate is None else f"{rate:.3f}"
        shown_score = "-" if score is None else f"{score:.3f}"
        click.echo(f"{name:32} {tool.calls_ever:7} {shown_rate:>8} {shown_score:>6}")


def main() -> None:
    """Run the command; an error of toolmem is one line on stderr and exit code 2."""
    try:
        commands()
    except ToolMemError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
