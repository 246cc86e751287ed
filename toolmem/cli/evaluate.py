"""`toolmem evaluate`: judge a recording, and write a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from toolmem.cli import options
from toolmem.cli.console import print_error, print_table, progress_bar
from toolmem.cli.import_ import form, mapping, read_mapping, sources
from toolmem.formats.recording import read_labels
from toolmem.research import evaluation
from toolmem.research.csv_files import write_csv_files
from toolmem.research.page import write_page
from toolmem.research.tables import tool_rows
from toolmem.text.display import plain

MAX_SHOWN = 20  # bad records and rows, on the terminal


@click.command()
@sources
@form
@mapping
@click.option(
    "--out",
    default="report",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the report.",
)
@click.option(
    "--labels",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="CSV with `index` and `label` (1 worked, 0 did not): how often the judge agrees.",
)
@click.option("--ignore-success", is_flag=True, help="Withhold the recorded flag from the judge.")
@click.option("--limit", type=click.IntRange(min=1), help="Read the first so many records.")
@options.config
@options.store
@options.workspace(evaluation.WORKSPACE)
@options.overrides
def evaluate(
    sources: tuple[Path, ...],
    form: str | None,
    mapped: str | None,
    out: Path,
    labels: Path | None,
    ignore_success: bool,
    limit: int | None,
    **where: Any,
) -> None:
    """Judge a recording, summarize its tools, and write a report.

    The calls are kept in OUT/memory.db, which each evaluation begins anew, unless a store or a
    workspace is named. Exit code 1: a record could not be read, an evaluation failed, or a tool
    could not be summarized; 3: the budget is reached.

    \b
    Examples:
      toolmem evaluate
      toolmem evaluate --input calls.jsonl --out report --ignore-success
      toolmem evaluate --input chats.jsonl llm.default.backend=dashscope budget.max_tokens=100000
    """
    known_labels = read_labels(labels) if labels is not None else {}
    paths, tools = (list(sources), []) if sources else evaluation.sample()
    names_store = where["store"] is not None or options.names_store(
        where["overrides"], where["config"]
    )
    if not names_store:
        where["store"] = str(out / "memory.db")
    with options.open_memory(**where) as memory:
        evaluation.require_models(memory)
        _make_folder(out)
        with progress_bar("judging calls") as progress:
            found = evaluation.evaluate(
                paths,
                memory=memory,
                format=form,
                mapping=read_mapping(mapped),
                tools=tools,
                ignore_success=ignore_success,
                limit=limit,
                progress=progress,
                begin_anew=not names_store and memory.workspace_id == evaluation.WORKSPACE,
            )
    _print_result(found, [write_page(found, out), *write_csv_files(found, out)])
    if known_labels:
        agreed = evaluation.agreement(found, known_labels)
        accuracy = "-" if (mean := agreed.balanced_accuracy) is None else f"{mean:.3f}"
        click.echo(
            f"the judge agrees with {agreed.agreed} of {agreed.labelled} labels; "
            f"balanced accuracy {accuracy}"
        )
    if not found.calls:
        print_error(f"{found.source} holds no call that could be evaluated")
    is_done = found.calls and found.summary.success
    is_done = is_done and not (found.failed_evaluations or found.bad_records)
    sys.exit(3 if found.budget_reached or found.summary.budget_reached else 0 if is_done else 1)


def _make_folder(out: Path) -> None:
    """Raises UsageError if files cannot be written there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / ".toolmem").touch()
        (out / ".toolmem").unlink()
    except OSError as error:
        raise click.UsageError(f"--out: cannot write there: {error}") from error


def _print_result(found: evaluation.Evaluation, written: list[Path]) -> None:
    for bad in found.bad_records[:MAX_SHOWN]:
        click.echo(plain(f"{bad.place}: {bad.error}"), err=True)
    if len(found.bad_records) > MAX_SHOWN:
        left = len(found.bad_records) - MAX_SHOWN
        click.echo(f"and {left} more bad records: see summary.json", err=True)
    for note in found.notes:
        click.echo(plain(note), err=True)
    if found.failed_evaluations:
        numbers = ", ".join(map(str, found.failed_evaluations[:MAX_SHOWN]))
        count = len(found.failed_evaluations)
        click.echo(f"{count} evaluations failed, the calls are kept: rows {numbers}", err=True)
        failed = (each.call for each in found.calls if each.call.evaluation_status == "failed")
        click.echo(f"the first: {plain(next(failed).evaluation, 500)}", err=True)
    if found.duplicates:
        text = "calls of a known id are not judged again: no scores of earlier evaluations here"
        click.echo(f"{found.duplicates} {text}", err=True)
    if found.stopped:
        left = sum(each.call.evaluation_status in ("pending", "failed") for each in found.calls)
        print_error(f"stopped: {found.stopped}; {left} calls were not evaluated")
    elif found.summary.stopped:
        print_error(f"stopped: {found.summary.stopped}")
    rows = [
        (row.tool_name, row.calls, row.failures, row.success_rate, row.avg_score)
        for row in tool_rows(found)
    ]
    if rows:
        print_table(("tool", "calls", "failed", "success rate", "score"), rows)
    click.echo(f"{len(found.calls)} calls, {len(found.bad_records)} bad records")
    if found.calls and not found.stopped:
        click.echo(found.summary.answer)
        click.echo(found.second_summary.answer)
    usage = found.usage
    if usage.requests:
        costs = "".join(f", {cost:.4g} {currency}" for currency, cost in usage.costs.items())
        sent = "requests to models" if found.requests else "requests were counted and not sent"
        click.echo(
            f"{usage.requests} {sent}: {usage.prompt_tokens} prompt tokens, "
            f"{usage.completion_tokens} reply tokens{costs}; the skips saved "
            f"{usage.saved_prompt_tokens} prompt tokens"
        )
    click.echo("wrote " + ", ".join(map(str, written)))
