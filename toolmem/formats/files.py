"""Read JSON Lines, also gzipped, and report each bad line."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from toolmem.errors import RequestError
from toolmem.formats.chat import change_texts
from toolmem.text.forms import encodable

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_LINE = 64 << 20  # bytes of one record
MAX_GROWTH = 500  # times; data grows less, unless it was made to fill the memory
_GZIP = b"\x1f\x8b"
_TOO_LONG = f"over {MAX_LINE >> 20} MB"


class Line(NamedTuple):
    """The JSON value of one line that is not empty. `error`: why it could not be read, else ""."""

    number: int  # from 1
    value: Any
    error: str = ""


def read_lines(path: str | os.PathLike[str]) -> Iterator[Line]:
    """Read JSON Lines. Raises RequestError if the file cannot be opened or unpacked."""
    try:
        with unpacked(path) as file:
            yield from lines_of(file)
    except (OSError, EOFError, zlib.error) as error:
        raise RequestError(f"{os.fspath(path)}: {error}", field="input") from error


@contextmanager
def unpacked(path: str | os.PathLike[str]) -> Iterator[BinaryIO | Unpacked]:
    """Open a file to read its bytes, unpacked if it is gzipped. Raises OSError."""
    with Path(path).open("rb") as plain:
        is_gzip = plain.read(2) == _GZIP
        plain.seek(0)
        yield Unpacked(plain) if is_gzip else plain


class Unpacked(gzip.GzipFile):
    """A gzip file that raises OSError if it grows too much: few bytes could fill the memory."""

    def __init__(self, packed: BinaryIO) -> None:
        super().__init__(fileobj=packed)
        self._packed = packed
        self._lines = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self._check_growth("")
        return data

    def readline(self, size: int | None = -1) -> bytes:
        line = super().readline(-1 if size is None else size)
        self._lines += 1
        if len(line) > 100_000 or self._lines % 1_000 == 0:
            self._check_growth(f"line {self._lines}: ")
        return line

    def _check_growth(self, place: str) -> None:
        if self.tell() > max(MAX_LINE, MAX_GROWTH * self._packed.tell()):
            raise OSError(f"{place}its data grows over {MAX_GROWTH}-fold")


def lines_of(file: BinaryIO | Unpacked) -> Iterator[Line]:
    """Read JSON from lines that end in \\n. A line over MAX_LINE is skipped, and has an error."""
    number = 0
    while line := file.readline(MAX_LINE + 2):
        number += 1
        if len(line) > MAX_LINE + 1:
            yield Line(number, None, _TOO_LONG)
            while line and not line.endswith(b"\n"):
                line = file.readline(1 << 20)
        elif stripped := line.removeprefix(BYTE_ORDER_MARK).strip():
            parsed = read_line(number, stripped)
            if parsed.error and not line.endswith(b"\n"):
                parsed = parsed._replace(error=f"{parsed.error}; the file ends in this line")
            yield parsed


def read_json(text: bytes | str, name: str = "") -> Any:
    """Read JSON, with or without a byte order mark. Raises RequestError that begins with `name`."""
    encoded = text.encode("utf-8", "replace") if isinstance(text, str) else text
    line = read_line(1, encoded.removeprefix(BYTE_ORDER_MARK).strip())
    if line.error:
        raise RequestError(f"{name}: {line.error}" if name else line.error, field="request")
    return line.value


def read_line(number: int, line: bytes | memoryview | msgspec.Raw) -> Line:
    """Read one line of JSON. What is wrong with it is in `error` of the result."""
    if memoryview(line).nbytes > MAX_LINE:
        return Line(number, None, _TOO_LONG)
    line = bytes(line)
    try:
        return Line(number, msgspec.json.decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:  # half an emoji (\ud83d) is refused by msgspec and read by json
        return Line(number, change_texts(json.loads(line.decode("utf-8")), encodable))
    except UnicodeDecodeError as error:
        return Line(number, None, f"no UTF-8 text: {error.reason} at byte {error.start}")
    except (ValueError, RecursionError) as error:
        return Line(number, None, f"no JSON: {error}" if line else "the input is empty")
