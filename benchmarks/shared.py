"""The shared recordings, and a table for what is measured on them."""

from __future__ import annotations

import gzip
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from toolmem.formats.records import read_records
from toolmem.judge.check import check
from toolmem.models.calls import ToolCallResult

PROJECT = Path(__file__).parents[1]
RESULTS = PROJECT / "benchmarks" / "results"
RECORDINGS = ("tau_bench", "tau2_airline", "toolbench", "intercode", "openhands")

_program = getattr(sys.modules["__main__"], "__file__", None) or ""  # a test only imports
if Path(_program).resolve().parent == PROJECT / "benchmarks":
    # A store that is made is noted as trusted in the home: a benchmark has a home of its own.
    _home = tempfile.TemporaryDirectory(prefix="toolmem-benchmark-")
    os.environ.update(HOME=_home.name, XDG_STATE_HOME=f"{_home.name}/state")


def shared_data() -> Path:
    """The folder of the recordings, which are no part of the project."""
    given = os.environ.get("TOOLMEM_SHARED")
    place = Path(given) if given else PROJECT.parent / "shared"
    if (place / "data").is_dir():
        return place / "data"
    raise SystemExit(f"no recordings in {place}: set TOOLMEM_SHARED to the folder that holds data/")


def recorded(path: Path) -> list[Any]:
    """The records of a gzipped JSON Lines file, each with an id."""
    with gzip.open(path) as lines:
        records = [msgspec.json.decode(line) for line in lines]
    return [{"id": str(place), **record} for place, record in enumerate(records)]


def recorded_of(name: str) -> list[Any]:
    """The records of a shared recording, or of the packaged sample."""
    if name == "sample":
        return recorded(PROJECT / "toolmem" / "data" / "recording.calls.jsonl.gz")
    return recorded(shared_data() / "recorded_calls" / f"{name}.calls.jsonl.gz")


def recorded_calls(name: str) -> list[ToolCallResult]:
    """The calls of a shared recording, or of the packaged sample."""
    read = read_records(recorded_of(name), datetime.now(UTC))
    assert not read.failures, read.failures[:3]
    return [item.call for item in read.calls]


@cache
def judged_calls(name: str) -> list[ToolCallResult]:
    """The same with the verdicts of the rule-based judge."""
    return [call.judged(check(call)) for call in recorded_calls(name)]


def repair_labels() -> dict[str, list[Any]]:
    """What a reader says of failures, by recording: which call repaired it, and the lesson."""
    folder = shared_data() / "repairs"
    labels = {
        path.name.partition(".")[0]: [json.loads(line) for line in path.open(encoding="utf-8")]
        for path in sorted(folder.glob("*.repairs.jsonl"))
    }
    if not labels:
        raise SystemExit(f"no labelled failures in {folder}: TOOLMEM_SHARED holds other data")
    return labels


class Table(NamedTuple):
    """Figures with their basis: the first column is text, the others are numbers or short text."""

    title: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]


def publish(name: str, title: str, *tables: Table) -> None:
    """Print the tables, and write them with commit, date and machine to `results/NAME.json`."""
    told: dict[str, Any] = {"name": name, "title": title, "commit": commit()}
    told |= {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine(), "tables": []}
    print(f"{title} ({told['commit']}, {told['machine']})")
    for table in tables:
        rows = [tuple(map(cell, row)) for row in table.rows]
        told["tables"].append({"title": table.title, "columns": table.columns, "rows": rows})
        print(f"\n{table.title}")
        print_table(table.columns, rows)
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(told, indent=1, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def commit() -> str:
    """Of this tree; "+" where it holds changes that are not committed."""
    git = ["git", "-C", str(PROJECT)]
    told = [
        subprocess.run([*git, *rest], capture_output=True, text=True).stdout.strip()
        for rest in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "toolmem"])
    ]
    return f"{told[0]}{'+' if told[1] else ''}"


def machine() -> str:
    system = f"{platform.system()} {platform.machine()}"
    return f"{os.cpu_count()} cores, {system}, Python {platform.python_version()}"


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """The first column to the left, the others to the right."""
    table = [tuple(columns), *rows]
    widths = [max(len(row[at]) for row in table) for at in range(len(columns))]
    for row in table:
        first, *others = zip(row, widths, strict=True)
        print("  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]))


def cell(value: Any) -> str:
    """A number as it is shown."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}"
    return "-" if value is None else str(value)
