"""The parameters of a call: flattened to paths, and the shapes of their values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 4  # levels of nesting that are looked into
MAX_LEAVES = 200  # values of one call that are looked at
MAX_TEXT = 4000  # characters of one value that are looked at

# One alternation, tried in this order; the name of the group that matched is the shape.
_NAMED_SHAPE = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})"
    r"|(?P<time>\d{1,2}:\d{2}(?::\d{2})?)"
    r"|(?P<datetime>\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}\S*)"
    r"|(?P<slash_date>\d{1,4}[/.]\d{1,2}[/.]\d{1,4})"
    r"|(?P<integer_text>[+-]?\d+)"
    r"|(?P<number_text>[+-]?\d+\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<email>[^@\s]++@(?=[^@\s]++\Z)[^@\s]+\.[^@\s]+)"
    r"|(?P<url>[a-z][a-z0-9+.-]*://\S+)"
    r"|(?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"
    r"|(?P<path>(?:~|\.{0,2})/[^\n]*|[A-Za-z]:\\[^\n]*)"
    r"|(?P<json_text>\{[\s\S]*\}|\[[\s\S]*\])"
)
_CODE = re.compile(r"[^\s,]{1,24}")
_DIGITS = re.compile(r"\d+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Chinese, Japanese and Korean put no space between words: limit不能超过7 holds `limit` as a word of its own.
IN_WORD = r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
QUOTES = "'\"`“”‘’«»"


def parameters(given: dict[str, Any] | list[Any] | str) -> dict[str, Any]:
    """The named parameters of a call. A text that holds a JSON object is read as one; any other has the name ""."""
    if isinstance(given, dict):
        return given
    if isinstance(given, str):
        if given[:200].lstrip().startswith("{"):
            try:
                read = json.loads(given)
            except (ValueError, RecursionError):
                return {"": given}
            if isinstance(read, dict):
                return read
        return {"": given} if given else {}
    return {"": given} if given else {}


def canonical(given: dict[str, Any] | list[Any] | str) -> str:
    """One text per input: equal exactly where two calls were given the same."""
    if isinstance(given, str):
        return given
    return json.dumps(given, sort_keys=True, ensure_ascii=False, default=str)


def leaves(given: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(path, value) for every scalar and every list: `cabin`, `flights[]` (the list), `flights[].date`.

    Names are joined by dots; at most MAX_LEAVES pairs, MAX_DEPTH levels deep.
    """
    stack: list[tuple[str, Any, int]] = [(str(name), value, 0) for name, value in reversed(list(given.items()))]
    count = 0
    while stack and count < MAX_LEAVES:
        path, value, depth = stack.pop()
        if isinstance(value, dict):
            if depth < MAX_DEPTH:
                inside = [(f"{path}.{name}" if path else str(name), v, depth + 1) for name, v in value.items()]
                stack.extend(reversed(inside))
            continue
        count += 1
        yield path, value
        if isinstance(value, list) and depth < MAX_DEPTH:
            stack.extend((f"{path}[]", v, depth + 1) for v in reversed(value[:50]))


def at(given: Any, path: str) -> Any:
    """The value at a path as `leaves` names it (lists are not entered); None where there is none."""
    if not isinstance(given, dict):
        return None
    if path in given:
        return given[path]
    name = min((name for name in given if path.startswith(f"{name}.")), key=len, default=None)
    return None if name is None else at(given[name], path[len(name) + 1 :])


def type_name(value: Any) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def text_shape(text: str) -> str:
    """How a text is written.

    "empty", "date", "email", ... by name; "like:gift_card_#" for short codes that hold digits (# stands for a run of
    them, \\# for the sign itself); "word", "words", "lines" for the rest.
    """
    stripped = text.strip()
    if not stripped:
        return "empty"
    if named := _NAMED_SHAPE.fullmatch(stripped):
        return str(named.lastgroup)
    if _CODE.fullmatch(stripped):
        masked = _DIGITS.sub("#", stripped.replace("\\", "\\\\").replace("#", "\\#"))
        return f"like:{masked}" if _DIGITS.search(stripped) else "word"
    return "lines" if "\n" in stripped else "words"


def number_of(value: Any) -> float | None:
    """The finite number that a value is, or that its text spells."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value) if abs(value) < 1e300 and math.isfinite(value) else None
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,15}(?:\.\d+)?\s*", value):
        return float(value)
    return None


def spaced(name: str) -> str:
    """A name in camel case as words: `userId` as `user Id`."""
    return _CAMEL.sub(" ", name)


def is_written_in(message: str, name: str, *, quoted: bool = False) -> bool:
    """Whether a message holds a name as it is written: as a word of its own, or in quotation marks."""
    before, after = (f"[{QUOTES}]", f"[{QUOTES}]") if quoted else (f"(?<!{IN_WORD}|-)", f"(?!{IN_WORD}|-)")
    return bool(name) and name in message and re.search(before + re.escape(name) + after, message) is not None
