"""A reader of JSON and of Python literals, which also reads the beginning of one that was cut off.

Recorded outputs are often cut at some length, and tools written in Python answer with `str(dict)`. `ast.literal_eval`
reads neither a cut text nor a very deep one, and warns about unknown escapes; this reader does all three quietly.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

JSON_LIMIT = 2_000_000  # characters; above it only the beginning is read
PREFIX_LIMIT = 6_000  # characters that the lenient reader looks at
DEPTH_LIMIT = 40

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>[bru]?"(?:[^"\\]|\\.)*+" | [bru]?'(?:[^'\\]|\\.)*+')
      | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
      | (?P<word>[A-Za-z_][\w.]*)
      | (?P<mark>[\[\]{}(),:])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_CLOSES = {"]": "[", "}": "{", ")": "("}


@dataclass(frozen=True, slots=True)
class Reading:
    """`value` is None with `found` False where the text is no literal at all."""

    found: bool
    value: Any = None
    complete: bool = True  # False: the text was cut, `value` holds its beginning


_NOTHING = Reading(False)


def read(text: str) -> Reading:
    """The object, list or string that `text` is, or the beginning of it. Never raises."""
    stripped = text.strip() if len(text) <= JSON_LIMIT else text[:PREFIX_LIMIT].lstrip()
    if not stripped or stripped[0] not in '{["' or stripped[:2] in ("[(", "['"):  # Python rows are data: not read
        return _NOTHING
    if len(text) <= JSON_LIMIT:
        try:
            return Reading(True, json.loads(stripped))
        except (ValueError, RecursionError):
            pass
    if stripped[0] == '"' or not _opens_a_literal(stripped):
        return _NOTHING
    return _read_prefix(stripped[:PREFIX_LIMIT], cut=len(stripped) > PREFIX_LIMIT)


def written(value: Any) -> str:
    """`value` as JSON on one line. Never raises."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError, TypeError):
        return str(type(value).__name__)


def _opens_a_literal(text: str) -> bool:
    """An object with a quoted key, or a list whose first item is an object (lists of rows are data: not read)."""
    return bool(re.match(r"""\{\s*["'}]|\[\s*[{\]]""", text))


def _unquoted(token: str) -> str:
    body = token[token.index(token[-1]) + 1 : -1]
    if "\\" not in body:
        return body
    return _ESCAPE.sub(_unescaped, body)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code:
        character = chr(int(code, 16))
        return character if not "\ud800" <= character <= "\udfff" else "\ufffd"
    return _PLAIN_ESCAPES.get(match[3], match[3])


def _read_prefix(text: str, cut: bool) -> Reading:
    """Token by token with a stack of open containers; stops at the first thing that is not a literal."""
    root: list[Any] = []
    stack: list[tuple[str, Any]] = [("[", root)]
    keys: list[Any] = [None]  # per open object: the key that waits for its value
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            break
        position = match.end()
        mark = match["mark"]
        if mark in ("[", "{", "("):
            if len(stack) > DEPTH_LIMIT:
                return _NOTHING
            container: Any = {} if mark == "{" else []
            _put(stack, keys, container)
            stack.append((mark, container))
            keys.append(None)
        elif mark in _CLOSES:
            if stack[-1][0] != _CLOSES[mark]:
                return _NOTHING
            stack.pop()
            keys.pop()
            if len(stack) == 1:
                trailing = text[position:].strip()
                return _NOTHING if trailing else Reading(True, root[0], complete=not cut)
        elif mark is None:
            _put(stack, keys, _scalar(match))
    # the text ended (or went wrong) inside: what was read up to here is the beginning of something cut off
    return Reading(True, root[0], complete=False) if root and root[0] else _NOTHING


def _scalar(match: re.Match[str]) -> Any:
    if match["string"] is not None:
        return _unquoted(match["string"])
    if match["number"] is not None:
        number = match["number"]
        if number.lstrip("+-").isdecimal() and len(number) < 300:
            return int(number)
        return float(number)
    return _WORDS.get(match["word"], match["word"])


def _put(stack: list[tuple[str, Any]], keys: list[Any], value: Any) -> None:
    mark, container = stack[-1]
    if mark != "{":
        container.append(value)
    elif keys[-1] is None:
        keys[-1] = value if isinstance(value, str) else str(value)
    else:
        container[keys[-1]] = value
        keys[-1] = None
