"""Find files, and read each as a sequence of units: lines, elements, rows, parts of archives.

JSON Lines are read line by line. The elements of a JSON document are decoded one at a time. Folders
are searched; links inside them are not followed.
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import mmap
import os
import re
import shutil
import sqlite3
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from toolmem.config.sections import OWN_FOLDER
from toolmem.errors import RequestError
from toolmem.formats.files import (
    BYTE_ORDER_MARK,
    MAX_GROWTH,
    MAX_LINE,
    Line,
    Unpacked,
    lines_of,
    read_line,
    unpacked,
)

SUFFIXES = (".jsonl", ".json", ".ndjson", ".gz", ".eval", ".db", ".csv", ".tsv", ".parquet")
START = 4096  # bytes by which a file's type is recognized
FIRST_LINE = 2**20  # bytes of a long first line that are looked at
MAX_MEMBER = 2**30  # bytes of a file in a zip, unpacked
MAX_KEY = 40  # characters of a key in an error
# Keys of a document whose list holds its units. Its other fields are not read.
_LISTS = ("data", "samples", "resourceSpans", "simulations", "runs", "results", "traces")
_Value = list[msgspec.Raw] | dict[str, msgspec.Raw]
# A list is one conversation if its first element has one of these keys,
_MESSAGE_KEYS = ("role", "lc", "data", "tool_call_id", "call_id", "tool_calls")
_MESSAGE_TYPES = ("human", "ai", "system", "reasoning")  # or one of these types
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_DAMAGED = (OSError, ValueError, EOFError, sqlite3.Error, csv.Error)
_DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError)  # or a password
INDEX = "__index_level_"  # columns in Parquet: an index of pandas that has no name
_MEMBERS = (".json", ".jsonl", ".ndjson")  # of an archive


def find_files(
    paths: Sequence[str | os.PathLike[str]],
    on_unreadable: Callable[[OSError], None] | None = None,  # called for each such folder
) -> list[Path]:
    """List the files in `paths`; of a folder, those with SUFFIXES. Raises RequestError."""
    found = []
    for path in map(Path, paths):
        if path.is_dir():
            folders = os.walk(path, onerror=on_unreadable)
            inside = [Path(folder, name) for folder, _, names in folders for name in names]
            fitting = (
                each
                for each in inside
                if each.name.endswith(SUFFIXES) and OWN_FOLDER not in each.relative_to(path).parts
            )
            found += sorted(filter(_is_regular, fitting))
        elif path.exists():
            found.append(path)
        else:
            raise RequestError(f"{path}: there is no such file", field="input")
    return found


def _is_regular(path: Path) -> bool:
    """Whether a path is a file and no link. True if access is denied: reading reports it."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError as error:
        return not isinstance(error, FileNotFoundError)


def read_units(path: Path, folders: Collection[str] | None = None) -> Iterator[Line]:
    """Yield the lines, elements or rows of a file, or of the members of an archive.

    `folders`: of a database of OpenCode, read only sessions that were started in one of these.
    Raises RequestError if the file cannot be read at all.
    """
    name = path.name.removesuffix(".gz")
    try:
        with unpacked(path) as file:
            start = file.read(START)
            if b"\n" not in start:
                start += file.readline(FIRST_LINE) + file.read(1)
            file.seek(0)
            elements = _elements(_copied(file)) if _is_document(name, start) else None
            if elements is not None:
                yield from elements
            elif start.startswith(_UTF_16):
                problem = "UTF-16, not UTF-8; convert it by iconv -f UTF-16 -t UTF-8 FILE > NEW"
                raise RequestError(f"{path}: {problem}", field="input")
            elif start.startswith(b"PK\3\4"):
                yield from _members(path)
            elif start.startswith(_SQLITE):
                yield from _opencode_parts(path, folders)
            elif start.startswith(b"PAR1"):
                yield from _parquet_rows(path)
            elif name.endswith((".csv", ".tsv")):
                yield from _csv_rows(file, name)
            else:
                file.seek(0)
                yield from lines_of(file)
    except (*_DAMAGED, *_DAMAGED_ZIP) as error:
        raise RequestError(f"{path}: {error}", field="input") from error


def _copied(file: BinaryIO | Unpacked) -> memoryview:
    """Read a file into memory; a large one is copied to a temporary file, and this is mapped.

    If the file itself were mapped, a program that shortens it would crash this process.
    """
    data = file.read(MAX_LINE)
    if len(data) < MAX_LINE:
        return memoryview(data)
    with tempfile.TemporaryFile() as copy:
        copy.write(data)
        shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        return memoryview(mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ))


