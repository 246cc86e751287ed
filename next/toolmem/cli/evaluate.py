"""`toolmem evaluate`: judge a recording, and write a report."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from toolmem.cli.console import number, print_error, print_table, progress_bar
from toolmem.research import evaluation
from toolmem.research.csv_files import write_csv_files
from toolmem.research.page import write_page
from toolmem.research.tables import tool_rows
from toolmem.text.display import plain

MAX_BAD_RECORDS = 20  # named on the terminal


@click.command()
@click.option(
    "--input",
    "source",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON Lines with one call each, also gzipped. Left out: the packaged sample.",
)
@click.option(
    "--out",
    default="report",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the report.",
)
@click.option("--store", help="Keep the calls in this file, beside what it holds.")
@click.option("--ignore-success", is_flag=True, help="Withhold the recorded flag from the judge.")
@click.option("--limit", type=click.IntRange(min=1), help="Read so many records.")
def evaluate(
    source: Path | None, out: Path, store: str | None, ignore_success: bool, limit: int | None
) -> None:
    """Judge a recording, summarize its tools, and write a report.

    The calls are kept in OUT/memory.db, which each evaluation begins anew, unless --store names a
    file. Exit code 1: nothing could be evaluated, or a tool could not be summarized.

    \b
    Examples:
      toolmem evaluate
      toolmem evaluate --input calls.jsonl --out report --ignore-success
    """
    path, tools = (source, []) if source is not None else evaluation.sample()
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / ".toolmem").touch()
        (out / ".toolmem").unlink()
    except OSError as error:
        raise click.UsageError(f"--out: cannot write there: {error}") from error
    if store is None:
        store = str(out / "memory.db")
        evaluation.clear(store)
    with progress_bar("judging calls") as progress:
        found = evaluation.evaluate(
            path,
            store=store,
            tools=tools,
            ignore_success=ignore_success,
            limit=limit,
            progress=progress,
        )
    written = [write_page(found, out), *write_csv_files(found, out)]
    _print(found, written)
    if not found.calls:
        print_error(f"{path.name} holds no call that could be evaluated")
    if not found.calls or not found.summary.success:
        sys.exit(1)


def _print(found: evaluation.Evaluation, written: list[Path]) -> None:
    for bad in found.bad_records[:MAX_BAD_RECORDS]:
        click.echo(f"line {bad.line}: {plain(bad.error)}", err=True)
    if len(found.bad_records) > MAX_BAD_RECORDS:
        left = len(found.bad_records) - MAX_BAD_RECORDS
        click.echo(f"and {left} more bad records: see summary.json", err=True)
    rows = [
        (
            tool.tool_name,
            str(tool.calls),
            str(tool.failures),
            number(tool.success_rate),
            number(tool.avg_score),
        )
        for tool in tool_rows(found)
    ]
    if rows:
        print_table(("tool", "calls", "failed", "success rate", "score"), rows)
    click.echo(f"{len(found.calls)} calls, {len(found.bad_records)} bad records")
    if found.calls:
        click.echo(found.summary.answer)
        click.echo(found.second_summary.answer)
    click.echo("wrote " + ", ".join(map(str, written)))
