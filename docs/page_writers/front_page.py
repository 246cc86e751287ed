"""The table of the front page, from the results that its benchmark wrote; the rest of the page is written by hand."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "README.md"
_BEGIN, _END = "<!-- generated: what a summary costs -->", "<!-- end -->"
_COLUMNS = {
    "policy": "policy",
    "summaries": "summaries",
    "input tokens": "input tokens",
    "times a single pass": "times a single pass over the calls",
    "CNY per 1000 calls": "CNY",
    "repair coverage (95 %)": "later repairs named (95 %)",
}


def front_page() -> str:
    """The page as it is, with its figures as they were measured last."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(_BEGIN)
    after = rest.split(_END, 1)[1]
    return before + "\n".join([_BEGIN, "", *_table(), "", _END]) + after


def _table() -> list[str]:
    results = json.loads((ROOT / "benchmarks/results/summarization_cost.json").read_text(encoding="utf-8"))
    table = results["tables"][0]
    places = [table["columns"].index(name) for name in _COLUMNS]
    lines = [f"| {' | '.join(_COLUMNS.values())} |", "|---" * len(places) + "|"]
    lines += [f"| {' | '.join(row[place] for place in places)} |" for row in table["rows"]]
    return [*lines, "", f"Basis: {table['title']}. {results['price']}. ~: with an estimate of the replies' length."]