def _is_document(name: str, start: bytes) -> bool:
    """Whether a file may be one JSON document: its first line is incomplete, or the only one."""
    text = start.removeprefix(BYTE_ORDER_MARK).lstrip()
    first, newline, rest = text.partition(b"\n")
    if not first.startswith((b"{", b"[")):
        return False
    if not newline:  # the file has one line, or a very long first one
        return True
    if not read_line(1, first).error:
        return not rest.strip()
    return first.strip() in (b"{", b"[") or name.endswith(".json")


def _elements(data: memoryview) -> Iterator[Line] | None:
    """Return the elements of a JSON list, or of a document's list of units; else the document.

    Returns None if the data is no JSON document; it may be JSON Lines, or damaged.
    """
    start = len(BYTE_ORDER_MARK) if data[:3] == BYTE_ORDER_MARK else 0
    document = data[start:]
    try:
        elements = _list_of(msgspec.json.decode(document, type=_Value))
    except msgspec.ValidationError:
        elements = None
    except msgspec.DecodeError:
        return None
    first = read_line(1, elements[0]).value if elements else None
    if elements is None or _is_message(first):
        return iter([read_line(1, document)])
    return (read_line(number, each) for number, each in enumerate(elements, 1))


def _is_message(first: Any) -> bool:
    """Whether a list that begins with this element is one conversation."""
    if not isinstance(first, dict) or "tool_name" in first:
        return False
    return first.get("type") in _MESSAGE_TYPES or not first.keys().isdisjoint(_MESSAGE_KEYS)


def _list_of(value: list[msgspec.Raw] | dict[str, msgspec.Raw]) -> list[msgspec.Raw] | None:
    if isinstance(value, list):
        return value
    for key in _LISTS:
        if key in value and bytes(value[key])[:1] == b"[":
            return msgspec.json.decode(value[key], type=list[msgspec.Raw])
    return None


def _members(path: Path) -> Iterator[Line]:
    """Yield units of an archive: the samples of an inspect_ai log, else of all its JSON files."""
    with suppress(ImportError):  # it teaches zipfile to read zstandard, which inspect_ai writes
        import zipfile_zstd  # noqa: F401
    try:
        with zipfile.ZipFile(path) as archive:
            files = [each for each in archive.infolist() if each.filename.endswith(_MEMBERS)]
            samples = [each for each in files if each.filename.startswith("samples/")]
            for number, each in enumerate(samples or files, 1):
                most = max(MAX_LINE, MAX_GROWTH * each.compress_size)
                if each.file_size > min(MAX_MEMBER, most):
                    yield Line(number, None, f"{each.filename}: {each.file_size:,} bytes unpacked")
                    continue
                for line in _member_lines(each.filename, archive.read(each)):
                    yield line._replace(number=number)
    except NotImplementedError:
        problem = (
            f"{path}: packed with zstandard: pip install zipfile-zstd, or write it as "
            "JSON by inspect log convert --to json --output-dir FOLDER FILE"
        )
        raise RequestError(problem, field="input") from None


def _member_lines(name: str, data: bytes) -> Iterator[Line]:
    elements = _elements(memoryview(data)) if _is_document(name, data[:START]) else None
    return lines_of(io.BytesIO(data)) if elements is None else elements


_SQLITE = b"SQLite format 3"
_OPENCODE_TABLES = {"part", "message"}
# Parts of a message with damaged data lose only their role.
_PARTS = """
    SELECT part.session_id, {parent}, part.data,
        CASE WHEN json_valid(message.data) THEN json_extract(message.data, '$.role') END
    FROM part JOIN message ON message.id = part.message_id ORDER BY part.time_created, part.id
"""
# The folder of each session, by its first answer: SQLite takes the row with the min().
_STARTED = """
    SELECT session_id, json_extract(data, '$.path.cwd') AS folder, min(time_created)
    FROM message
    WHERE json_valid(data) AND json_extract(data, '$.path.cwd') IS NOT NULL GROUP BY session_id
"""
_FOLDERS = f"""
    SELECT folder, sum(length(part.data))
    FROM part LEFT JOIN ({_STARTED}) AS started USING (session_id) GROUP BY folder
"""
_PARENT = "(SELECT parent_id FROM session WHERE session.id = part.session_id)"  # of a sub-agent


