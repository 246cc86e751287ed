"""`toolmem judge compare`: is a paid judge worth its price?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from toolmem.cli import judge_labels
from toolmem.cli.console import (
    AsJson,
    Config,
    Overrides,
    ProgressLine,
    counted,
    logs_to_stderr,
    print_json,
    print_table,
    require_format,
    say,
)


def add_to(app: typer.Typer) -> None:
    """Add the group `judge`."""
    group = typer.Typer(no_args_is_help=True, help="Compare judges, label calls, correct a judge's rate by the labels.")
    group.command("compare")(compare)
    group.command("label")(judge_labels.label)
    group.command("calibrate")(judge_labels.calibrate)
    app.add_typer(group, name="judge")


def compare(
    overrides: Overrides = None,
    judges: Annotated[
        list[str] | None,
        typer.Option(
            "--judge",
            help="At least twice: offline (the rule-based check), a name of the llm section (default, ...), recorded "
            "(the success flag), or column:NAME.",
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            help="A field of the calls' metadata that the judges are measured by; the same as --judge column:NAME. "
            "False, or a number below 0.5, counts as failed, the other way round where the name speaks of failure; "
            "NAME<X, NAME>X and NAME:TEXT say themselves what counts as failed.",
        ),
    ] = None,
    inputs: Annotated[
        list[Path] | None,
        typer.Option("--input", help="A recording; may be given several times. Default: the project's own sample."),
    ] = None,
    format: Annotated[
        str | None, typer.Option("--format", help="calls or openai; recognized by content where not given.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Judge a seeded random sample of so many calls.")
    ] = None,
    ignore_success: Annotated[
        bool, typer.Option("--ignore-success", help="Withhold the recorded success flag from the judges.")
    ] = False,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write every call with all verdicts to this file.")] = None,
    workspace: Annotated[str, typer.Option("--workspace", help="Whose verdict cache and ledger are used.")] = "default",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Let several judges judge the same calls: who agrees with whom, who is right by a label, what each one costs.

    toolmem judge compare --input calls.jsonl --limit 200 --judge offline --judge default llm.default.backend=dashscope

    toolmem judge compare --limit 100 --ignore-success --judge offline --judge recorded --label useful

    toolmem judge compare --judge default --judge fast llm.default.backend=dashscope llm.fast.backend=dashscope
    llm.fast.model_name=qwen-flash
    """
    require_format(format)
    from toolmem.research.comparison import compare_judges
    from toolmem.research.report.agreement_tables import comparison_json, comparison_rows, comparison_tables
    from toolmem.research.report.csv_files import write_rows

    with logs_to_stderr(), ProgressLine() as progress:
        comparison = compare_judges(
            inputs or [],
            [*(judges or []), *(f"column:{name}" for name in label or [])],
            format=cast("Any", format),
            limit=limit,
            ignore_success=ignore_success,
            workspace=workspace,
            config=config,
            overrides=overrides or [],
            say=progress.phase,
            listener=progress,
        )
    if csv is not None:
        columns, rows = comparison_rows(comparison)
        write_rows(columns, rows, csv)
        say(f"{counted(len(rows), 'row')} in {csv}")
    if as_json:
        print_json(comparison_json(comparison))
    else:
        for table in comparison_tables(comparison):
            print_table(table.title, table.columns, table.rows, numeric=table.numeric, notes=table.notes)
    if comparison.stopped_by == "budget":
        raise typer.Exit(3)
    missing = sum(len(run.scores) - run.judged for run in comparison.judges_proper)
    if missing:
        are = "is" if missing == 1 else "are"
        say(f"{counted(missing, 'verdict')} {are} missing; asking again costs no more than that")
        raise typer.Exit(1)
