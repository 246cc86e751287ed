"""Read files of JSON Lines, also gzipped. A bad line is reported, and the others are read."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from toolmem.errors import RequestError
from toolmem.formats.records import without_surrogates

_GZIP = b"\x1f\x8b"


class Line(NamedTuple):
    """One line that is not empty. `error`: why it could not be read; "" where it could."""

    number: int  # from 1
    value: Any
    error: str = ""


def read_lines(path: str | os.PathLike[str]) -> Iterator[Line]:
    """Raises RequestError where the file cannot be opened or its compressed data is damaged."""
    try:
        with Path(path).open("rb") as plain:
            is_gzip = plain.read(2) == _GZIP
            plain.seek(0)
            lines = gzip.GzipFile(fileobj=plain) if is_gzip else plain
            for number, line in enumerate(lines, 1):  # split at \n alone: U+2028 is text
                if stripped := line.removeprefix(b"\xef\xbb\xbf").strip():
                    yield _read(number, stripped)
    except (OSError, EOFError, zlib.error) as error:
        raise RequestError(f"{os.fspath(path)}: {error}", field="input") from error


def read_json(text: bytes | str, name: str = "") -> Any:
    """JSON with or without a byte order mark. Raises RequestError, which begins with `name`."""
    encoded = text.encode("utf-8", "replace") if isinstance(text, str) else text
    line = _read(1, encoded.removeprefix(b"\xef\xbb\xbf").strip())
    if line.error:
        raise RequestError(f"{name}: {line.error}" if name else line.error, field="request")
    return line.value


def _read(number: int, line: bytes) -> Line:
    try:
        return Line(number, msgspec.json.decode(line))
    except (msgspec.DecodeError, RecursionError):
        pass
    try:  # half an emoji (\ud83d) is refused by msgspec and read by json
        return Line(number, without_surrogates(json.loads(line.decode("utf-8"))))
    except UnicodeDecodeError as error:
        return Line(number, None, f"no UTF-8 text: {error.reason} at byte {error.start}")
    except (ValueError, RecursionError) as error:
        return Line(number, None, f"no JSON: {error}")
