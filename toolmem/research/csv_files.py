"""Write an evaluation as CSV files in which a spreadsheet finds no formula to run."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

import toolmem
from toolmem.formats.files import replace_file
from toolmem.research import tables
from toolmem.research.evaluation import Evaluation

_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠\t\r]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)


def write_csv_files(found: Evaluation, folder: Path) -> list[Path]:
    """Write the tables and `summary.json`, each whole or not at all. Returns their paths."""
    summary = {
        "toolmem": toolmem.__version__,
        **tables.totals(found),
        "costs": [asdict(row) for row in tables.cost_rows(found.requests)],
    }
    texts = {
        f"{name}.csv": csv_text(table.rows(found), table.kind)
        for name, table in tables.TABLES.items()
        if name not in ("costs", "ledger")  # costs are in summary.json
        and (name != "groups" or found.by)
    }
    texts["summary.json"] = json.dumps(summary, indent=2, ensure_ascii=False) + "\n"
    for name, text in texts.items():
        replace_file(folder / name, text.encode())
    return [folder / name for name in texts]


def csv_text(rows: Sequence[Struct], kind: type[Struct]) -> str:
    """A header with the fields of `kind`, then the rows. Lines end as RFC 4180 says.

    With "\\n" alone, Python before 3.13 leaves a lone "\\r" in a text unquoted.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    names = tables.columns(kind)
    writer.writerow(names)
    writer.writerows([cell(getattr(row, name)) for name in names] for row in rows)
    return text.getvalue()


def cell(value: Any) -> str:
    """A value as a cell; text that a spreadsheet would run as a formula gets an apostrophe."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    text = str(value).replace("\0", "\ufffd")
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return "'" + text
    return text
