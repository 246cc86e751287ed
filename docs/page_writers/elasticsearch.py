"""The figures of the page on Elasticsearch, from the results that its benchmark wrote; the rest is written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "elasticsearch.md"
RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
_BEGIN, _END = "<!-- figures: from benchmarks/results/elasticsearch.json -->", "<!-- end of figures -->"

_SIZES = (
    "1 million calls of the recording",
    "1 million ids given by callers",
    "1 million cached verdicts",
    "1,000 tools without guidance",
    "flat: 1,000 tools with guidance",
    "int8_hnsw: 1,000 tools with guidance",
)
_EXAMPLE = """\
So 10 million calls of 2,000 tools with guidance under `flat`, every verdict cached, need about {one:.1f} GB, and with
one replica {two:.1f} GB: the sum of the rows above. Calls that have left the window (`keep`) stay in the log of their
workspace, up to `log.max_calls` and `log.max_bytes`, and are deleted then; the disk follows when segments are merged,
so leave as much again free.
"""


def elasticsearch() -> str:
    """The page as it is, with its figures as they were measured last."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(_BEGIN)
    _, after = rest.split(_END)
    path = RESULTS / "elasticsearch.json"
    if not path.is_file():
        return text
    figures = {each["question"].strip(): each for each in json.loads(path.read_text(encoding="utf-8"))}
    return "\n".join([before + _BEGIN, "", *_tables(figures), _END]) + after


def _tables(figures: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["| on the disk, per copy | |", "|---|---|"]
    lines += [f"| {name} | {_number(figures[name]['value'])} MB |" for name in _SIZES]
    per_million, verdicts, tools = (figures[_SIZES[n]]["value"] for n in (0, 2, 4))
    one = (10 * (per_million + verdicts) + 2 * tools) / 1000
    lines += ["", *_EXAMPLE.format(one=one, two=2 * one).splitlines(), ""]
    lines += ["| on this machine | | goal | met | |", "|---|---|---|---|---|"]
    for name, each in figures.items():
        if name not in _SIZES:
            goal = "" if each["goal"] is None else f"at most {each['goal']:g}"
            value = f"{_number(each['value'])} {each['unit']}"
            lines.append(f"| {name} | {value} | {goal} | {each['met']} | {each['basis']} |")
    return [*lines, ""]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
