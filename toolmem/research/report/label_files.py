"""Files of labels: whether a call worked, as a person says, beside what the judge said. The verdicts stay as they are.

CSV, one call a row: `index` (the record's position in the input, as `row` in calls.csv), `tool_name`, `input`, `output`
(cut), `verdict` (1: the judge saw no failure, 0: it saw one, empty: it cannot tell) and `label` (1 worked, 0 not, empty
not labelled yet). The rows stand in the order in which they were drawn, so that the first so many are a random sample.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolmem.errors import RequestError
from toolmem.models import ToolCallResult
from toolmem.research.report.csv_files import for_spreadsheets, write_rows
from toolmem.research.report.recorded import input_text

COLUMNS = ("index", "tool_name", "input", "output", "verdict", "label")
SHOWN = 4_000  # characters of an output, and of an input
MOST_BYTES = 200_000_000
_WORDS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class LabelRow:
    """One call of a file of labels."""

    index: int
    tool_name: str
    input: str
    output: str
    passed: bool | None  # by the judge
    label: bool | None = None  # whether it worked; None: not labelled yet

    @classmethod
    def of(cls, index: int, call: ToolCallResult, passed: bool | None) -> LabelRow:
        """The call as a person is shown it."""
        return cls(index, call.tool_name, _cut(input_text(call)), _cut(call.output), passed)


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} ... ({len(text):,} characters)"


def write_labels(path: Path, rows: Iterable[LabelRow]) -> None:
    """The file whole, or as it was. Raises RequestError where it cannot be written."""
    part = path.with_name(f"{path.name}.part")
    fields = (
        (row.index, row.tool_name, row.input, row.output, _number(row.passed), _number(row.label)) for row in rows
    )
    try:
        write_rows(COLUMNS, fields, part)
        os.replace(part, path)
    except OSError as error:
        raise RequestError(f"out: {path} cannot be written: {error.strerror}", field="out") from None


def read_labels(path: Path) -> list[LabelRow]:
    """Raises RequestError with the line where it is no file of labels."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise RequestError(f"labels: {path} is larger than {MOST_BYTES:,} bytes", field="labels")
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _read(path, csv.DictReader(file))
    except FileNotFoundError:
        told = f"labels: {path} is not there: `toolmem judge label` draws calls for a person to label"
        raise RequestError(told, field="labels") from None
    except OSError as error:
        raise RequestError(f"labels: {path} cannot be read: {error.strerror}", field="labels") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise RequestError(f"labels: {path} is no CSV file in UTF-8: {error}", field="labels") from None


def _read(path: Path, lines: csv.DictReader[str]) -> list[LabelRow]:
    absent = [name for name in ("index", "tool_name", "label") if name not in (lines.fieldnames or ())]
    if absent:
        raise RequestError(
            f"labels: {path} has no column {absent[0]!r}; expected {', '.join(COLUMNS)}, as `toolmem judge label` "
            "writes them",
            field="labels",
        )
    found: dict[int, LabelRow] = {}
    for line in lines:
        where = f"labels: {path}, line {lines.line_num}"
        text = (line["index"] or "").strip()
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise RequestError(
                f"{where}: index: expected a position in the input, from 0, got {text[:60]!r}", field="labels"
            )
        index = int(text)
        if index in found:
            raise RequestError(f"{where}: index {index} was there before", field="labels")
        found[index] = LabelRow(
            index,
            line["tool_name"] or "",
            line.get("input") or "",
            line.get("output") or "",
            _truth(line.get("verdict"), "verdict", where),
            _truth(line["label"], "label", where),
        )
    return list(found.values())


def labels_of(rows: Sequence[LabelRow], tools: Mapping[int, str], path: Path) -> dict[int, bool]:
    """Whether the call of each labelled row worked. `tools`: the tool of each row of the recording.

    Raises RequestError where the file is of another recording.
    """
    for row in rows:
        if tools.get(row.index) is None:
            raise RequestError(
                f"labels: {path}: the recording has no call at index {row.index}; label the same --input",
                field="labels",
            )
        if for_spreadsheets(tools[row.index]) != for_spreadsheets(row.tool_name):
            raise RequestError(
                f"labels: {path}: index {row.index} is a call of {tools[row.index][:60]!r} in the recording, and of "
                f"{row.tool_name[:60]!r} in the file: were they drawn from another --input?",
                field="labels",
            )
    return {row.index: row.label for row in rows if row.label is not None}


def _number(value: bool | None) -> int | None:
    return None if value is None else int(value)


def _truth(text: str | None, column: str, where: str) -> bool | None:
    word = (text or "").strip().lower()
    if not word:
        return None
    if word not in _WORDS:
        raise RequestError(
            f"{where}: {column}: expected 1 (worked), 0 (did not work) or nothing, got {word[:60]!r}", field="labels"
        )
    return _WORDS[word]
