"""A file's entries, one by one: lines of JSON, plain or compressed, or the items of one JSON document."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from toolmem.errors import RequestError

GZIP_MAGIC = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Entry:
    """One JSON value and where it stood; where it cannot be read, `problem` says why and `value` is None."""

    place: str  # "line 3", "item 3"; counted from 1, as editors do
    value: Any
    problem: str = ""


def open_bytes(path: Path) -> IO[bytes]:
    """The file's bytes, decompressed where it begins like gzip, whatever its name. Raises RequestError."""
    if path.is_dir():
        raise RequestError(f"input: {path} is a folder; name a file of recorded calls", field="input")
    try:
        file = path.open("rb")
        if file.peek(2)[:2] == GZIP_MAGIC:
            file.close()
            return cast(IO[bytes], gzip.open(path, "rb"))
    except FileNotFoundError:
        raise RequestError(f"input: there is no file {path}", field="input") from None
    except OSError as error:
        raise RequestError(f"input: {path} cannot be read ({error.strerror or error})", field="input") from None
    return file


def read_lines(path: Path) -> Iterator[Entry]:
    """The JSON value of each line that is not blank; a line that cannot be read is an entry with its problem."""
    with open_bytes(path) as file:
        number = 0
        while True:
            number += 1
            try:
                line = file.readline()
            except (EOFError, OSError, zlib.error) as error:
                yield Entry(f"line {number}", None, f"the file is damaged from here on ({error})")
                return
            if not line:
                return
            if number == 1:
                line = line.removeprefix(UTF8_BOM)
            if line.strip():
                yield _entry(f"line {number}", line)


def read_document(path: Path) -> Any:
    """The one JSON value that is the whole file. Raises ValueError where it is not one."""
    with open_bytes(path) as file:
        try:
            content = file.read()
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"the file is damaged ({error})") from None
    return parse(content.removeprefix(UTF8_BOM).decode("utf-8"))


def parse(text: str) -> Any:
    """The JSON value of `text`. Raises ValueError that says where it goes wrong."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise ValueError(f"not JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise ValueError("nested too deeply to be read") from None
    except ValueError:  # the interpreter's limit on digits
        raise ValueError("an integer of thousands of digits; send it as a string") from None


def _entry(place: str, line: bytes) -> Entry:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte 0x{line[error.start]:02x} at position {error.start + 1}"
        return Entry(place, None, f"not UTF-8: {where}; save the file as UTF-8")
    try:
        return Entry(place, parse(text.strip()))
    except ValueError as error:
        return Entry(place, None, str(error))
