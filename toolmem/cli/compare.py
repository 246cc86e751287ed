"""`toolmem compare`: compare two evaluations."""

from __future__ import annotations

from pathlib import Path

import click

from toolmem.cli import options
from toolmem.cli.console import print_json, print_table
from toolmem.research.compare import MAX_SHOWN, Comparison, Shares, named, read_calls
from toolmem.research.compare import compare as compare_calls
from toolmem.text.display import plain


@click.command()
@click.argument("first", metavar="A", type=click.Path(path_type=Path))
@click.argument("second", metavar="B", type=click.Path(path_type=Path))
@options.as_json
def compare(first: Path, second: Path, as_json: bool) -> None:
    """Compare two evaluations, A and B.

    A and B are folders that `toolmem evaluate --out` wrote. For each tool it prints the share of
    calls that worked and the average score, in A and B, and both changes with 95 % intervals. If A
    and B judge the same recording, it also names the rows of calls.csv whose scores differ. Whether
    a call worked is read from its label, else from its flag and answer, not from its score.

    \b
    Examples:
      toolmem evaluate --input calls.jsonl --out rules
      toolmem evaluate --input calls.jsonl --out model llm.default.backend=dashscope
      toolmem compare rules model
      toolmem compare monday tuesday --json
    """
    found = compare_calls(read_calls(first), read_calls(second))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            tool.tool_name or "all of both",
            tool.calls_a,
            tool.calls_b,
            *_cells(tool.worked),
            *_cells(tool.score),
        )
        for tool in found.tools
    ]
    columns = ("calls A", "calls B", "worked A", "B", "change", "score A", "B", "change")
    print_table(("tool", *columns), rows)
    _print_notes(found)


def _print_notes(found: Comparison) -> None:
    """Print the lines below the table."""
    for side, names in (("A", found.only_a), ("B", found.only_b)):
        if names:
            text = f"tools of {side} alone, left out ({len(names)}): {named(names)}"
            click.echo(plain(text, 1_000))
    if not found.is_paired:
        click.echo("the calls differ: the intervals are of unrelated calls")
        return
    click.echo("the same calls: each is compared with itself")
    if found.scored_pairs:
        agreement = "" if found.kappa is None else f", kappa {found.kappa:.3f}"
        others = ", ".join(map(str, found.other_scores[:MAX_SHOWN]))
        look = f"; look at rows {others}" if others else ""
        look += ", ... (--json has all)" if len(found.other_scores) > MAX_SHOWN else ""
        click.echo(
            f"the scores agree on {found.same_scores} of {found.scored_pairs} calls"
            f"{agreement}{look}"
        )


def _cells(shares: Shares) -> tuple[float | None, float | None, str]:
    """The shares of A and B, and their change with its interval."""
    if shares.change is None:
        return shares.a, shares.b, "-"
    if shares.changed == 0:
        return shares.a, shares.b, "no call differs"
    change = f"{shares.change:+.3f} ({shares.low:+.3f} to {shares.high:+.3f})"
    return shares.a, shares.b, change
