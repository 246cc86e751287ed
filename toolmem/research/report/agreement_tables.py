"""A comparison of judges as tables for a terminal, as JSON, and as rows of a CSV file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from toolmem.pages.numbers import UNKNOWN, count, interval, percent, seconds
from toolmem.pages.rendering import clip
from toolmem.readers.plain_text import counted
from toolmem.readers.proportions import wilson_interval
from toolmem.research.report.agreement import Comparison, Interval, JudgeRun, against_labels, pairs, sides
from toolmem.research.report.recorded import input_text
from toolmem.research.report.summary import PrintedTable

SHOWN_CALLS = 10  # on which judges differ; the CSV file has all
SHOWN_TEXT = 110  # characters of an evaluation


def comparison_tables(comparison: Comparison) -> list[PrintedTable]:
    """Who judged and at what cost; who agrees with whom; who is right by the labels; calls on which they differ."""
    tables = [_judges(comparison), _pairs(comparison)]
    if comparison.labels and comparison.judges_proper:
        tables.append(_against(comparison))
    if comparison.labels and len(comparison.judges_proper) > 1:
        tables.append(_sides(comparison))
    tables.append(_differing(comparison))
    return tables


def _judges(comparison: Comparison) -> PrintedTable:
    columns = (
        *("judge", "judged", "score 1.0", "no verdict", "requests", "prompt tokens", "completion"),
        *("cost", "cost per 1000 calls", "time"),
    )
    rows = [
        (
            run.name,
            count(run.judged),
            percent(run.scores.count(1.0) / run.judged if run.judged else None),
            count(len(run.scores) - run.judged),
            *_spent(run),
            UNKNOWN if run.label else seconds(run.seconds),
        )
        for run in comparison.judges
    ]
    notes = [
        f"{run.name}{f' = {run.identity}' if run.identity else ''}: 0.0 means {run.reading}"
        for run in comparison.judges
    ]
    for run in comparison.judges:
        if run.reused:
            notes.append(f"{run.name}: known already, or those of an identical call: {counted(run.reused, 'verdict')}.")
        if run.prompts_only:
            notes.append(f"{run.name}: nothing was sent; these are the prompts that would be.")
        if run.stopped:
            notes.append(f"{run.name} was stopped: {run.stopped}")
    notes += comparison.notes
    return PrintedTable("Judges", columns, tuple(rows), frozenset(columns[1:]), tuple(notes))


def _spent(run: JudgeRun) -> tuple[str, ...]:
    if run.label:
        return (UNKNOWN,) * 5
    usage = run.usage
    return (
        count(usage.requests),
        count(usage.prompt_tokens),
        count(usage.completion_tokens),
        _money(usage.cost, usage.currency) if usage.requests else "0",
        _money(run.per_thousand(usage.cost), usage.currency) if usage.requests else "0",
    )


def _money(cost: float | None, currency: str) -> str:
    return UNKNOWN if cost is None else f"{cost:.4g} {currency}"


def _pairs(comparison: Comparison) -> PrintedTable:
    columns = (
        *("A", "B", "calls", "both 1.0", "A 1.0, B 0.0", "A 0.0, B 1.0", "both 0.0"),
        *("agreement", "95 %", "kappa", "95 % "),
    )
    rows = [
        (
            pair.first,
            pair.second,
            *map(count, (pair.cells.calls, *asdict(pair.cells).values())),
            percent(pair.agreement),
            _interval(pair.agreement_interval),
            _kappa(pair.kappa),
            UNKNOWN if pair.kappa_interval is None else "{:.2f} to {:.2f}".format(*pair.kappa_interval),
        )
        for pair in pairs(comparison)
    ]
    note = "kappa: agreement beyond what chance gives (Cohen); a dash where all verdicts of both are the same."
    return PrintedTable("Agreement of every two", columns, tuple(rows), frozenset(columns[2:]), (note,))


def _against(comparison: Comparison) -> PrintedTable:
    columns = ("judge", "label", "calls", "zeros found", "ones spared", "balanced accuracy", "95 %")
    rows = [
        (
            found.judge,
            found.label,
            count(found.calls),
            percent(found.found),
            percent(found.spared),
            percent(found.balanced_accuracy),
            _interval(found.interval),
        )
        for found in against_labels(comparison)
    ]
    note = "zeros found: of the label's 0.0, those that the judge scores 0.0; ones spared: the same for 1.0."
    return PrintedTable("Judges by the label", columns, tuple(rows), frozenset(columns[2:]), (note,))


def _sides(comparison: Comparison) -> PrintedTable:
    columns = ("label", "A", "B", "they differ", "label with A", "label with B", "share with B", "95 %")
    rows = []
    for each in sides(comparison):
        total = each.with_first + each.with_second
        share = each.with_second / total if total else None
        rows.append(
            (
                *(each.label, each.first, each.second),
                *map(count, (total, each.with_first, each.with_second)),
                percent(share),
                _interval(wilson_interval(each.with_second, total) if total else None),
            )
        )
    return PrintedTable("Who is right where two differ", columns, tuple(rows), frozenset(columns[3:]))


def _differing(comparison: Comparison) -> PrintedTable:
    positions = comparison.differing()
    columns = ("row", "tool", "judge", "score", "evaluation")
    rows: list[tuple[str, ...]] = []
    for position in positions[:SHOWN_CALLS]:
        head = (str(comparison.rows[position]), comparison.calls[position].tool_name)
        for run in comparison.judges:
            rows.append((*head, run.name, _score(run.scores[position]), clip(run.evaluations[position], SHOWN_TEXT)))
            head = ("", "")
    title = f"Calls on which they differ: {len(positions):,} of {len(comparison.calls):,}"
    left = len(positions) - SHOWN_CALLS
    notes = (f"{left:,} more: --csv FILE has all.",) if left > 0 else ()
    return PrintedTable(title, columns, tuple(rows), frozenset({"row"}), notes)


def _score(score: float | None) -> str:
    return UNKNOWN if score is None else f"{score:.1f}"


def _kappa(kappa: float | None) -> str:
    return UNKNOWN if kappa is None else f"{kappa:.2f}"


def _interval(found: Interval | None) -> str:
    return UNKNOWN if found is None else interval(*found)


# ---------------------------------------------------------------- JSON and CSV


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Everything but the calls themselves; of the calls on which they differ, the rows and what was said of them."""
    return {
        "calls": len(comparison.calls),
        "judges": [
            {
                "name": run.name,
                "identity": run.identity,
                "label": run.label,
                "zero_means": run.reading,
                "judged": run.judged,
                "ones": run.scores.count(1.0),
                "reused": run.reused,
                "seconds": run.seconds,
                "stopped": run.stopped,
                "sent": not (run.label or run.prompts_only),
                "usage": run.usage.model_dump(exclude={"saved_requests", "saved_prompt_tokens"}),
                "cost_per_1000_calls": run.per_thousand(run.usage.cost),
            }
            for run in comparison.judges
        ],
        "pairs": [asdict(pair) for pair in pairs(comparison)],
        "labels": [asdict(found) for found in against_labels(comparison)],
        "sides": [asdict(each) for each in sides(comparison)],
        "differing": [
            {
                "row": comparison.rows[n],
                "tool_name": comparison.calls[n].tool_name,
                "scores": {run.name: run.scores[n] for run in comparison.judges},
                "evaluations": {run.name: run.evaluations[n] for run in comparison.judges},
            }
            for n in comparison.differing()
        ],
        "notes": list(comparison.notes),
        "stopped_by": comparison.stopped_by,
    }


def comparison_rows(comparison: Comparison) -> tuple[list[str], list[Sequence[Any]]]:
    """(columns, one row per call): the call, whether verdicts differ, score and words of each judge, nothing cut."""
    columns = ["row", "tool_name", "differ"]
    for run in comparison.judges:
        columns += [f"{run.name} score", f"{run.name} evaluation"]
    differing = set(comparison.differing())
    rows: list[Sequence[Any]] = []
    for n, call in enumerate(comparison.calls):
        said = [part for run in comparison.judges for part in (run.scores[n], run.evaluations[n])]
        rows.append([comparison.rows[n], call.tool_name, n in differing, *said, input_text(call), call.output])
    return [*columns, "input", "output"], rows
