"""Write the report of an evaluation: `report.html` and CSV files.

`report.html` is one file that loads nothing, with failures first. Text of calls is escaped, cut, on
one line and without invisible characters. The page is bounded: it counts the rows that it leaves
to the CSV files.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import asdict

import toolmem
from toolmem.files import replace_file
from toolmem.formats.csv_text import csv_text
from toolmem.guidance.shown import BULLET, main_failure
from toolmem.operations.results import Summarized
from toolmem.pages.html import environment
from toolmem.research import tables
from toolmem.research.evaluation import Evaluation

NOTEBOOK = "01_evaluate_tool_calls.md"
MAX_TOOLS = 1000  # and cards: about 2 MB, which a phone opens
MAX_GROUPS = 100
MAX_ERRORS = 30
MAX_RULES = 50
MAX_BAD_RECORDS = 20
MAX_FIRST = 5  # tools to fix first
MAX_KINDS = 3  # kinds of errors that are named for each of these


class Shown(Struct):
    """The rows that the page shows, and how many it leaves out."""

    rows: Sequence[Any]
    left_out: int


def write_page(evaluation: Evaluation, folder: Path) -> Path:
    """Write `report.html` into `folder`. Returns its path."""
    notebook = Path(toolmem.__file__).parents[1] / "notebooks" / NOTEBOOK
    address = quote(os.path.relpath(notebook, folder)) if notebook.exists() else ""
    path = folder / "report.html"
    replace_file(path, page(evaluation, address).encode())
    return path


def write_csv_files(evaluation: Evaluation, folder: Path) -> list[Path]:
    """Write the tables as CSV files, and `summary.json`. Returns their paths.

    Each is replaced whole or not at all. What a spreadsheet would run gets an apostrophe before it.
    """
    summary = {
        "toolmem": toolmem.__version__,
        **tables.totals(evaluation),
        "costs": [asdict(row) for row in tables.cost_rows(evaluation.requests)],
    }
    texts = {
        f"{name}.csv": csv_text(tables.columns(table.kind), table.rows(evaluation))
        for name, table in tables.TABLES.items()
        if name not in ("costs", "ledger")  # costs are in summary.json
        and (name != "groups" or evaluation.by)
    }
    texts["summary.json"] = json.dumps(summary, indent=2, ensure_ascii=False) + "\n"
    for name, text in texts.items():
        replace_file(folder / name, text.encode())
    return [folder / name for name in texts]


def page(evaluation: Evaluation, notebook: str = "") -> str:
    """Return the report as HTML. `notebook`: the address of one with the same tables; "": none."""
    tools = tables.tool_rows(evaluation)
    texts = {each.tool_name: each.guidance.text for each in evaluation.tools if each.guidance}
    cards = [
        (name, [line.removeprefix(BULLET) for line in texts[name].splitlines() if line])
        for name in (row.tool_name for row in tools)
        if name in texts
    ]
    numbers = {name: number for number, (name, _) in enumerate(cards[:MAX_TOOLS])}
    groups = [row for row in tables.group_rows(evaluation) if not row.tool_name]
    script = (Path(__file__).parent / "templates/report.js").read_text(encoding="utf-8")
    template = environment("toolmem.research").get_template("report.html.j2")
    return template.render(
        first=_first_to_fix(evaluation, tools),
        lost=sum(map(_lost_calls, tools)),
        card_of=lambda tool, outcome="": f"#card-{numbers[tool]}" if tool in numbers else "",
        totals=tables.totals(evaluation),
        tools=_cut(tools, MAX_TOOLS),
        groups=_cut(groups, MAX_GROUPS),
        disputed=tables.disputed(evaluation),
        errors=_cut(tables.error_rows(evaluation), MAX_ERRORS),
        rules=_cut(tables.rule_rows(evaluation), MAX_RULES),
        cards=_cut(cards, MAX_TOOLS),
        runs=_runs(evaluation),
        bad_records=_cut(evaluation.bad_records, MAX_BAD_RECORDS),
        costs=tables.cost_rows(evaluation.requests),
        notebook=notebook,
        notebook_name=NOTEBOOK,
        script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
    )


def _runs(evaluation: Evaluation) -> list[tuple[str, Summarized, int, int]]:
    """Both summaries: title, result, and the prompt tokens that it sent and saved."""
    runs = []
    for run, title, summary in (
        ("first", "First", evaluation.summary),
        ("second", "Second, nothing new", evaluation.second_summary),
    ):
        rows = [row for row in tables.skip_rows(evaluation) if row.run == run]
        sent = sum(row.sent_prompt_tokens for row in rows)
        runs.append((title, summary, sent, sum(row.saved_prompt_tokens for row in rows)))
    return runs


def _cut(rows: Sequence[Any], limit: int) -> Shown:
    return Shown(rows[:limit], max(0, len(rows) - limit))


def _lost_calls(row: tables.ToolRow) -> int:
    return row.failures + row.no_use


def _first_to_fix(evaluation: Evaluation, tools: Sequence[tables.ToolRow]) -> list[dict[str, Any]]:
    """Find the tools that lost most calls, their main failure, and when they failed."""
    guidance = {record.tool_name: record.guidance for record in evaluation.tools}
    rows = []
    for row in sorted(tools, key=_lost_calls, reverse=True)[:MAX_FIRST]:
        calls = [each for each in evaluation.calls if each.call.tool_name == row.tool_name]
        kinds = Counter(each.call.error_class or "error" for each in calls if each.outcome is False)
        more = {
            "kinds": ", ".join(f"{count} {name}" for name, count in kinds.most_common(MAX_KINDS)),
            "why": main_failure(guidance.get(row.tool_name)),
            "trend": [each.outcome is False for each in calls],
        }
        rows += [asdict(row) | more] if _lost_calls(row) else []
    return rows
