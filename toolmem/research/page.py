"""Write `report.html`: one file that loads nothing, failures first.

Text of calls is escaped, cut, on one line and without invisible characters. The page is bounded;
it counts what it leaves out, which is in the CSV files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

import toolmem
from toolmem.formats.files import replace_file
from toolmem.guidance.shown import BULLET
from toolmem.research import tables
from toolmem.research.evaluation import Evaluation
from toolmem.text.display import plain

NOTEBOOK = "01_evaluate_tool_calls.md"
MAX_TOOLS = 100
MAX_ERRORS = 30
MAX_RULES = 50
MAX_BAD_RECORDS = 20
MAX_NAME, MAX_TEXT = 80, 300  # characters of a tool's name, and of another text


class Shown(Struct):
    """The rows that the page shows, and how many it leaves out."""

    rows: Sequence[Any]
    left_out: int


def write_page(found: Evaluation, folder: Path) -> Path:
    """Write the page. Returns its path."""
    notebook = Path(toolmem.__file__).parents[1] / "notebooks" / NOTEBOOK
    address = quote(os.path.relpath(notebook, folder)) if notebook.exists() else ""
    path = folder / "report.html"
    replace_file(path, page(found, address).encode())
    return path


def page(found: Evaluation, notebook: str = "") -> str:
    """The page as HTML. `notebook`: the address of the notebook with the same tables; "": none."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("toolmem.research"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        name=lambda text: plain(text, MAX_NAME),
        text=lambda text: plain(text, MAX_TEXT),
        percent=lambda share: "unknown" if share is None else f"{100 * share:.1f} %",
        number=_number,
    )
    tools = tables.tool_rows(found)
    records = {record.tool_name: record for record in found.tools}
    cards = []
    for row in tools:
        record = records.get(row.tool_name)
        if record is not None and record.guidance:
            lines = filter(None, record.guidance.text.splitlines())
            cards.append((row.tool_name, [line.removeprefix(BULLET) for line in lines]))
    return environment.get_template("report.html.j2").render(
        totals=tables.totals(found),
        tools=_first(tools, MAX_TOOLS),
        errors=_first(tables.error_rows(found), MAX_ERRORS),
        rules=_first(tables.rule_rows(found), MAX_RULES),
        cards=_first(cards, MAX_TOOLS),
        runs=[("First", found.summary), ("Second, nothing new", found.second_summary)],
        bad_records=_first(found.bad_records, MAX_BAD_RECORDS),
        costs=tables.cost_rows(found.requests),
        notebook=notebook,
        notebook_name=NOTEBOOK,
    )


def _first(rows: Sequence[Any], limit: int) -> Shown:
    return Shown(rows[:limit], max(0, len(rows) - limit))


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return "<0.001" if 0 < value < 0.001 else f"{value:.3g}"
