"""Write an evaluation as CSV files that a spreadsheet opens without running anything."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from toolmem.research.evaluation import Evaluated

_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠\t\r]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)

CALL_FIELDS = (
    *("id", "tool_name", "create_time", "input", "output", "success", "score"),
    *("execution_failed", "error_class", "summary", "evaluation", "evaluation_status"),
    *("time_cost", "token_cost", "conversation_id"),
)
TOOL_FIELDS = ("tool_name", "calls_ever", "new_calls")
FIGURES = ("calls", "success_rate", "avg_score", "avg_time_cost", "avg_token_cost")


def write_csv_files(found: Evaluated, folder: Path) -> list[Path]:
    """Write `calls.csv`, `tools.csv` and `errors.csv`. Returns their paths."""
    calls = ([getattr(call, name) for name in CALL_FIELDS] for call in found.calls)
    tools = (
        [getattr(tool, name) for name in TOOL_FIELDS]
        + [getattr(tool.window, name) for name in FIGURES]
        + [tool.guidance]
        for tool in found.tools
    )
    errors = ([each.line, each.tool_name, each.error] for each in found.bad_records)
    return [
        _write(folder / "calls.csv", CALL_FIELDS, calls),
        _write(folder / "tools.csv", (*TOOL_FIELDS, *FIGURES, "guidance"), tools),
        _write(folder / "errors.csv", ("line", "tool_name", "error"), errors),
    ]


def _write(path: Path, header: Sequence[str], rows: Iterable[Iterable[Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([cell(value) for value in row] for row in rows)
    return path


def cell(value: Any) -> str:
    """A value as a cell; text that a spreadsheet would run as a formula gets an apostrophe."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool | int | float):
        return str(value)
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = text.replace("\0", "\ufffd")
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return "'" + text
    return text
