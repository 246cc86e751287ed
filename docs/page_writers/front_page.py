"""The tables of the front page, from the results of their benchmark; the rest of the page is written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from page_writers.markdown import table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "README.md"
_BEGIN, _END = "<!-- generated: {} -->", "<!-- end -->"
_SHOWN = ("intercode", "sample")  # the recording with one busy tool; where it was not there, the project's own
_SKIP, _INCREMENTAL, _FRESH = "smart skip, 10 new calls", "incremental, 10 new calls", "always fresh"
_COLUMNS = ("policy", "summaries", "calls read", "times a single pass", "CNY", "later repairs named (95 %)")
_STRICT, _CARD, _PAIRS = "repair coverage, strict", "data-driven, kept up", "pairs"  # as guidance_benefit.py calls them
_BUDGETS = (200, 500)  # tokens of a tool


def front_page() -> str:
    """The page as it is, with its figures as they were measured last."""
    text = PAGE.read_text(encoding="utf-8")
    for part, lines in {"later repairs named": _named(), "what a summary costs": _bill()}.items():
        begin = _BEGIN.format(part)
        before, rest = text.split(begin)
        text = before + "\n".join([begin, "", *lines, "", _END]) + rest.split(_END, 1)[1]
    return text


def _results(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))


def _named() -> list[str]:
    rows = [row for row in _results("guidance_benefit")["rows"] if row["measure"] == _STRICT]
    by_key = {(row["dataset"], row["writer"], row["budget"]): row for row in rows}
    columns = [f"{name}, {tokens} tokens" for tokens in _BUDGETS for name in ("the card", "pairs")]
    lines = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        shown = [by_key[dataset, writer, tokens] for tokens in _BUDGETS for writer in (_CARD, _PAIRS)]
        lines.append([dataset, f"{shown[0]['n']:,}", *map(_share, shown)])
    return [table(("recording", "repaired failures", *columns), lines)]


def _share(row: dict[str, Any]) -> str:
    key = "value" if "value" in row else "coverage"
    return f"{row[key]:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def _bill() -> list[str]:
    results = _results("summarization_cost")
    by_name = {each["recording"]: each for each in results["recordings"]}
    recording = next(by_name[name] for name in _SHOWN if name in by_name)
    rows = table(_COLUMNS, [_row(row) for row in recording["policies"]])
    price = f"{results['price']}. ~: with an estimate of the replies' length."
    return [_title(recording), "", rows, "", _beside(recording), "", price]


def _title(recording: dict[str, Any]) -> str:
    tools = f"of `{recording['tool']}`" if recording["tool"] else f"of {recording['tools']} tools"
    return (
        f"`{recording['recording']}`, {recording['calls']:,} calls {tools}, {recording['repaired']} repaired failures; "
        f"a single pass reads {recording['bound_tokens']:,} tokens:"
    )


def _row(row: dict[str, Any]) -> list[str]:
    read = row.get("share_read")
    return [
        row["policy"],
        f"{row['summaries']:,}",
        "–" if read is None else f"{read:.0%}",
        f"{row['times_single_pass']:.2f}",
        f"~{row['cost_per_1000_calls']:.3f}",
        _share(row),
    ]


def _beside(recording: dict[str, Any]) -> str:
    """What the cheaper policies lost or gained, on the same failures."""
    rows = {row["policy"]: row for row in recording["policies"]}
    beside = rows[_INCREMENTAL]["than_smart_skip_10"]
    difference = beside["difference"]
    named = "fewer repairs than" if difference < 0 else "more repairs than" if difference else "as many repairs as"
    said = {
        "undecided": "undecided: the interval reaches beyond the two points of loss that would be accepted",
        "not inferior": "not inferior at a margin of two points",
        "inferior": "inferior",
    }[beside["verdict"]]
    counting = "more" if rows["counting only"]["coverage"] > rows[_FRESH]["coverage"] else "fewer"
    return (
        f"On `{recording['recording']}` incremental named {named} smart skip at the same ten calls "
        f"({difference:+.3f}, {beside['low']:+.3f} to {beside['high']:+.3f}; {said}), and counting only "
        f"named {counting} ({rows['counting only']['coverage']:.2f}) than the default smart skip after each call "
        f"({rows[_FRESH]['coverage']:.2f})."
    )
