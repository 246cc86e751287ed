"""Read whole recordings: files of calls or of conversations become tool calls, in their order."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from toolmem.errors import RequestError
from toolmem.formats.chat import is_conversation, records_of
from toolmem.formats.files import Line, read_json, read_lines
from toolmem.formats.records import read_records, read_schemas
from toolmem.models.calls import ToolCallResult

Format = Literal["calls", "openai"]


class BadRecord(Struct, frozen=True):
    """A record that could not be read. `line` from 1; of a conversation, the line that it is on."""

    line: int
    tool_name: str
    error: str


class Recording(Struct):
    """The readable calls, each with its row (from 0, bad records counted) and its line."""

    calls: list[ToolCallResult] = msgspec.field(default_factory=list)
    rows: list[int] = msgspec.field(default_factory=list)
    lines: list[int] = msgspec.field(default_factory=list)
    bad: list[BadRecord] = msgspec.field(default_factory=list)
    tools: list[Any] = msgspec.field(default_factory=list)  # declarations in conversations
    notes: list[str] = msgspec.field(default_factory=list)  # what was left out or guessed


def read_recording(
    paths: Sequence[str | os.PathLike[str]],
    now: datetime,
    *,
    format: Format | None = None,
    limit: int | None = None,
) -> Recording:
    """Read files in order. `format` None: recognized line by line. Raises RequestError.

    They are JSON Lines, also gzipped; one that ends in .json may hold one list. `limit`: records.
    """
    reader = _Reader(format)
    for path in paths:
        for line in _lines(path):
            if limit is not None and len(reader.lines) >= limit:
                break
            reader.take(line)
    return reader.recording(now, limit)


class _Reader:
    def __init__(self, format: Format | None) -> None:
        self.lines: list[Line] = []  # of each record; those of a conversation have its number
        self._format = format
        self._bad: list[BadRecord] = []
        self._tools: dict[str, Any] = {}
        self._ids: dict[str, int] = {}
        self._counts: Counter[str] = Counter()  # of the notes

    def take(self, line: Line) -> None:
        is_chat = self._format == "openai" or (self._format is None and is_conversation(line.value))
        if line.error or not is_chat:
            self.lines.append(line)
        elif is_conversation(line.value):
            self._take_chat(line)
        else:
            problem = "no conversation: expected an object with a list `messages`"
            self._bad.append(BadRecord(line.number, "", problem))

    def _take_chat(self, line: Line) -> None:
        records, chat = records_of(line.value, self._ids)
        self.lines += [Line(line.number, record) for record in records]
        self._bad += [BadRecord(line.number, "", problem) for problem in chat.problems]
        unanswered = len(chat.calls) - len(records)
        self._counts["calls without an answer were left out"] += unanswered
        by_order = "answers without an id were assigned by their order alone"
        self._counts[by_order] += chat.order_decided
        body = line.value if isinstance(line.value, Mapping) else {}
        declared = body.get("tools")
        for tool in declared if isinstance(declared, list) else ():
            try:
                (name,) = read_schemas([tool])
                self._tools.setdefault(name, tool)
            except RequestError:
                self._counts["declarations of tools could not be read"] += 1

    def recording(self, now: datetime, limit: int | None) -> Recording:
        lines = self.lines[:limit]
        read = read_records([line.value for line in lines], now)
        found = Recording(bad=self._bad, tools=list(self._tools.values()))
        for failure in read.failures:
            line = lines[failure.index]
            problem = line.error or failure.error
            found.bad.append(BadRecord(line.number, failure.tool_name, problem))
        for row, call in read.calls:
            found.calls.append(call)
            found.rows.append(row)
            found.lines.append(lines[row].number)
        found.bad.sort(key=lambda bad: bad.line)
        found.notes = [f"{count} {what}" for what, count in self._counts.items() if count]
        if found.calls and not any(call.conversation_id for call in found.calls):
            found.notes.append("no call names its conversation, so no repair is told")
        return found


def _lines(path: str | os.PathLike[str]) -> Iterator[Line]:
    if os.fspath(path).endswith(".json"):
        try:
            value = read_json(Path(path).read_bytes())
        except (OSError, RequestError) as error:
            raise RequestError(f"{os.fspath(path)}: {error}", field="input") from error
        many = value if isinstance(value, list) and not is_conversation(value) else [value]
        yield from (Line(number, each) for number, each in enumerate(many, 1))
    else:
        yield from read_lines(path)


def read_labels(path: str | os.PathLike[str]) -> dict[int, bool]:
    """Whether calls worked, by row: a CSV file with `index` and `label` (1 worked, 0 did not).

    Rows without a label are left out. Raises RequestError.
    """
    labels: dict[int, bool] = {}
    number = 1  # the heading
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                number += 1
                label = (row.get("label") or "").strip()
                if label:
                    labels[int(row["index"])] = {"1": True, "0": False}[label]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RequestError(f"{os.fspath(path)}: {error}", field="labels") from error
    except (KeyError, ValueError, TypeError):
        where = f"{os.fspath(path)}, line {number}"
        problem = f"{where}: expected `index`, a row, and `label`, 1 or 0"
        raise RequestError(problem, field="labels") from None
    return labels
