"""`toolmem judge label` and `toolmem judge calibrate`: how often tools really worked, from a few labels by a person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

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
    tell,
)

if TYPE_CHECKING:
    from toolmem.research.calibration import Labelling
    from toolmem.research.report.label_files import LabelRow

Inputs = Annotated[
    list[Path] | None,
    typer.Option("--input", help="A recording; may be given several times. Default: the project's own sample."),
]
FormatName = Annotated[
    str | None, typer.Option("--format", help="calls or openai; recognized by content where not given.")
]
IgnoreSuccess = Annotated[
    bool, typer.Option("--ignore-success", help="Withhold the recorded success flag from the judge.")
]
Workspace = Annotated[str, typer.Option("--workspace", help="Whose verdict cache and usage log are used.")]

LABELS = Path("labels.csv")

_ANSWERS = {"y": True, "yes": True, "1": True, "n": False, "no": False, "0": False, "是": True, "否": False}
_QUESTION = "Did this call do its work? [y]es, [n]o, [s]kip, [q]uit: "


def label(
    overrides: Overrides = None,
    inputs: Inputs = None,
    number: Annotated[
        int, typer.Option("--n", min=1, help="So many calls, those that the file holds among them.")
    ] = 50,
    out: Annotated[Path, typer.Option("--out", help="The file of labels; the labels that it holds stay.")] = LABELS,
    ask: Annotated[
        bool, typer.Option("--ask", help="Show the calls one by one and ask whether they worked; each answer is kept.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Of the random draw.")] = 0,
    format: FormatName = None,
    ignore_success: IgnoreSuccess = False,
    workspace: Workspace = "default",
    config: Config = None,
) -> None:
    """Draw calls at random for a person to label: did they work? `judge calibrate` corrects the judge's rate by that.

    Fill the column `label` (1 worked, 0 not), or answer at the terminal with --ask. A label changes no verdict.

    toolmem judge label --input calls.jsonl --n 50 --out labels.csv --ask
    """
    from toolmem.research.calibration import draw_labels

    with _work(inputs, format, ignore_success, workspace, config, overrides) as work:
        rows = draw_labels(work, number, out, seed=seed)
    if ask:
        _ask(rows, out)
    labelled = sum(row.label is not None for row in rows)
    say(f"{counted(len(rows), 'call')} in {out}, {labelled} of them labelled")
    if len(rows) < number:
        say(f"there are no more calls than {len(rows)}")


def calibrate(
    labels: Annotated[
        Path, typer.Option("--labels", help="What `judge label` wrote, with the column `label` filled.")
    ] = LABELS,
    overrides: Overrides = None,
    inputs: Inputs = None,
    format: FormatName = None,
    ignore_success: IgnoreSuccess = False,
    workspace: Workspace = "default",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Print how often tools worked: by the judge, and corrected by the labels of a person, with a 95 % interval.

    toolmem judge calibrate --input calls.jsonl --labels labels.csv
    """
    from toolmem.research.calibration import calibrate as corrected
    from toolmem.research.report.corrected_rates import corrected_json
    from toolmem.research.report.corrected_tables import corrected_table

    with _work(inputs, format, ignore_success, workspace, config, overrides) as work:
        rates = corrected(work, labels)
    if as_json:
        print_json(corrected_json(rates))
        return
    table = corrected_table(rates)
    print_table(table.title, table.columns, table.rows, numeric=table.numeric, notes=table.notes)


@contextmanager
def _work(
    inputs: list[Path] | None, format: str | None, ignore_success: bool, workspace: str, config: Any, overrides: Any
) -> Iterator[Labelling]:
    require_format(format)
    from toolmem.research.calibration import labelling

    with (
        logs_to_stderr(),
        ProgressLine() as progress,
        labelling(
            inputs or [],
            format=cast("Any", format),
            ignore_success=ignore_success,
            workspace=workspace,
            config=config,
            overrides=overrides or [],
            say=progress.phase,
            listener=progress,
        ) as work,
    ):
        yield work


def _ask(rows: list[LabelRow], out: Path) -> None:
    """One call after the other, in the order drawn; the judge's verdict is not shown, so that it sways nobody."""
    from toolmem.research.calibration import set_label

    waiting = [at for at, row in enumerate(rows) if row.label is None]
    for asked, at in enumerate(waiting, start=1):
        row = rows[at]
        tell(f"\n{asked} of {len(waiting)}: {row.tool_name}\n  input:  {row.input}\n  output: {row.output}")
        while (answer := _answer()) not in ("", "q", "quit", "s", "skip", *_ANSWERS):
            tell("y, n, s or q")
        if answer in ("", "q", "quit"):
            return
        if answer in _ANSWERS:
            set_label(rows, at, _ANSWERS[answer], out)


def _answer() -> str:
    """ "" at the end of the input."""
    try:
        return input(_QUESTION).strip().lower() or " "
    except EOFError:
        return ""
