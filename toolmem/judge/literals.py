"""JSON and Python literals as values, also from the beginning of one that was cut off.

Recorded outputs are often cut at some length, and tools written in Python answer with `str(dict)`: what is no JSON is
written as JSON token by token, and read as far as it goes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

JSON_LIMIT = 2_000_000  # characters; above it only the beginning is read
PREFIX_LIMIT = 6_000  # characters of what is no JSON that are read

_TOKEN = re.compile(
    r"""\s*(?:
        [bru]?(?:"(?P<double>(?:[^"\\]|\\.)*+)" | '(?P<single>(?:[^'\\]|\\.)*+)')
      | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?P<key>(?=\s*:))?
      | (?:[A-Za-z_][\w.]*)?(?P<mark>\() | (?P<closing>[\[\]{}):])
      | (?P<comma>,)(?P<last>(?=\s*[\])}]))?
      | (?P<word>[A-Za-z_][\w.]*+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_DECODER = json.JSONDecoder()
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}


@dataclass(frozen=True, slots=True)
class Decoded:
    """`value` is None with `found` False where the text is no literal at all."""

    found: bool
    value: Any = None
    complete: bool = True  # False: the text was cut, `value` holds its beginning


_NOTHING = Decoded(False)


def read(text: str) -> Decoded:
    """The object, list or string that `text` is, or the beginning of it. Never raises."""
    stripped = text.strip() if len(text) <= JSON_LIMIT else text[:PREFIX_LIMIT].lstrip()
    if not stripped or stripped[0] not in '{["' or stripped[:2] in ("[(", "['"):  # Python rows are data: not read
        return _NOTHING
    if len(text) <= JSON_LIMIT:
        try:
            return Decoded(True, json.loads(stripped))
        except (ValueError, RecursionError):
            pass
    # an object with a quoted key, or a list whose first item is an object (lists of rows are data)
    if stripped[0] == '"' or not re.match(r"""\{\s*["'}]|\[\s*[{\]]""", stripped):
        return _NOTHING
    as_json, rest = _as_json(stripped[:PREFIX_LIMIT])
    try:
        value, end = _DECODER.raw_decode(as_json)
    except (ValueError, RecursionError):
        return _beginning(as_json)
    if rest or end < len(as_json):
        return _NOTHING
    return Decoded(True, value, len(stripped) <= PREFIX_LIMIT)


def _beginning(cut: str) -> Decoded:
    try:
        value = from_json(cut, allow_partial=True)
    except ValueError:
        return _NOTHING
    return Decoded(True, value, complete=False) if value else _NOTHING


def written(value: Any) -> str:
    """`value` as JSON on one line. Never raises."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError, TypeError):
        return str(type(value).__name__)


def _as_json(text: str) -> tuple[str, str]:
    """Up to the first thing that is part of no literal, as the `<` of an object that was printed; and the rest."""
    parts: list[str] = []
    position = 0
    while token := _TOKEN.match(text, position):
        position = token.end()
        parts.append(_token(token))
    return "".join(parts), text[position:].strip()


def _token(token: re.Match[str]) -> str:
    string = token["single"] if token["double"] is None else token["double"]
    if string is not None:
        return json.dumps(_ESCAPE.sub(_unescaped, string))
    if token["number"]:
        number = json.dumps(_number(token["number"]))
        return number if token["key"] is None else f'"{number}"'
    if token["word"]:
        return _WORDS.get(token["word"]) or json.dumps(token["word"])
    if token["comma"]:
        return "," if token["last"] is None else ""
    mark = token["mark"] or token["closing"]
    return {"(": "[", ")": "]"}.get(mark, mark)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code:
        character = chr(int(code, 16))
        return character if not "\ud800" <= character <= "\udfff" else "\ufffd"
    return _ESCAPES.get(match[3], match[3])


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("+-").isdecimal() and len(text) < 300 else float(text)
