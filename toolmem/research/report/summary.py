"""The tables that `toolmem evaluate` prints, as plain rows of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolmem.pages.numbers import UNKNOWN, count, interval, percent, score, seconds
from toolmem.readers.plain_text import counted
from toolmem.research.report.corrected_rates import rates_of
from toolmem.research.report.findings import Evaluation
from toolmem.research.report.recorded import tools_rows, totals
from toolmem.research.report.savings import runs_rows, spending_note
from toolmem.research.report.sections import NEITHER

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """What a terminal prints: texts only. `numeric` columns are aligned right."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[str] = frozenset()
    notes: tuple[str, ...] = field(default=())


def frame_table(title: str, frame: pd.DataFrame, notes: Sequence[str], *, decimals: int) -> PrintedTable:
    """A frame as a terminal prints it: separators between thousands, fractions with so many `decimals`."""
    from pandas.api.types import is_numeric_dtype

    rows = tuple(tuple(_cell(value, decimals) for value in row) for row in frame.itertuples(index=False, name=None))
    numeric = frozenset(name for name in frame.columns if is_numeric_dtype(frame[name]))
    return PrintedTable(title, tuple(frame.columns), rows, numeric, tuple(notes))


def _cell(value: Any, decimals: int) -> str:
    if value in ("", None) or value != value:  # not a number, or no time
        return UNKNOWN
    if isinstance(value, float):
        return f"{value:,.{decimals}f}"
    if isinstance(value, int):
        return count(value)
    return str(value) if isinstance(value, str) else f"{value:%Y-%m-%d %H:%M}"


def summary_table(evaluation: Evaluation, limit: int = 40) -> PrintedTable:
    """One row per tool (the `limit` with most calls), all recorded calls; notes name the judge and what is left out."""
    tools = tools_rows(evaluation)
    shown = tools[:limit]
    columns = ("tool", "calls", "worked", "rate", "95 % interval", "by the flag", "score", "time", "tokens")
    rows = tuple(
        (
            str(tool["tool_name"]),
            count(tool["calls"]),
            count(tool["worked"]),
            percent(tool["worked_rate"]),
            interval(tool["worked_low"], tool["worked_high"]),
            percent(tool["success_rate"]),
            score(tool["avg_score"]),
            seconds(tool["avg_time_cost"]),
            count(tool["avg_token_cost"]),
        )
        for tool in shown
    )
    notes = [_rates(evaluation), f"Judge: {evaluation.judge}. {evaluation.judge_meaning}"]
    if rates := rates_of(evaluation):
        notes.append(f"{rates[0]}.")
    if evaluation.ignore_success and any(call.success is not None for call in evaluation.calls):
        notes.append("The recorded flag was withheld from the judge (score), and counts in this table.")
    if len(tools) > len(shown):
        notes.append(f"{counted(len(tools) - len(shown), 'more tool')} with fewer calls: tools.csv has all.")
    unknown, unscored = (sum(tool[name] for tool in tools) for name in ("unknown", "unscored"))
    if unknown:
        notes.append(f"Left out of the success rates, because the outcome is not known: {counted(unknown, 'call')}.")
    if unscored:
        notes.append(f"Without a score: {counted(unscored, 'call')}.")
    if evaluation.failures:
        notes.append(
            f"{counted(len(evaluation.failures), 'record')} could not be used (summary.json names what and why)."
        )
    return PrintedTable("Tools, all recorded calls", columns, rows, frozenset(columns[1:]), tuple(notes))


def _rates(evaluation: Evaluation) -> str:
    """What `worked` means, and by how much the rate by the flag differs, over all calls."""
    total = totals(evaluation)
    said = f"Worked: {NEITHER}; {percent(total['worked_rate'])} of all calls."
    if not total["flag_wrong"]:
        return said
    wrong = counted(total["flag_wrong"], "call")
    return f"{said} By the flag {percent(total['success_rate'])}: it passes {wrong} that the judge saw fail."


def skip_table(evaluation: Evaluation) -> PrintedTable:
    """One row per summary run: tools summarized and skipped, requests and tokens spent and avoided."""
    columns = (
        "summary run",
        "summarized",
        "skipped",
        "failed",
        "requests",
        "tokens",
        "requests avoided",
        "tokens avoided",
        "seconds",
    )
    rows = tuple(
        (
            str(run["run"]),
            count(run["summarized"]),
            count(run["skipped"]),
            count(run["failed"]),
            count(run["requests"]),
            count(run["prompt_tokens"] + run["completion_tokens"]),
            count(run["saved_requests"]),
            count(run["saved_prompt_tokens"]),
            f"{run['seconds']:.2f}",
        )
        for run in runs_rows(evaluation)
    )
    note = spending_note(evaluation).replace("`", "")
    return PrintedTable("What the skip saved", columns, rows, frozenset(columns[1:]), (note,))


def spending_table(evaluation: Evaluation) -> PrintedTable | None:
    """One row per op that asks models; None where nothing was asked or counted."""
    if not evaluation.spent:
        return None
    columns = ("op", "requests", "prompt tokens", "completion tokens", "cost")
    rows = tuple(
        (
            op,
            count(usage.requests),
            count(usage.prompt_tokens),
            count(usage.completion_tokens),
            UNKNOWN if usage.cost is None else f"{usage.cost:.4g} {usage.currency}",
        )
        for op, usage in evaluation.spent.items()
    )
    notes = []
    if evaluation.backend == "dry_run":
        notes.append("Counted, not sent. The cost is that of the prompts; replies come on top.")
    if any(usage.cost is None for usage in evaluation.spent.values()):
        notes.append("A dash in place of a cost: no price is configured (prices.<model>.input and .output).")
    return PrintedTable("Requests to models", columns, rows, frozenset(columns[1:]), tuple(notes))
