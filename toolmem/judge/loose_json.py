"""Objects in a text that is almost JSON: a forgiving scanner whose work is linear in the length of the text.

A string ends at a quote only where the grammar goes on behind it (a key before `:`, a value before `,` or `}`), so
unescaped quotes and apostrophes inside do no harm, and well-formed JSON reads as always. What cannot be read is
passed over and the search goes on behind it.
"""

from __future__ import annotations

import math
import re
from typing import Any

Object = tuple[tuple[str, Any], ...]  # pairs in order, so that a key that comes twice is seen; lists are lists

MAX_DEPTH = 20
MAX_KEY = 64  # characters; a longer "key", or one with these signs in it, is prose that a stray quote has swallowed
_NO_KEY = frozenset('{}"\n')
MAX_STARTS = 10_000  # braces at which an object is looked for
_START = re.compile(r"\{(?=\s*+[^\s{\[\],:])|</think(?:ing)?>", re.IGNORECASE)
_GAP = re.compile(r"(?:[\s\ufeff\u200b]++|//[^\n]*+|\#[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))*+")
_BARE = re.compile(r"[^\s,:{}\[\]\"'“”‘’：，]{1,400}")
# Behind a closing quote; short gaps only, so that a look ahead from each quote of a text stays cheap
_NEAR = r"(?:\s++|//[^\n]{0,100}+\n|\#[^\n]{0,100}+\n|/\*[^*]{0,100}+\*/){0,8}+"
_COLON = r"\s*+[:：]"
_BEHIND_KEY = _NEAR + "[:：]"
_BEHIND_VALUE = rf"{_NEAR}(?:\}}|[,，]{_NEAR}(?:[\"'“”„‘’`}}]|\w{{1,64}}{_COLON}))"
_BEHIND_ITEM = _NEAR + r"[,\]]"
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "“”„‟", "”": "“”„‟", "„": "“”„‟", "‟": "“”„‟", "‘": "‘’", "’": "‘’"}


class _Strings:
    """How strings end in one place of the grammar. `insides`, by opening quote, match up to where a string ends."""

    def __init__(self, behind: str, never: str = "") -> None:
        """`behind` follows the closing quote; a quote that `never` follows ends the search: the string is none."""
        stop = f"(?!{behind}|{never})" if never else f"(?!{behind})"
        self.behind = re.compile(behind)
        self.insides = {
            opening: re.compile(rf"(?:[^\\{closing}]++|\\.|[{closing}]{stop})*+", re.DOTALL)
            for opening, closing in _QUOTES.items()
        }


_KEYS = _Strings(_BEHIND_KEY)
# an unescaped quote before a colon inside a value: the value has swallowed the next key
_VALUES, _ITEMS = _Strings(_BEHIND_VALUE, never=_COLON), _Strings(_BEHIND_ITEM, never=_COLON)
_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"  # a character beyond U+FFFF in JSON
    r"|(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8}))|(.))",  # the last two are Python's
    re.DOTALL,
)
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_LITERALS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "nan": math.nan,
    "infinity": math.inf,
    "-infinity": -math.inf,
}


class _NoObjectError(Exception):
    """Not an object after all. `truncated`: the text ended inside it."""

    def __init__(self, *, truncated: bool = False) -> None:
        self.truncated = truncated


def top_level_objects(text: str) -> tuple[list[Object], bool]:
    """The objects of a text in order, and whether an object at its end is cut off.

    What stands before a closing `</think>` outside of objects were thoughts and is dropped. Numbers are floats,
    words without quotes are texts. A text on which the allowed work runs out holds no objects.
    """
    objects: list[Object] = []
    truncated = False
    scanner = _Scanner(text)
    position = starts = 0
    while found := _START.search(text, position):
        if found.group() != "{":
            objects, truncated, position = [], False, found.end()
            continue
        starts += 1
        try:
            value, position = scanner.object_at(found.start(), 0)
            objects.append(value)
            truncated = False
        except _NoObjectError as error:
            truncated = error.truncated
            position = max(scanner.last_string, found.start()) + 1
        if starts == MAX_STARTS or scanner.exhausted:
            return [], False
    return objects, truncated


