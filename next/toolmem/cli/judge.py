"""`toolmem judge`: a judge beside people's labels, and beside another judge."""

from __future__ import annotations

from pathlib import Path

import click

from toolmem.cli import options
from toolmem.cli.console import number
from toolmem.formats.recording import read_labels
from toolmem.research.csv_files import csv_text, write_whole
from toolmem.research.labels import (
    Difference,
    ToLabel,
    calibrated,
    compared,
    read_scored,
    sample_to_label,
)

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group()
def judge() -> None:
    """Compare verdicts with people's labels, or with another judge's."""


@judge.command()
@click.argument("report", type=_FOLDER)
@click.option("--out", type=_FILE, default="labels.csv", show_default=True)
@click.option("--size", default=100, show_default=True, help="Calls to label.")
@click.option("--seed", default=0, show_default=True, help="Of the random choice.")
def label(report: Path, out: Path, size: int, seed: int) -> None:
    """Choose calls of a report to label by hand: 1 worked, 0 did not.

    \b
    Example:
      toolmem judge label report --size 60
    """
    if out.exists():
        raise click.UsageError(f"--out: {out} is there already, perhaps with labels")
    rows = sample_to_label(read_scored(report), size, seed)
    write_whole(out, csv_text(rows, ToLabel))
    click.echo(f"{out}: {len(rows)} calls; fill in the column label")


@judge.command()
@click.argument("report", type=_FOLDER)
@click.option("--labels", type=click.Path(exists=True), required=True)
@options.as_json
def calibrate(report: Path, labels: str, as_json: bool) -> None:
    """Correct a report's success rate by labels, with a 95 % interval.

    \b
    Example:
      toolmem judge calibrate report --labels labels.csv
    """
    found = calibrated(read_scored(report), read_labels(labels))
    if as_json:
        options.print_json(found)
        return
    wrong = f"{found.disagreements} judged wrong"
    click.echo(f"{found.calls} calls, {found.labelled} labelled, {wrong}")
    corrected = f"{number(found.corrected)} ({number(found.low)} to {number(found.high)})"
    click.echo(f"success rate {number(found.rate)}, corrected {corrected}")


@judge.command()
@click.argument("report", type=_FOLDER)
@click.argument("other", type=_FOLDER)
@click.option("--out", type=_FILE, help="A CSV file of the calls on which they differ.")
@options.as_json
def compare(report: Path, other: Path, out: Path | None, as_json: bool) -> None:
    """Compare the judges of two reports of one recording.

    \b
    Example:
      toolmem evaluate --out again llm.default.backend=dashscope
      toolmem judge compare report again --out differences.csv
    """
    found = compared(read_scored(report), read_scored(other))
    if out is not None:
        write_whole(out, csv_text(found.differences, Difference))
    if as_json:
        options.print_json(found)
        return
    kappa = number(found.kappa)
    click.echo(f"{found.agreed} of {found.calls} verdicts agree; Cohen's kappa {kappa}")
