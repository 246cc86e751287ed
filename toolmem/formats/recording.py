"""Read recordings: files of calls or of conversations become tool calls, in their order."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolmem.errors import RequestError
from toolmem.formats.chat import (
    Chat,
    UserMessage,
    is_conversation,
    is_random,
    read_chat,
    records_of,
)
from toolmem.formats.files import Line
from toolmem.formats.joining import UNANSWERED, Histories, Joiner
from toolmem.formats.programs import BY_NAME, FOREIGN_COLUMNS, FORMATS, OWN_COLUMNS, TABLE
from toolmem.formats.records import misspelled, read_records, read_schemas
from toolmem.formats.shapes import Format, mapped, recognize
from toolmem.formats.sources import find_files, looks_like, read_units
from toolmem.models.calls import ToolCallResult

NAMES = ("calls", "openai", *BY_NAME)  # of the formats
TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
UNCHANGED = "files were imported before and have not changed"
MAX_WAITING = 1_000  # units before a format is recognized, or bad records before a call
MAX_MESSAGES = 10_000  # of users, without those before a call
LATE_MESSAGES = f"messages after {MAX_MESSAGES:,} others are read only where a call follows"
_LABELS = {"1": True, "true": True, "0": False, "false": False}
CLOCK_SKEW = timedelta(days=1)  # between the machine that wrote a recording and this one
FEW_BAD = 5  # bad records of a file without calls; as many are reported in one
MAX_NAMED = 20  # files that notes name: as many unreadable ones as ones without a call
_SINGULAR = {
    "were": "was",
    "have": "has",
    "hold": "holds",
    "name": "names",
    "go": "goes",
    "are": "is",
}


class BadRecord(Struct, frozen=True):
    """A record that could not be read. `line`, from 1: where it, or its conversation, begins."""

    line: int
    tool_name: str
    error: str
    file: str = ""  # its name, where there are several

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.line}" if self.file else f"line {self.line}"


class ReadCall(Struct, frozen=True):
    """A call, its row (from 0, bad records included) and its line."""

    call: ToolCallResult
    row: int
    line: int
    file: str = ""  # its name, where there are several


Read = ReadCall | BadRecord | UserMessage


class Recording(Struct):
    """The calls, messages and tools that recordings hold, and the records that are bad."""

    read: list[ReadCall] = msgspec.field(default_factory=list)
    bad: list[BadRecord] = msgspec.field(default_factory=list)
    tools: list[Any] = msgspec.field(default_factory=list)  # declarations in conversations
    messages: dict[UserMessage, None] = msgspec.field(default_factory=dict)  # in their order
    notes: list[str] = msgspec.field(default_factory=list)  # what was left out or guessed

    @property
    def calls(self) -> list[ToolCallResult]:
        return [each.call for each in self.read]


def read_recording(
    paths: Sequence[str | os.PathLike[str]],
    now: datetime,
    *,
    format: str | None = None,
    mapping: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> Recording:
    """Read files and folders in order. Raises RequestError if one of them cannot be read.

    `now`: the time of calls without one. `format`: one of NAMES; None: it is recognized. `mapping`:
    paths of the fields, in an unknown format. `limit`: the number of records to read.
    """
    reader = RecordingReader(now, format=format, mapping=mapping)
    found = Recording()
    for each in reader.read(paths):
        if limit is not None and reader.row > limit:
            break
        if isinstance(each, BadRecord):
            found.bad.append(each)
        elif isinstance(each, UserMessage):
            if len(found.messages) < MAX_MESSAGES:
                found.messages[each] = None
            else:
                reader.notes[LATE_MESSAGES] += each not in found.messages
        else:
            found.messages[UserMessage(each.call.conversation_id, each.call.context)] = None
            found.read.append(each)
    found.bad.sort(key=lambda bad: (bad.file, bad.line))
    found.tools = list(reader.tools.values())
    found.notes = reader.all_notes()
    if found.read and not any(each.call.conversation_id for each in found.read):
        found.notes.append("no call names its conversation, so no repair can be found")
    return found


class RecordingReader:
    """Reads calls one after another; `notes` counts what was left out or guessed.

    `skip(path)`: whether to leave out a file. `finished(path)` is called when a file with calls was
    read to its end. `folders`: see `read_units`. Raises RequestError if no format is called
    `format`, or `mapping` is wrong.
    """

    def __init__(
        self,
        now: datetime,
        *,
        format: str | None = None,
        mapping: Mapping[str, str] | None = None,
        skip: Callable[[Path], bool] = lambda path: False,
        finished: Callable[[Path], None] = lambda path: None,
        folders: Mapping[Path, Collection[str]] | None = None,
    ) -> None:
        if format is not None and format not in NAMES:
            raise RequestError(f"format: expected one of {', '.join(NAMES)}; got {format!r}")
        self.tools: dict[str, Any] = {}  # declarations in conversations
        self.notes: Counter[str] = Counter()
        self.row = 0  # of the next record
        self.path = Path()  # of the file that is being read
        self.unreadable: list[str] = []  # why files and folders could not be read
        self._now = now
        self._format = mapped(mapping) if mapping else BY_NAME.get(format or "", format)
        self._skip = skip
        self._finished = finished
        self._folders = folders or {}
        self._without_calls: list[str] = []  # the first error of files with bad records alone
        self._misspelled: Counter[str] = Counter()
        self._ids: dict[str, int] = {}
        self._histories = Histories()
        self._random_ids: set[str] = set()  # of records that were read from conversations

    def all_notes(self) -> list[str]:
        """Return all notes as lines: counts, then unreadable files, then those without calls."""
        counts = [each for each in self.notes.items() if each[1] > 0]
        lines = [_counted(*each) for each in [*counts, *self._misspelled.most_common(5)]]
        for reasons in (self.unreadable, self._without_calls):
            lines += reasons[:MAX_NAMED]
            if len(reasons) > MAX_NAMED:
                lines.append(f"and {len(reasons) - MAX_NAMED:,} more")
        return lines

    def read(
        self, paths: Sequence[str | os.PathLike[str]], searched: Sequence[Path] = ()
    ) -> Iterator[Read]:
        """Read the files and folders in `paths`, and the files in `searched`.

        Raises RequestError if a file in `paths` cannot be read. Other unreadable files are counted.
        """
        named = set(map(Path, paths))
        by_real_path: dict[str, Path] = {}
        for path in [*find_files(paths, self._note_unreadable_folder), *searched]:
            by_real_path.setdefault(os.path.realpath(path), path)
        files = list(by_real_path.values())
        for path in files:
            self.path = path
            try:
                if self._skip(path):
                    self.notes[UNCHANGED] += 1
                else:
                    name = path.name if len(files) > 1 else ""
                    yield from self._file(path, name, path in named)
            except (RequestError, OSError) as error:
                if path in named:
                    raise RequestError(str(error), field="input") from error
                self.notes["files could not be read"] += 1
                reason = f"{path}: {error.strerror}" if isinstance(error, OSError) else str(error)
                self.unreadable.append(reason)

    def _note_unreadable_folder(self, error: OSError) -> None:
        self.notes["folders could not be read"] += 1
        self.unreadable.append(f"{error.filename}: {error.strerror}")

    def _file(self, path: Path, name: str, is_named: bool) -> Iterator[Read]:
        """Read a file. Bad records are yielded only once it has a call, else it is no recording."""
        waiting: list[BadRecord] = []
        bad_count = 0
        has_calls = False
        for each in self._records(path, name):
            if isinstance(each, ReadCall) and not has_calls:
                has_calls = True
                yield from waiting
                self.notes["records before the first call hold none"] += bad_count - len(waiting)
            if has_calls or isinstance(each, UserMessage):
                yield each
            elif isinstance(each, BadRecord):
                bad_count += 1
                if len(waiting) < MAX_WAITING:
                    waiting.append(each)
        if has_calls:
            self._finished(path)
        elif not is_named or not waiting:
            self.notes["files hold no answered call"] += 1
            if waiting:
                self._without_calls.append(f"{path}: {waiting[0].error}")
        elif bad_count < FEW_BAD:
            yield from waiting
        else:
            error = f"no line of {bad_count:,} is a call; {waiting[0].error}"
            yield replace(waiting[0], error=error)

    def _records(self, path: Path, name: str) -> Iterator[Read]:
        form = self._format or (TABLE if path.name.endswith(TABLES) else None)
        reader = _FileReader(self, path.name.partition(".")[0], form)
        for line in read_units(path, self._folders.get(path)):
            for record, error, number in reader.records(line):
                yield self._call(record, error, number, name)
        for record, error, number in reader.close():
            yield self._call(record, error, number, name)

    def _call(self, record: Any, error: str, line: int, name: str) -> Read:
        if isinstance(record, UserMessage):
            return record
        row = self.row
        self.row += 1
        if error:
            return BadRecord(line, "", error, name)
        read = read_records([record], self._now)
        if read.failures:
            failure = read.failures[0]
            is_own = isinstance(record, Mapping) and "tool_name" in record
            hint = "" if is_own else _description(record)
            return BadRecord(line, failure.tool_name, failure.error + hint, name)
        call = read.calls[0].call
        self._misspelled.update(misspelled(call))
        if call.success is None and "output" not in record:
            expected = "expected what the tool returned, a text, or `success`, true or false"
            return BadRecord(line, call.tool_name, f"output: missing; {expected}", name)
        if call.create_time > self._now + CLOCK_SKEW:  # otherwise it is the newest for ever
            self.notes["calls with a time in the future were given that of this reading"] += 1
            call.create_time = self._now
        return ReadCall(call, row, line, name)

    def conversation(self, value: Any) -> Iterator[tuple[Any, str]]:
        """Read OpenAI's form: yield (None, problem), then (record, "") and (user's message, "")."""
        if not is_conversation(value):
            yield None, "no conversation: expected an object with a list `messages`"
            return
        records, chat = records_of(value, self._ids)
        messages = value["messages"] if isinstance(value, Mapping) else value
        own_name = records[0]["metadata"]["conversation_id"] if records else ""
        known, conversation = self._histories.known(messages, own_name)
        earlier = read_chat(messages[:known])
        numbered = _new_records(records, chat, earlier)
        if known:
            for _, record in numbered:
                record["metadata"]["conversation_id"] = conversation
            self.notes["conversations go on in a later line"] += 1
        for problem in chat.problems[len(earlier.problems) :]:
            self.row -= 1  # a message is no record
            yield None, problem
        self.notes[UNANSWERED] += chat.unanswered - earlier.unanswered
        by_order = "answers without an id were assigned by order alone"
        self.notes[by_order] += chat.by_order - earlier.by_order
        self._declare(value.get("tools") if isinstance(value, Mapping) else None)
        new = chat.user_texts[len(earlier.user_texts) :]
        user_messages = [(number, UserMessage(conversation, text)) for number, text in new]
        for _, each in sorted([*user_messages, *numbered], key=itemgetter(0)):
            if isinstance(each, dict) and is_random(each["metadata"].get("tool_call_id", "")):
                if each["id"] in self._random_ids:
                    continue
                self._random_ids.add(each["id"])
            yield each, ""

    def _declare(self, tools: Any) -> None:
        for tool in tools if isinstance(tools, list) else ():
            try:
                (name,) = read_schemas([tool])
                self.tools.setdefault(name, tool)
            except RequestError:
                self.notes["declarations of tools could not be read"] += 1


def _counted(what: str, count: int) -> str:
    """`2 files were left out` or `1 file was left out`."""
    if count == 1:
        noun, *words = what.split(" ")
        what = " ".join([noun.removesuffix("s"), *(_SINGULAR.get(word, word) for word in words)])
    return f"{count:,} {what}"


def _new_records(records: list[Any], chat: Chat, earlier: Chat) -> list[tuple[int, Any]]:
    """Return number and record of each call that `earlier` did not have an answer to."""
    known = {number for number, call in enumerate(earlier.calls) if call.output is not None}
    answered = (number for number, call in enumerate(chat.calls) if call.output is not None)
    pairs = zip(answered, records, strict=True)
    return [(number, record) for number, record in pairs if number not in known]


class _FileReader:
    """Turns the units of one file into records; remembers the format that was recognized."""

    def __init__(self, recording: RecordingReader, stem: str, form: Format | str | None) -> None:
        self._recording = recording
        self._given = form
        self._stem = stem
        self._current: Format | None = None
        self._joiners: dict[str, Joiner] = {}  # by format: a file may alternate
        self._unrecognized: list[Line] = []  # lines before a format was recognized
        self._has_records = False

    def records(self, line: Line) -> Iterator[tuple[Any, str, int]]:
        """Yield (record, problem, line number) for each record: a problem if it cannot be read."""
        if line.error:
            yield None, line.error, line.number
            return
        form = self._given or self._recognized(line.value)
        if form is TABLE and isinstance(line.value, dict):
            columns = line.value.keys()
            if columns >= OWN_COLUMNS and columns.isdisjoint(FOREIGN_COLUMNS):
                filled = {key: value for key, value in line.value.items() if value != ""}
                form = "calls"
                line = line._replace(value={"output": "", **filled})
        try:
            yield from list(self._read(form, line))
        except RecursionError:
            yield None, "too deeply nested", line.number
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
            name = form.name if isinstance(form, Format) else form
            yield None, f"not as {name} writes it: {error}", line.number

    def _read(self, form: Format | str | None, line: Line) -> Iterator[tuple[Any, str, int]]:
        if isinstance(form, Format):
            for record, error in self._joiner_of(form).read(line.value):
                yield record, error, line.number
        elif form is None and not self._has_records and len(self._unrecognized) < MAX_WAITING:
            self._unrecognized.append(line)
        else:
            self._has_records = True
            yield from self._flush()
            if form == "openai":
                pairs = self._recording.conversation(line.value)
                yield from ((record, error, line.number) for record, error in pairs)
            else:
                yield line.value, "", line.number

    def close(self) -> Iterator[tuple[Any, str, int]]:
        """End the file. Yields its lines if no format was recognized in it."""
        for joiner in self._joiners.values():
            joiner.close()
        yield from self._flush()

    def _flush(self) -> Iterator[tuple[Any, str, int]]:
        yield from ((line.value, "", line.number) for line in self._unrecognized)
        self._unrecognized.clear()

    def _joiner_of(self, form: Format) -> Joiner:
        if form.name not in self._joiners:
            self._joiners[form.name] = Joiner(form, self._stem, self._recording.notes)
            self._unrecognized.clear()  # such lines hold no call
        self._current = form
        return self._joiners[form.name]

    def _recognized(self, value: Any) -> Format | str | None:
        """Return the format whose mark the unit has; without any, the file's format so far."""
        current = self._current
        if isinstance(value, dict) and "tool_name" in value:
            return "calls"
        formats = (current, *FORMATS) if current else FORMATS
        return recognize(value, formats) or ("openai" if is_conversation(value) else current)


