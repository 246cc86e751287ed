"""Corrected rates as the table that a terminal prints, and as that of the report."""

from __future__ import annotations

from collections.abc import Sequence

from toolmem.pages.numbers import UNKNOWN, count, interval, percent
from toolmem.pages.rendering import Html, part
from toolmem.readers.plain_text import counted
from toolmem.research.report.corrected_rates import OWN_LABELS, CorrectedRate, Counts, rates_of
from toolmem.research.report.findings import Evaluation
from toolmem.research.report.sections import REPORT, note
from toolmem.research.report.summary import PrintedTable

SHOWN_TOOLS = 40
COLUMNS = (
    *("tool", "calls", "by the judge", "corrected", "95 % interval", "labels"),
    *("passed and worked", "failed and did not", "corrected by"),
)


def corrected_table(rates: Sequence[CorrectedRate]) -> PrintedTable:
    """One row for all tools and one per tool (the first 40); the notes give the sentence for all and how to read it."""
    whole, *tools = rates
    rows = tuple(_row(rate) for rate in [whole, *tools[:SHOWN_TOOLS]])
    notes = [
        f"{whole}.",
        "The labels tell how many of the calls that the judge passed worked, and how many of those that it failed.",
    ]
    if any(rate.pooled for rate in tools):
        notes.append(
            f"A tool with fewer than {OWN_LABELS} labels is corrected by the labels of all tools, as if the judge "
            "erred alike on each."
        )
    notes.append("The interval takes the labelled calls as drawn at random, as `judge label` draws them.")
    if len(tools) > SHOWN_TOOLS:
        notes.append(f"{counted(len(tools) - SHOWN_TOOLS, 'more tool')} with fewer calls: --json has all.")
    return PrintedTable("Rates corrected by labels", COLUMNS, rows, frozenset(COLUMNS[1:-1]), tuple(notes))


def corrected_block(evaluation: Evaluation) -> Html:
    """The rates by the judge and corrected by the evaluation's labels; without labels how to get some."""
    rates = rates_of(evaluation)
    if not rates:
        return note(
            "The judge errs at times. Label some calls (`toolmem judge label --ask`) and give the file to "
            "`toolmem evaluate --labels`: the rate corrected by them then stands here, with its interval."
        )
    table = corrected_table(rates)
    return part(REPORT, "corrected", [dict(zip(COLUMNS, row, strict=True)) for row in table.rows], table.notes)


def _row(rate: CorrectedRate) -> tuple[str, ...]:
    (k1, m1), (k0, m0) = rate.of_passed, rate.of_failed
    own = not rate.pooled
    return (
        rate.tool,
        count(rate.calls),
        percent(rate.by_judge),
        percent(rate.rate),
        interval(rate.low, rate.high) if rate.rate is not None else UNKNOWN,
        count(rate.labels),
        _agreement((k1, m1)) if own else UNKNOWN,
        _agreement((m0 - k0, m0)) if own else UNKNOWN,
        "its own labels" if own else "the labels of all tools",
    )


def _agreement(counts: Counts) -> str:
    return f"{counts[0]} of {counts[1]}" if counts[1] else UNKNOWN
