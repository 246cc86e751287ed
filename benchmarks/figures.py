"""Print the README's table of figures from `results/`.

    python benchmarks/figures.py

A test compares it with the README, so a figure there comes from a result of this tree.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from shared import RESULTS


class Figure(NamedTuple):
    """What is said, and where each `{}` of it stands: a row's beginning and a column."""

    benchmark: str
    table: str
    text: str
    places: tuple[tuple[str, str], ...]


FIGURES = (
    Figure(
        "judge",
        "Failed calls told",
        "Failed calls that the offline judge finds by the output alone, balanced accuracy on "
        "tau-bench, ToolBench, InterCode, OpenHands: {}, {}, {}, {}",
        tuple(
            (name, "balanced accuracy")
            for name in ("tau_bench", "toolbench", "intercode", "openhands")
        ),
    ),
    Figure(
        "guidance",
        "Unwritten conventions",
        "Unwritten conventions of an office that eight tools' guidance states: {}, in {} tokens",
        (("eight cards", "facts"), ("eight cards", "tokens")),
    ),
    Figure(
        "guidance",
        "Lessons",
        "Lessons of labelled failures: guidance names {} of {}, advice {} of {}",
        tuple(
            (f"all, {place}", column) for place in ("card", "advice") for column in ("said", "of")
        ),
    ),
    Figure(
        "cost",
        "intercode",
        "Tokens that a model reads to summarize, where 1.0 reads each call once (InterCode): {} if "
        "summarized after each call, {} after each 10, {} incrementally",
        tuple(
            (name, "times a single pass")
            for name in ("smart skip, 1", "smart skip, 10", "incremental")
        ),
    ),
    Figure(
        "demands",
        "Labelled messages",
        "Demands in {} labelled messages that are kept: {} without a model ({} false), {} with the "
        "notes of a large model ({} false, {} of {} forbidden calls stopped)",
        (
            ("offline", "standing"),
            ("offline", "kept"),
            ("offline", "false"),
            ("with notes", "kept"),
            ("with notes", "false"),
            ("with notes", "stopped"),
            ("with notes", "forbidden"),
        ),
    ),
    Figure(
        "guard",
        "A decision",
        "A decision of the guard with 1,000 rules on 200 tools: {} ms at the median, {} ms at the "
        "99th percentile",
        (("", "p50"), ("", "p99")),
    ),
    Figure(
        "store",
        "Times",
        "Adding one call to a file of 1,000 tools with 100 calls each: {} ms, {} kB",
        (
            ("1,000 tools x 100 calls: one call added, ms", "measured"),
            ("1,000 tools x 100 calls: one call added, kB", "measured"),
        ),
    ),
    Figure(
        "elasticsearch",
        "",
        "Elasticsearch, where the bare client takes 1.0: storing calls of 20 and 200 tools takes "
        "{} and {} (goals 2.0 and 2.2), {} without masking secrets; a search {}",
        tuple(("  time against bare", "measured", str(nth)) for nth in range(1, 5)),
    ),
    Figure(
        "hooks",
        "CPU",
        "CPU that a hook takes before a call, beyond a bare interpreter: {} ms for a file, {} ms "
        "for a shell command (goals 60 and 90)",
        (("a file", "over bare, ms"), ("a shell line", "over bare, ms")),
    ),
    Figure(
        "mcp",
        "300 calls",
        "The MCP proxy adds {} ms to a call at the median (goal 2), and takes {} MB (goal 25)",
        (("a call, five", "added"), ("resident", "added")),
    ),
    Figure(
        "serving",
        "One client",
        "A check over HTTP takes {} times as long as a route that does nothing",
        (("check_tool_call", "p50 beside bare"),),
    ),
)


def told(figure: Figure) -> str:
    """The text with its figures."""
    read = json.loads((RESULTS / f"{figure.benchmark}.json").read_text(encoding="utf-8"))
    (table, *_) = [each for each in read["tables"] if each["title"].startswith(figure.table)]
    found = []
    for begins, column, *nth in figure.places:
        rows = [row for row in table["rows"] if row[0].startswith(begins)]
        found.append(rows[int(nth[0]) - 1 if nth else 0][table["columns"].index(column)])
    return figure.text.format(*found)


def lines() -> list[str]:
    """As the README has them."""
    return [f"* {told(figure)} ({figure.benchmark})" for figure in FIGURES]


if __name__ == "__main__":
    print("\n".join(lines()))
