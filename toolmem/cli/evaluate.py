"""`toolmem evaluate`: a recording in; judged calls, guidance and a report out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from toolmem.cli.console import (
    Config,
    Overrides,
    ProgressLine,
    counted,
    logs_to_stderr,
    print_json_text,
    print_table,
    require_format,
    say,
    tell,
)
from toolmem.config.extras import lacks

if TYPE_CHECKING:
    from toolmem.research.report.findings import Evaluation


def add_to(app: typer.Typer) -> None:
    """Add the command `evaluate`."""
    app.command("evaluate", short_help="Judge, summarize and report a recording of tool calls.")(evaluate)


def evaluate(
    overrides: Overrides = None,
    inputs: Annotated[
        list[Path] | None,
        typer.Option("--input", help="A recording; may be given several times. Default: the project's own sample."),
    ] = None,
    format: Annotated[
        str | None, typer.Option("--format", help="calls or openai; recognized by content where not given.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder of the report.")] = Path("report"),
    ignore_success: Annotated[
        bool, typer.Option("--ignore-success", help="Withhold the recorded success flag from the judge.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Judge a seeded random sample of so many calls.")
    ] = None,
    workspace: Annotated[
        str | None,
        typer.Option(
            "--workspace",
            help="Default: default, in a fresh store DIR/memory.db. With it, calls and guidance are written into that "
            "workspace of the configured store.",
        ),
    ] = None,
    reports: Annotated[
        Path | None, typer.Option("--reports", help="Folder in which the report of each flow is kept.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", help="What `judge label` wrote, filled: the rates are corrected by it.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files in the report's folder that no evaluation wrote.")
    ] = False,
    config: Config = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print summary.json instead of tables.")] = False,
) -> None:
    """Judge a recording of tool calls, distil guidance, and write one page with tables and figures.

    toolmem evaluate

    toolmem evaluate --input calls.jsonl.gz --out report --ignore-success

    toolmem evaluate --input chats.jsonl --format openai llm.default.backend=dry_run
    """
    require_format(format)
    from toolmem.research.evaluation import evaluate as run

    with logs_to_stderr(), ProgressLine() as progress:
        evaluation = run(
            inputs or [],
            out,
            format=cast("Any", format),
            ignore_success=ignore_success,
            limit=limit,
            workspace=workspace,
            config=config,
            overrides=overrides or [],
            reports=reports,
            labels=labels,
            force=force,
            say=progress.phase,
            listener=progress,
        )
    for note in evaluation.notes:
        say(note)
    if as_json:
        print_json_text((out / "summary.json").read_text(encoding="utf-8"))
    else:
        from toolmem.research.report import skip_table, spending_table, summary_table

        for table in (summary_table(evaluation), skip_table(evaluation), spending_table(evaluation)):
            if table is None:
                continue
            print_table(table.title, table.columns, table.rows, numeric=table.numeric, notes=table.notes)
        tell(f"\nReport: {out / 'report.html'}")
    code = 3 if evaluation.stopped_by == "budget" else _tell_failures(evaluation, out)
    if without := lacks("the page with figures", "research"):
        say(without)
    if code:
        raise typer.Exit(code)


def _tell_failures(evaluation: Evaluation, out: Path) -> int:
    """Name what failed; answers the exit code."""
    unsummarized = evaluation.unsummarized
    if evaluation.failures:
        failed = len(evaluation.failures)
        say(f"{counted(failed, 'record')} failed; {out / 'summary.json'} names {'it' if failed == 1 else 'them'}")
        reason, times = Counter(failure.error for failure in evaluation.failures).most_common(1)[0]
        say(f"most of all ({times:,} of {failed:,}): {reason}")
    if unsummarized:
        say(f"not summarized in the last run: {', '.join(unsummarized)}; {out / 'skips.csv'} says why")
    return 1 if evaluation.failures or unsummarized else 0