class _Scanner:
    """Reads values at positions of one text. `last_string` is where the last string began: a stray quote may have
    swallowed the beginning of a good object, so a failed search goes on right behind it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.last_string = -1
        self._work = 8 * len(text) + 50_000  # characters that may be looked at, all attempts together

    @property
    def exhausted(self) -> bool:
        """The work allowed for a text of this length is done."""
        return self._work < 0

    def object_at(self, start: int, depth: int) -> tuple[Object, int]:
        """The object whose `{` stands at `start`, and the position behind it. Raises _NoObjectError."""
        if depth > MAX_DEPTH:
            raise _NoObjectError
        pairs: list[tuple[str, Any]] = []
        position = self._gap(start + 1)
        while self._peek(position) != "}":
            key, position = self._key(position)
            value, position = self._value(self._gap(position), depth)
            pairs.append((key, value))
            position = self._separator(position, "}")
        return tuple(pairs), position + 1

    def _list_at(self, start: int, depth: int) -> tuple[list[Any], int]:
        if depth > MAX_DEPTH:
            raise _NoObjectError
        items: list[Any] = []
        position = self._gap(start + 1)
        while self._peek(position) != "]":
            item, position = self._value(position, depth, _ITEMS)
            items.append(item)
            position = self._separator(position, "]")
        return items, position + 1

    def _separator(self, position: int, closing: str) -> int:
        """Behind the commas that follow a value, at the closing bracket or the next item."""
        position = self._gap(position)
        sign = self._peek(position)
        if sign == closing:
            return position
        if sign not in ",，":
            raise _NoObjectError
        return self._gap(position + 1)

    def _key(self, position: int) -> tuple[str, int]:
        if self._peek(position) in _QUOTES:
            key, position = self._string(position, _KEYS)
            if len(key) > MAX_KEY or not _NO_KEY.isdisjoint(key):
                raise _NoObjectError
        else:
            key, position = self._bare(position)
        position = self._gap(position)
        if self._peek(position) not in ":：":
            raise _NoObjectError
        return key, position + 1

    def _value(self, position: int, depth: int, strings: _Strings = _VALUES) -> tuple[Any, int]:
        sign = self._peek(position)
        if sign == "{":
            return self.object_at(position, depth + 1)
        if sign == "[":
            return self._list_at(position, depth + 1)
        if sign in _QUOTES:
            return self._string(position, strings)
        word, position = self._bare(position)
        if NUMBER.match(word):
            return float(word), position
        return _LITERALS.get(word.lower(), word), position

    def _bare(self, position: int) -> tuple[str, int]:
        match = _BARE.match(self.text, position)
        if match is None:
            raise _NoObjectError
        self._spend(match.end() - position)
        return match.group(), match.end()

    def _string(self, start: int, strings: _Strings) -> tuple[str, int]:
        """The string whose opening quote stands at `start`, and the position behind its closing quote."""
        self.last_string = start
        match = strings.insides[self.text[start]].match(self.text, start + 1)
        end = match.end() if match else start + 1
        self._spend(end - start)
        self._peek(end)
        if strings.behind.match(self.text, end + 1) is None:
            raise _NoObjectError
        inside = self.text[start + 1 : end]
        return (_ESCAPE.sub(_escaped, inside) if "\\" in inside else inside), end + 1

    def _gap(self, position: int) -> int:
        """Behind white space and comments."""
        match = _GAP.match(self.text, position)
        end = match.end() if match else position
        self._spend(end - position)
        return end

    def _peek(self, position: int) -> str:
        if position >= len(self.text):
            raise _NoObjectError(truncated=True)
        self._spend(1)
        return self.text[position]

    def _spend(self, characters: int) -> None:
        self._work -= characters
        if self._work < 0:
            raise _NoObjectError


def _escaped(match: re.Match[str]) -> str:
    """What an escape stands for. Half of a surrogate pair, and what is no character, becomes U+FFFD."""
    high, low, *single, sign = match.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00))
    digits = next(filter(None, single), None)
    if digits is None:
        return _ESCAPES.get(sign, sign)
    code = int(digits, 16)
    return "\ufffd" if 0xD800 <= code < 0xE000 or code > 0x10FFFF else chr(code)
