"""Read whole recordings: files of calls or of conversations become tool calls, in their order."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolmem.errors import RequestError
from toolmem.formats.catalogue import BY_NAME, FORMATS, TABLE
from toolmem.formats.chat import is_conversation, read_chat, records_of
from toolmem.formats.files import Line
from toolmem.formats.joining import Histories, Joiner
from toolmem.formats.records import read_records, read_schemas
from toolmem.formats.shapes import Format, fits, mapped, recognize
from toolmem.formats.sources import find_files, looks_like, read_units
from toolmem.models.calls import ToolCallResult

NAMES = ("calls", "openai", *BY_NAME)  # of the formats
TABLES = (".csv", ".tsv", ".parquet")
MAX_UNKNOWN = 1_000  # units that are held until a format is recognized
FEW_BAD = 5  # of a file without calls; more are told in one


class BadRecord(Struct, frozen=True):
    """A record that could not be read. `line` from 1; of a conversation, the line that it is on."""

    line: int
    tool_name: str
    error: str
    file: str = ""  # its name, where there are several


class ReadCall(Struct, frozen=True):
    """A call, its row (from 0, bad records counted) and its line."""

    call: ToolCallResult
    row: int
    line: int


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
    format: str | None = None,
    mapping: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> Recording:
    """Read files and folders in order. `format` None: recognized. Raises RequestError.

    `mapping`: paths of the fields, in a format that is not known. `limit`: records.
    """
    reader = RecordingReader(now, format=format, mapping=mapping)
    found = Recording()
    for each in reader.read(paths):
        if limit is not None and reader.row > limit:
            break
        if isinstance(each, BadRecord):
            found.bad.append(each)
        else:
            found.calls.append(each.call)
            found.rows.append(each.row)
            found.lines.append(each.line)
    found.bad.sort(key=lambda bad: (bad.file, bad.line))
    found.tools = list(reader.tools.values())
    found.notes = reader.all_notes()
    if found.calls and not any(call.conversation_id for call in found.calls):
        found.notes.append("no call names its conversation, so no repair is told")
    return found


class RecordingReader:
    """Reads calls one after another; `notes` counts what was left out or guessed."""

    def __init__(
        self,
        now: datetime,
        *,
        format: str | None = None,
        mapping: Mapping[str, str] | None = None,
        skip: Callable[[Path], bool] = lambda path: False,
    ) -> None:
        self.tools: dict[str, Any] = {}  # declarations in conversations
        self.notes: Counter[str] = Counter()
        self.formats: Counter[str] = Counter()  # calls by format
        self.row = 0  # of the next record
        self._now = now
        self._format = mapped(mapping) if mapping else BY_NAME.get(format or "", format)
        self._skip = skip
        self._ids: dict[str, int] = {}
        self._histories = Histories()

    def all_notes(self) -> list[str]:
        return [f"{count} {what}" for what, count in self.notes.items() if count]

    def read(self, paths: Sequence[str | os.PathLike[str]]) -> Iterator[ReadCall | BadRecord]:
        """Raises RequestError where a file that was named cannot be read."""
        named, files = set(map(Path, paths)), find_files(paths)
        for path in files:
            if self._skip(path):
                self.notes["files were imported before and have not changed"] += 1
                continue
            held: list[BadRecord] = []  # while the file has no call
            has_calls = False
            try:
                for each in self._file(path, path.name if len(files) > 1 else ""):
                    if isinstance(each, BadRecord) and not has_calls:
                        held.append(each)
                        continue
                    if not has_calls:
                        yield from held
                    has_calls = True
                    yield each
            except RequestError as error:
                if path in named:
                    raise
                self.notes[f"files could not be read, the first: {error}"] += 1
                continue
            if not has_calls:
                yield from self._without_calls(path, held, path in named)

    def _without_calls(
        self, path: Path, held: list[BadRecord], is_named: bool
    ) -> Iterator[BadRecord]:
        if not is_named or not held:
            self.notes["files hold no answered call"] += 1
        elif len(held) < FEW_BAD:
            yield from held
        else:
            told = f"no line of {len(held):,} is a call; {held[0].error}"
            yield replace(held[0], error=told)

    def _file(self, path: Path, name: str) -> Iterator[ReadCall | BadRecord]:
        stem = path.name.partition(".")[0]
        reader = _FileReader(self, stem, TABLE if path.suffix in TABLES else self._format)
        for line in read_units(path):
            for record, error, number in reader.records(line):
                yield self._call(record, error, number, name)
        for record, error, number in reader.close():
            yield self._call(record, error, number, name)

    def _call(self, record: Any, error: str, line: int, name: str) -> ReadCall | BadRecord:
        row, self.row = self.row, self.row + 1
        if error:
            return BadRecord(line, "", error, name)
        read = read_records([record], self._now)
        if read.failures:
            failure = read.failures[0]
            hint = "" if isinstance(record, Mapping) and "tool_name" in record else unknown(record)
            return BadRecord(line, failure.tool_name, failure.error + hint, name)
        return ReadCall(read.calls[0].call, row, line)

    def conversation(self, value: Any) -> Iterator[tuple[Any, str]]:
        """The calls of a conversation in OpenAI's form; what is wrong with it comes first."""
        if not is_conversation(value):
            yield None, "no conversation: expected an object with a list `messages`"
            return
        records, chat = records_of(value, self._ids)
        messages = value["messages"] if isinstance(value, Mapping) else value
        own = records[0]["metadata"]["conversation_id"] if records else ""
        known, name = self._histories.known(messages, own)
        if known:
            earlier = sum(call.output is not None for call in read_chat(messages[:known]).calls)
            records = records[earlier:]
            for record in records:
                record["metadata"]["conversation_id"] = name
            self.notes["conversations go on in a later line"] += 1
        for problem in chat.problems:
            self.row -= 1  # a message is no record
            yield None, problem
        unanswered = sum(call.output is None for call in chat.calls)
        self.notes["calls without an answer were left out"] += unanswered
        by_order = "answers without an id were assigned by their order alone"
        self.notes[by_order] += chat.order_decided
        declared = value.get("tools") if isinstance(value, Mapping) else None
        for tool in declared if isinstance(declared, list) else ():
            try:
                (name,) = read_schemas([tool])
                self.tools.setdefault(name, tool)
            except RequestError:
                self.notes["declarations of tools could not be read"] += 1
        for record in records:
            yield record, ""


