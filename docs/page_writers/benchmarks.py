"""The benchmark page, from the results that `make bench` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
IMAGES = ROOT / "docs" / "images"
SUBJECTS = {  # name of the results, and of the program that writes them
    "store": "The embedded store",
    "flows": "Whole flows",
    "recordings": "15,069 recorded calls",
    "start_up": "Start-up",
    "rules": "Rules",
    "model_overhead": "Our side of a request to a model",
    "model_costs": "What judging costs in tokens",
    "summarization_cost": "What summaries cost, and what they buy",
    "guidance_benefit": "What guidance buys",
    "change_detection": "Noticing that a tool has changed",
    "elasticsearch": "Elasticsearch",
    "http_load": "Serving over HTTP",
    "serving": "Serving",
    "mcp_calls": "Serving to an MCP host",
}

_BENCHMARKS = """\
Made by `make bench` on {date}: {cores} cores, Python {python}, SQLite {sqlite}, {system}. The machine is shared, so
seconds are noisy; counts and bytes are exact. This page is written from `benchmarks/results/*.json` by
`python docs/generate.py`.

The peer is ReMe's tool memory (`reme-ai` 0.2.0.6 with `flowllm` 0.2.0.10), measured on a 2-core machine with a scripted
model on loopback. No figure here was made with a paid model.
"""
_AGREEMENT = """\
The recorded `success` flag is withheld from the check and used as the label. The two one-line judges look at the output
alone: it begins with error, traceback or malformed; it holds one of nine words. Per recording, never pooled.
"""
_LIMITS = """\
The check was tuned on half of each recording. On outputs that are unlike these expect less: at first sight of three
lists written to mislead it, its sensitivity was 0.76, 0.75 and 0.91, its specificity 0.72, 0.83 and 0.83. Most of what
it still misses prints nothing at all; most false alarms are complaints of a program whose exit status a pipeline hides.
"""


def benchmarks() -> str:
    machine = json.loads((RESULTS / "machine.json").read_text(encoding="utf-8"))
    lines = [
        "# Benchmarks",
        "",
        _BENCHMARKS.format(**machine),
    ]
    for name, title in SUBJECTS.items():
        path = RESULTS / f"{name}.json"
        if not path.is_file():
            continue
        body = json.loads(path.read_text(encoding="utf-8"))
        lines += [f"## {title}", "", f"`python benchmarks/{name}.py`", ""]
        picture = next((IMAGES / f"{name}{ending}" for ending in (".svg", ".png") if _is_there(name, ending)), None)
        if picture is not None:
            lines += [f"![{title}](images/{picture.name})", ""]
        for each in body.get("tables", []) if isinstance(body, dict) else []:
            lines += [each["title"], "", *_rows(each["columns"], each["rows"]), ""]
        figures = [_figure_row(figure) for figure in figures_of(body)]
        if figures:
            lines += ["| question | value | goal | met | the peer | basis |", "|---|---|---|---|---|---|", *figures, ""]
    lines += _agreement()
    lines += _decrees()
    return "\n".join(lines)


def _is_there(name: str, ending: str) -> bool:
    return (IMAGES / f"{name}{ending}").is_file()


def _rows(columns: list[str], rows: list[list[Any]]) -> list[str]:
    cells = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in [columns, *rows]]
    return [cells[0], "|" + "---|" * len(columns), *cells[1:]]


def _cell(value: Any) -> str:
    """A number with four digits that count; nothing where it is unknown."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value).replace("|", "/")


def figures_of(body: Any) -> list[dict[str, Any]]:
    """The answered questions of a results file, whichever of the forms it has; `met` is "yes", "NO" or ""."""
    found = body if isinstance(body, list) else [*body.get("figures", []), *body.get("goals", [])]
    words = {True: "yes", False: "NO"}
    return [
        {**figure, "met": words.get(figure.get("met"), figure.get("met") or "")}
        for figure in found
        if "question" in figure
    ]


def goal_of(figure: dict[str, Any]) -> str:
    goal, counting = figure.get("goal"), figure.get("counting_only")
    if goal is None:
        return ""
    bound = "at least" if figure.get("at_least") or counting is not None else "at most"
    above = "" if counting is None else f", and above counting only ({counting:.2f})"
    return f"{bound} {goal:g} {figure.get('unit', '')}".rstrip() + above


def _figure_row(figure: dict[str, Any]) -> str:
    unit = figure.get("unit", "")
    shown = goal_of(figure)
    cells = (
        f"{figure['value']:.4g} {unit}",
        shown,
        figure.get("met", ""),
        figure.get("peer", ""),
        figure.get("basis", ""),
    )
    return f"| {figure['question'].strip()} | " + " | ".join(str(cell).replace("|", "/") for cell in cells) + " |"


def _agreement() -> list[str]:
    path = RESULTS / "judge_agreement.json"
    if not path.is_file():
        return []
    body = json.loads(path.read_text(encoding="utf-8"))
    lines = [
        "## How often the rule-based check agrees with recorded labels",
        "",
        "`python benchmarks/judge_agreement.py`",
        "",
    ]
    lines.append(_AGREEMENT)
    lines += [
        "| recording | judge | calls | failures | misses | false alarms | balanced accuracy (95 %) |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in body:
        if row["part"] == "all":
            accuracy = f"{row['balanced_accuracy']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
            lines.append(
                f"| {row['dataset']} | {row['judge']} | {row['calls']} | {row['failures']} | {row['misses']} | "
                f"{row['false_alarms']} | {accuracy} |"
            )
    return [*lines, "", _LIMITS]


def _decrees() -> list[str]:
    path = RESULTS / "decrees.json"
    if not path.is_file():
        return []
    body = json.loads(path.read_text(encoding="utf-8"))
    columns = list(body[0])
    lines = ["## Standing demands told from other sentences", "", "`python benchmarks/decrees.py`", ""]
    lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in body:
        cells = [f"{v:.3f}" if isinstance(v, float) else str("" if v is None else v) for v in row.values()]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]
