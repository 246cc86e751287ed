"""Find files, and read each as a sequence of units: lines, elements, rows, members.

JSON Lines are read line by line. Of a JSON document only one element at a time is decoded, the
rest stays mapped from the disk. A folder is searched; links out of it are not followed.
"""

from __future__ import annotations

import csv
import json
import mmap
import os
import sqlite3
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from toolmem.errors import RequestError
from toolmem.formats.files import Line, read_line, read_lines

SUFFIXES = (".jsonl", ".json", ".ndjson", ".gz", ".eval", ".db", ".csv", ".tsv", ".parquet")
MAX_MEMBER = 2**30  # bytes of a file in a zip, unpacked
# Lists of a document that hold its units, beside fields that are read for none of them.
_LISTS = ("data", "samples", "resourceSpans", "simulations", "runs", "results", "traces")
_Value = list[msgspec.Raw] | dict[str, msgspec.Raw]
# Of the first element of a list that is one conversation.
_MESSAGE_KEYS = ("role", "lc", "data", "tool_call_id", "call_id", "tool_calls")


def find_files(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files, and those in the folders by name. Raises RequestError."""
    found = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
            fitting = (each for each in inside if each.name.endswith(SUFFIXES))
            found += sorted(each for each in fitting if each.is_file() and not each.is_symlink())
        elif path.exists():
            found.append(path)
        else:
            raise RequestError(f"{path}: there is no such file", field="input")
    return found


def read_units(path: Path) -> Iterator[Line]:
    """Raises RequestError where the file cannot be read at all."""
    try:
        with path.open("rb") as file:
            start = file.read(4096)
        if start.startswith(b"PK\3\4"):
            yield from _members(path)
        elif start.startswith(b"SQLite format 3"):
            yield from _opencode_parts(path)
        elif start.startswith(b"PAR1"):
            yield from _parquet_rows(path)
        elif path.name.endswith((".csv", ".tsv")):
            yield from _csv_rows(path)
        elif _is_document(path, start):
            yield from _elements(path)
        else:
            yield from read_lines(path)
    except (OSError, ValueError, sqlite3.Error, zipfile.BadZipFile, csv.Error) as error:
        raise RequestError(f"{path}: {error}", field="input") from error


def _is_document(path: Path, start: bytes) -> bool:
    """Whether one JSON value fills the file: its first line is none, or it is named .json."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    first, newline, rest = text.partition(b"\n")
    if not first.startswith((b"{", b"[")):
        return False
    if not newline:
        return path.name.endswith(".json") or len(start) < 4096
    if not read_line(1, first).error:
        return not rest.strip()
    return first.strip() in (b"{", b"[") or path.name.endswith(".json")


def _elements(path: Path) -> Iterator[Line]:
    """The elements of a list, or of the list that a document is about; else the document."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = 3 if data[:3] == b"\xef\xbb\xbf" else 0
    document = memoryview(data)[start:]
    try:
        elements = _list_of(msgspec.json.decode(document, type=_Value))
    except msgspec.ValidationError:
        elements = None
    except msgspec.DecodeError:  # JSON Lines under another name, or damaged
        yield from read_lines(path)
        return
    first = read_line(1, bytes(elements[0])).value if elements else None
    if elements is None or (isinstance(first, dict) and not first.keys().isdisjoint(_MESSAGE_KEYS)):
        yield read_line(1, bytes(document))
        return
    for number, each in enumerate(elements, 1):
        yield read_line(number, bytes(each))


def _list_of(value: Any) -> list[msgspec.Raw] | None:
    if isinstance(value, list):
        return value
    found = (value[key] for key in _LISTS if key in value and bytes(value[key])[:1] == b"[")
    inner = next(found, None)
    return None if inner is None else msgspec.json.decode(inner, type=list[msgspec.Raw])


def _members(path: Path) -> Iterator[Line]:
    """The samples of a log of inspect_ai; in other archives every JSON file."""
    with suppress(ImportError):  # with it inspect_ai reads what it packed with zstandard
        import zipfile_zstd  # noqa: F401
    with zipfile.ZipFile(path) as archive:
        files = [each for each in archive.infolist() if each.filename.endswith((".json", ".jsonl"))]
        samples = [each for each in files if each.filename.startswith("samples/")]
        for number, each in enumerate(samples or files, 1):
            if each.file_size > MAX_MEMBER:
                yield Line(number, None, f"{each.filename}: {each.file_size:,} bytes unpacked")
                continue
            try:
                yield read_line(number, archive.read(each))
            except NotImplementedError:
                problem = (
                    f"{path}: packed with zstandard: pip install zipfile-zstd, or write it as "
                    "JSON by inspect log convert --to json --output-dir FOLDER FILE"
                )
                raise RequestError(problem, field="input") from None


_PARTS = """
    SELECT part.session_id, json_extract(message.data, '$.role'), part.data
    FROM part JOIN message ON message.id = part.message_id ORDER BY part.time_created, part.id
"""


def _opencode_parts(path: Path) -> Iterator[Line]:
    """Parts of messages in OpenCode's database, which is only read."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if not {"part", "message"} <= tables:
            raise RequestError(f"{path}: no database of OpenCode", field="input")
        for number, (session, role, data) in enumerate(database.execute(_PARTS), 1):
            line = read_line(number, data.encode())
            yield line._replace(value={"session_id": session, "role": role, "data": line.value})


def _csv_rows(path: Path) -> Iterator[Line]:
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8-sig", newline="", errors="replace") as file:
        rows = csv.DictReader(file, delimiter="\t" if path.name.endswith(".tsv") else ",")
        for row in rows:
            filled = {key: value for key, value in row.items() if key and value is not None}
            yield Line(rows.line_num, filled)


def _parquet_rows(path: Path) -> Iterator[Line]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        problem = f"{path}: Parquet needs pyarrow: pip install pyarrow"
        raise RequestError(problem, field="input") from None
    number = 0
    for batch in parquet.ParquetFile(path).iter_batches(batch_size=1000):
        for row in batch.to_pylist():
            number += 1
            yield Line(number, {key: value for key, value in row.items() if value is not None})


def looks_like(value: Any) -> str:
    """A few words on the shape of a value that no format fits."""
    if isinstance(value, dict):
        return f"an object with {', '.join(map(repr, list(value)[:12])) or 'no keys'}"
    if isinstance(value, list):
        return f"a list of {len(value)}, the first {looks_like(value[0]) if value else 'missing'}"
    return f"{type(value).__name__} {json.dumps(value, default=str)[:60]}"