class _FileReader:
    """Turns the units of one file into records; remembers the format that was recognized."""

    def __init__(self, recording: RecordingReader, stem: str, form: Format | str | None) -> None:
        self._recording = recording
        self._given, self._stem = form, stem
        self._joiner: Joiner | None = None
        self._unknown: list[Line] = []  # before a format was recognized
        self._has_records = False

    def records(self, line: Line) -> Iterator[tuple[Any, str, int]]:
        """Records, or what is wrong with one; and the line."""
        form = self._given or self._recognized(line.value)
        if line.error:
            yield None, line.error, line.number
        elif isinstance(form, Format):
            try:
                found = list(self._joiner_of(form).read(line.value))
            except (TypeError, ValueError, AttributeError, LookupError) as error:
                yield None, f"not as {form.name} writes it: {error}", line.number
            else:
                yield from ((record, "", line.number) for record in found)
        elif form is None and not self._has_records and len(self._unknown) < MAX_UNKNOWN:
            self._unknown.append(line)
        else:
            self._has_records = True
            yield from self._flush()
            if form == "openai":
                pairs = self._recording.conversation(line.value)
                yield from ((record, error, line.number) for record, error in pairs)
            else:
                yield line.value, "", line.number

    def close(self) -> Iterator[tuple[Any, str, int]]:
        """The units that no format fits, in a file without any that fits."""
        if self._joiner is not None:
            self._joiner.close()
        yield from self._flush()

    def _flush(self) -> Iterator[tuple[Any, str, int]]:
        yield from ((line.value, "", line.number) for line in self._unknown)
        self._unknown.clear()

    def _joiner_of(self, form: Format) -> Joiner:
        if self._joiner is None or self._joiner.form is not form:
            if self._joiner is not None:
                self._joiner.close()
            self._joiner = Joiner(form, self._stem, self._recording.notes)
            self._unknown.clear()  # lines of types that hold no call
        return self._joiner

    def _recognized(self, value: Any) -> Format | str | None:
        """A unit without a mark is of the format of the file so far."""
        current = self._joiner.form if self._joiner else None
        if isinstance(value, dict) and "tool_name" in value:
            return "calls"
        if current and any(fits(mark, value, value) for mark in current.marks):
            return current
        return recognize(value, FORMATS) or ("openai" if is_conversation(value) else current)


def unknown(value: Any) -> str:
    """What a value looks like that no format fits, and how to describe it."""
    known = isinstance(value, dict) and suggested_mapping(value)
    return f" (it is {looks_like(value)}{f'; try --map {known}' if known else ''})"


def suggested_mapping(value: dict[str, Any]) -> str:
    """`name=tool,arguments=args,...` by the keys that a value has and usual names of columns."""
    (shape,) = TABLE.shapes
    found: dict[str, str] = {}
    for field in ("name", "arguments", "output", "error", "time", "id"):
        for path in getattr(shape, field).split("|"):
            if path in value and path not in found.values():
                found.setdefault(field, path)
    is_enough = {"name", "output"} <= found.keys()
    return ",".join(f"{field}={path}" for field, path in found.items()) if is_enough else ""


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
