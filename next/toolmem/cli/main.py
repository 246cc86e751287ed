"""The `toolmem` command. Results go to stdout, progress and messages to stderr."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from toolmem.cli.console import print_error
from toolmem.cli.tools import print_overviews, tools
from toolmem.errors import ToolMemError
from toolmem.research.csv_files import write_csv_files
from toolmem.research.evaluation import evaluate as evaluate_recording
from toolmem.research.evaluation import sample


@click.group()
def commands() -> None:
    """Tool memory for LLM agents."""


@commands.command()
@click.option(
    "--input",
    "source",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON Lines, .gz too.",
)
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
    print_overviews(found.tools)
    click.echo(found.summary.answer)
    click.echo(f"{len(found.calls)} calls, {len(found.bad_records)} bad records")
    click.echo("wrote " + ", ".join(map(str, written)))
    if not found.summary.success or (found.bad_records and not found.calls):
        sys.exit(1)


commands.add_command(tools)


def main() -> None:
    """Run a command. Exit code 2: refused or failed with an error; 130: interrupted."""
    try:
        code = commands(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = 2
    except ToolMemError as error:
        print_error(str(error))
        code = 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        code = 130
    sys.exit(code)