def opencode_folders(path: Path) -> list[tuple[str, int]]:
    """Return (folder, bytes of the sessions begun there) for each folder in OpenCode's database.

    A folder is "" if it is unknown, as in a locked database. Any other file gives [].
    """
    if not path.is_file():  # a pipe can be read once
        return []
    try:
        with path.open("rb") as file:
            if not file.read(START).startswith(_SQLITE):
                return []
        with _open_database(path) as database:
            rows = database.execute(_FOLDERS) if _tables(database) >= _OPENCODE_TABLES else ()
            return [(str(folder or ""), size) for folder, size in rows]
    except OSError:
        return []
    except sqlite3.Error:
        return [("", 0)]


def _open_database(path: Path) -> closing[sqlite3.Connection]:
    """Open a database to read it."""
    return closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True))


def _tables(database: sqlite3.Connection) -> set[str]:
    """Return the names of a database's tables. Views are left out: one may compute for ever."""
    sql = "SELECT name FROM sqlite_master WHERE type = 'table'"
    return {name for (name,) in database.execute(sql)}


def _opencode_parts(path: Path, folders: Collection[str] | None) -> Iterator[Line]:
    """The parts of messages in OpenCode's database."""
    with _open_database(path) as database:
        tables = _tables(database)
        if not tables >= _OPENCODE_TABLES:
            yield Line(1, None, "no database of OpenCode")
            return
        started = {row[0]: row[1] for row in database.execute(_STARTED)} if folders else {}
        parts = _PARTS.format(parent=_PARENT if "session" in tables else "NULL")
        for number, (session, parent, data, role) in enumerate(database.execute(parts), 1):
            if folders is not None and (started.get(session) or "") not in folders:
                continue
            if isinstance(data, str):
                line = read_line(number, data.encode())
                role = None if parent else role  # a model wrote the prompts of a sub-agent
                part = {"session_id": parent or session, "role": role, "data": line.value}
                yield line._replace(value=part)
            else:
                yield Line(number, None, "no JSON: the part has no text")


def _bounded(line: str) -> str:
    if len(line) > MAX_LINE + 1:
        raise ValueError(f"a line of over {MAX_LINE >> 20} MB")
    return line


# Before Python 3.13 csv, and so pandas, writes a lone \r without quotes and reads it as a line end.
_LONE_RETURN = re.compile(r"\r(?!\n|\Z)")
_RETURN = "\ufdd0"  # replaces it while a row is read: a code point that is no character


def _csv_rows(file: BinaryIO | Unpacked, name: str) -> Iterator[Line]:
    csv.field_size_limit(MAX_LINE)
    ends_in_returns = b"\r" in file.readline(MAX_LINE).removesuffix(b"\r\n")
    file.seek(0)
    newline = "" if ends_in_returns else "\n"
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline=newline, errors="replace")
    lines = map(_bounded, iter(partial(text.readline, MAX_LINE + 2), ""))
    rows = csv.DictReader(
        (_LONE_RETURN.sub(_RETURN, line) for line in lines),
        delimiter="\t" if name.endswith(".tsv") else ",",
    )
    for row in rows:
        filled = {key: value for key, value in row.items() if key and value is not None}
        texts = {key: value.replace(_RETURN, "\r") for key, value in filled.items()}
        yield Line(rows.line_num, texts)


def _parquet_rows(path: Path) -> Iterator[Line]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        problem = f"{path}: Parquet needs pyarrow: pip install pyarrow"
        raise RequestError(problem, field="input") from None
    with parquet.ParquetFile(path) as file:
        rows = (row for batch in file.iter_batches(batch_size=1000) for row in batch.to_pylist())
        for number, row in enumerate(rows, 1):
            filled = {key: value for key, value in row.items() if value is not None}
            yield Line(number, {key: filled[key] for key in filled if not key.startswith(INDEX)})


def looks_like(value: Any) -> str:
    """Describe in a few words a value that no format fits."""
    if isinstance(value, dict):
        keys = ", ".join(repr(str(key)[:MAX_KEY]) for key in list(value)[:12])
        return f"an object with {keys or 'no keys'}"
    if isinstance(value, list):
        first = looks_like(value[0]) if value and isinstance(value[0], dict) else "no object"
        return f"a list of {len(value):,}, the first {first}"
    return f"{type(value).__name__} {json.dumps(value, default=str)[:60]}"
