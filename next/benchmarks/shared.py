"""The shared recordings, and a table for what is measured on them."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from toolmem.formats.records import read_records
from toolmem.models.calls import ToolCallResult

PROJECT = Path(__file__).parents[1]
RECORDINGS = ("tau_bench", "tau2_airline", "toolbench", "intercode", "openhands")


def shared_data() -> Path:
    """The folder of the recordings, which are no part of the project."""
    given = os.environ.get("TOOLMEM_SHARED")
    places = [Path(given)] if given else [PROJECT.parent / "shared", PROJECT.parents[1] / "shared"]
    for place in places:
        if (place / "data").is_dir():
            return place / "data"
    looked = ", ".join(map(str, places))
    raise SystemExit(
        f"no recordings in {looked}: set TOOLMEM_SHARED to the folder that holds data/"
    )


def recorded(path: Path) -> list[Any]:
    """The records of a gzipped JSON Lines file, each with an id."""
    with gzip.open(path) as lines:
        records = [msgspec.json.decode(line) for line in lines]
    return [{"id": str(place), **record} for place, record in enumerate(records)]


def recorded_calls(name: str) -> list[ToolCallResult]:
    """The calls of a shared recording, or of the packaged sample."""
    path = PROJECT / "toolmem" / "data" / "recording.calls.jsonl.gz"
    if name != "sample":
        path = shared_data() / "recorded_calls" / f"{name}.calls.jsonl.gz"
    read = read_records(recorded(path), datetime.now(UTC))
    assert not read.failures, read.failures[:3]
    return [item.call for item in read.calls]


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """The first column is text, the others are numbers."""
    table = [tuple(columns), *(tuple(map(_cell, row)) for row in rows)]
    widths = [max(len(row[at]) for row in table) for at in range(len(columns))]
    for row in table:
        first, *others = zip(row, widths, strict=True)
        print("  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]))


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "-" if value is None else str(value)
