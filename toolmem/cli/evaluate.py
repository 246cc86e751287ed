"""`toolmem evaluate`: judge a recording, and write a report."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from toolmem.cli import options
from toolmem.cli.console import cell, print_error, print_table, print_unread, progress_bar
from toolmem.cli.import_ import format_options, input_option
from toolmem.errors import RequestError
from toolmem.formats.recording import read_labels
from toolmem.research import evaluation, tables
from toolmem.research.report import write_csv_files, write_page
from toolmem.text.display import counted, plain

MAX_ROWS = 20  # numbers of rows whose evaluation failed that are printed


@click.command()
@input_option
@format_options
@click.option(
    "--out",
    default="report",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the report into this folder.",
)
@click.option(
    "--labels",
    type=options.InputFile(),
    help="Compare the judge with the labels in this CSV file: `index` is the row of a call in the "
    "recording, from 0; `label` is 1 if the call worked, else 0. 20 or more also correct the share "
    "of calls that worked, and its interval: choose their rows at random.",
)
@click.option(
    "--by",
    default="",
    metavar="FIELD",
    help="Group the calls by `day` (UTC), or by a field of their metadata such as `model`.",
)
@click.option("--ignore-success", is_flag=True, help="Hide the success flags from the judge.")
@click.option(
    "--limit", type=click.IntRange(min=1), help="Read only this many calls, from the start."
)
@options.config
@click.option("--store", help=f"{options.STORE}  [default: OUT/memory.db]")
@options.workspace(evaluation.WORKSPACE)
@options.overrides
def evaluate(
    sources: tuple[Path, ...],
    format: str | None,
    mapping: dict[str, str] | None,
    out: Path,
    labels: Path | None,
    by: str,
    ignore_success: bool,
    limit: int | None,
    **where: Any,
) -> None:
    """Judge a recording, summarize its tools, and write a report.

    It prints figures by tool, and writes report.html, CSV files and summary.json into --out (OUT).
    The calls are kept in OUT/memory.db, which each evaluation overwrites, unless a store or a
    workspace is named. Exit code 1: a record could not be read, a call could not be judged, or a
    tool could not be summarized; 3: the budget is reached.

    \b
    Examples:
      toolmem evaluate
      toolmem evaluate --input calls.jsonl --out report --ignore-success
      toolmem evaluate --input calls.jsonl --labels labels.csv --by model
      toolmem evaluate --input chats.jsonl llm.default.backend=dashscope budget.max_tokens=100000
    """
    paths, tools = (list(sources), []) if sources else evaluation.sample()
    names_store = where["store"] is not None or options.names_store(
        where["overrides"], where["config"]
    )
    if not names_store:
        where["store"] = str(out / "memory.db")
    with options.open_memory(**where) as memory:
        evaluation.require_models(memory)
        with _folder(out), progress_bar("judging calls") as progress:
            found = evaluation.evaluate(
                paths,
                memory=memory,
                format=format,
                mapping=mapping,
                tools=tools,
                ignore_success=ignore_success,
                labels=read_labels(labels) if labels is not None else None,
                by=by,
                limit=limit,
                progress=progress,
                begin_anew=not names_store and memory.workspace_name == evaluation.WORKSPACE,
            )
    _print_result(found, [write_page(found, out), *write_csv_files(found, out)])
    has_failed = found.failed_evaluations or found.bad_records
    is_done = found.calls and found.summary.success and not has_failed
    if found.budget_reached or found.summary.budget_reached:
        sys.exit(3)
    sys.exit(0 if is_done else 1)


@contextmanager
def _folder(out: Path) -> Iterator[None]:
    """Make the folder, and remove it if the request is refused. Raises UsageError."""
    is_new = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / ".toolmem").touch()
        (out / ".toolmem").unlink()
    except OSError as error:
        raise click.UsageError(f"--out: cannot write there: {error}") from error
    try:
        yield
    except RequestError:
        if is_new:
            with suppress(OSError):  # it is not empty
                out.rmdir()
        raise


def _print_result(found: evaluation.Evaluation, written: list[Path]) -> None:
    bad = found.bad_records
    print_unread(bad, found.notes, more=": see bad_records.csv")
    if found.failed_evaluations:
        numbers = ", ".join(map(str, found.failed_evaluations[:MAX_ROWS]))
        count = len(found.failed_evaluations)
        failures = f"{counted(count, 'evaluation')} failed, the calls are kept"
        click.echo(f"{failures}: rows {numbers}", err=True)
        failed = (each.call for each in found.calls if each.call.evaluation_status == "failed")
        click.echo(f"the first: {plain(next(failed).evaluation, 500)}", err=True)
    if found.duplicates:
        are = "has an id that is" if found.duplicates == 1 else "have ids that are"
        known = f"{counted(found.duplicates, 'call')} {are} in the store already"
        click.echo(f"{known}: not judged again, and not counted here", err=True)
    if found.stopped:
        left = sum(each.call.evaluation_status in ("pending", "failed") for each in found.calls)
        were = "was" if left == 1 else "were"
        print_error(f"stopped: {found.stopped}; {counted(left, 'call')} {were} not evaluated")
    elif found.summary.stopped:
        print_error(f"stopped: {found.summary.stopped}")
    _print_rates(found)
    click.echo(f"{counted(len(found.calls), 'call')}, {counted(len(bad), 'bad record')}")
    if found.calls and not found.stopped:
        click.echo(found.summary.answer)
        click.echo(found.second_summary.answer)
    usage = found.usage
    if usage.requests:
        costs = "".join(f", {cost:.4g} {currency}" for currency, cost in usage.costs.items())
        requests = counted(usage.requests, "request")
        sent = "to models" if found.requests else "counted and not sent"
        click.echo(
            f"{requests} {sent}: {usage.prompt_tokens} prompt tokens, "
            f"{usage.completion_tokens} reply tokens{costs}; the skips saved "
            f"{usage.saved_prompt_tokens} prompt tokens"
        )
    click.echo("wrote " + ", ".join(map(str, written)))


def _print_rates(found: evaluation.Evaluation) -> None:
    """Print the tables of tools and groups, and the share of calls that worked."""
    columns = ("calls", "failed", "silently", "worked", "95 % interval", "score")
    tools = [(row.tool_name, *_cells(row)) for row in tables.tool_rows(found)]
    groups = [
        (row.group or "none", *_cells(row)) for row in tables.group_rows(found) if not row.tool_name
    ]
    if tools:
        print_table(("tool", *columns), tools)
    if groups:
        print_table((found.by, *columns), groups)
    figures = tables.totals(found)
    if figures["success_rate"] is not None:
        interval = f"{figures['low']:.1%} to {figures['high']:.1%}, {figures['interval']}"
        uncorrected = figures["uncorrected_success_rate"]
        how = f", corrected by labels from {uncorrected:.1%}"
        how = how if uncorrected != figures["success_rate"] else ""
        click.echo(f"{figures['success_rate']:.1%} worked{how} (95 % interval {interval})")
    if figures["flag_is_in_doubt"]:
        rows = ", ".join(map(str, figures["disputed_rows"]))
        click.echo(
            f"{figures['flagged_success_rate']:.1%} worked by the recorded flags: flag and answer "
            f"differ on {counted(figures['in_dispute'], 'call')} "
            f"({figures['share_in_dispute']:.1%}). Look at rows {rows}"
        )
    agreed, of_worked = figures["agreement"], figures["agreement_of_worked"]
    if agreed:
        _print_agreement("the judge's score", agreed)
        if of_worked != agreed:  # a model scored the calls; `worked` depends on their answers
            _print_agreement("`worked`, by which rates count,", of_worked)


def _print_agreement(what: str, agreed: dict[str, Any]) -> None:
    text = (
        "{agreed} of {labelled} labels ({both_worked} worked, {both_failed} failed; {judge_failed} "
        "good calls it calls failed, {judge_worked} failures it calls good): balanced accuracy "
        "{balanced_accuracy}, of failures precision {precision} and recall {recall}, kappa {kappa}"
    )
    shown = text.format(**{name: cell(value) for name, value in agreed.items()})
    click.echo(f"{what} agrees with {shown}")


def _cells(row: tables.Figures) -> tuple[Any, ...]:
    interval = f"{row.low:.3f} to {row.high:.3f}"
    return row.calls, row.failures, row.silent_failures, row.success_rate, interval, row.avg_score
