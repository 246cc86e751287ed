"""Write an evaluation as CSV files in which a spreadsheet finds no formula to run."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec.structs import asdict

import toolmem
from toolmem.formats.csv_text import csv_text
from toolmem.formats.files import replace_file
from toolmem.research import tables
from toolmem.research.evaluation import Evaluation


def write_csv_files(found: Evaluation, folder: Path) -> list[Path]:
    """Write the tables and `summary.json`, each whole or not at all. Returns their paths."""
    summary = {
        "toolmem": toolmem.__version__,
        **tables.totals(found),
        "costs": [asdict(row) for row in tables.cost_rows(found.requests)],
    }
    texts = {
        f"{name}.csv": csv_text(tables.columns(table.kind), table.rows(found))
        for name, table in tables.TABLES.items()
        if name not in ("costs", "ledger")  # costs are in summary.json
        and (name != "groups" or found.by)
    }
    texts["summary.json"] = json.dumps(summary, indent=2, ensure_ascii=False) + "\n"
    for name, text in texts.items():
        replace_file(folder / name, text.encode())
    return [folder / name for name in texts]