def _description(value: Any) -> str:
    """What a value without a known format looks like, and how to map it."""
    hint = f"; try --map {_suggested_mapping(value)}" if isinstance(value, dict) else ""
    return f" (it is {looks_like(value)}{hint})"


def _suggested_mapping(value: dict[str, Any]) -> str:
    """A mapping such as `name=tool,arguments=args`, by the usual names of columns."""
    (shape,) = TABLE.shapes
    found: dict[str, str] = {}
    for field in ("name", "arguments", "output", "error", "status", "success", "time", "id"):
        for path in getattr(shape, field).split("|"):
            if path in value and path not in found.values():
                found.setdefault(field, path)
    if not {"name", "output"} <= found.keys():
        return "name=...,arguments=...,output=..."
    return ",".join(f"{field}={path}" for field, path in found.items())


def read_labels(path: str | os.PathLike[str]) -> dict[int, bool]:
    """Read whether calls worked, by row, from a CSV file with `index` (or `row`) and `label`.

    A label is 1 or true where the call worked, 0 or false where it did not. Rows without one are
    left out, so the `calls.csv` of an evaluation can be filled in. Raises RequestError.
    """
    labels: dict[int, bool] = {}
    name = os.fspath(path)
    number = 1  # of the heading
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = reader.fieldnames or []
            index = "index" if "index" in columns else "row"
            if index not in columns or "label" not in columns:
                expected = "the columns `index`, a row from 0, and `label`, separated by commas"
                raise ValueError(f"expected {expected}")
            for line in reader:
                number += 1
                label = (line["label"] or "").strip().lower()
                row = (line[index] or "").strip()
                if not label:
                    continue
                if label not in _LABELS or not row.isdecimal():
                    raise ValueError("expected `label` 1 or 0, and a row's number")
                if labels.setdefault(int(row), _LABELS[label]) is not _LABELS[label]:
                    raise ValueError(f"row {row} has another label above")
            if not labels:
                raise ValueError("no row has a label")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RequestError(f"{name}: {error}", field="labels") from error
    except ValueError as error:
        raise RequestError(f"{name}, line {number}: {error}", field="labels") from None
    return labels
