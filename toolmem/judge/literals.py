"""Read JSON and printed Python values, even if their end was cut off.

Tools written in Python answer with `str(dict)`, with a printed object such as
`ToolResult(success=False, error='no such file')`, or with its fields alone
(`success=False error='no such file'`). An object is read as a dict of its fields; an object with
the name of an exception, `ToolError(code=4)`, as `{"error": {"type": "ToolError", "code": 4}}`.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import lru_cache
from typing import Any

from msgspec import Struct

JSON_LIMIT = 2_000_000  # characters; a longer text is not read as JSON
PYTHON_LIMIT = 6_000  # characters that are read of a text that is not JSON

_STARTS_CONTAINER = re.compile(
    r"""\{\s*["'}]|\[\s*(?:[{\]'"]|[A-Za-z_][\w.]{0,80}\()"""
    r"|[A-Za-z_][\w.]{0,80}\(\s*[A-Za-z_]\w{0,60}=(?!=)"  # ToolResult(success=
)
_STARTS_FIELDS = re.compile(
    r"[A-Za-z_]\w{0,60}=(?:['\"\[{(<\d-]|(?:True|False|None)\b|[A-Z]\w{0,60}\()"
)
_TOKEN = re.compile(
    r"""\s*(?:
        [bru]?(?:"(?P<double>(?:[^"\\]|\\.)*+)" | '(?P<single>(?:[^'\\]|\\.)*+)')
      | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
      | (?P<field>[A-Za-z_]\w*)=(?!=)
      | (?P<name>[A-Za-z_][\w.]*)?(?P<round>\() | (?P<opening>[\[{]) | (?P<closing>[\]})])
      | (?P<mark>[:,])
      | (?P<word>[A-Za-z_][\w.]*+)
      | <(?:[\w.]{1,80}:\s)?(?P<shown>[^<>\n]{1,200})>  # <Status.FAILED: 'failed'>
    )""",
    re.VERBOSE | re.DOTALL,
)
_FIELD_FOLLOWS = re.compile(r"\s*[A-Za-z_]\w*=(?!=)")
_EXCEPTION_NAME = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Failure|Fault)")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_WORDS = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}
_OUTCOMES = ("success", "ok", "is_error")


class Decoded(Struct, frozen=True):
    """The value that was read from a text, if it is a literal."""

    found: bool  # False: the text is no literal
    value: Any = None
    complete: bool = True  # False: the text was cut, and `value` is its beginning


NO_LITERAL = Decoded(False)


@lru_cache(maxsize=4)  # an output is read several times during one check
def read(text: str) -> Decoded:
    """Read a text that is an object, a list or a string; its end may be missing. Never raises.

    The value is cached: do not change it.
    """
    stripped = text.strip() if len(text) <= JSON_LIMIT else text[:PYTHON_LIMIT].lstrip()
    if not stripped or stripped.startswith("[("):  # rows of a database are data
        return NO_LITERAL
    if stripped[0] in '{["' and len(text) <= JSON_LIMIT:
        with suppress(ValueError, RecursionError):
            return Decoded(True, json.loads(stripped))
    head = stripped[:PYTHON_LIMIT]
    with suppress(ValueError):
        if _STARTS_CONTAINER.match(head):
            return _Reader(head).read(whole=len(stripped) <= PYTHON_LIMIT)
        if _STARTS_FIELDS.match(head):
            return _Reader(head).read_fields()
    return NO_LITERAL


def write(value: Any) -> str:
    """Write `value` as JSON on one line. Never raises."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError, TypeError):
        return type(value).__name__


class _Container(Struct):
    """A list or object of which only the beginning has been read so far."""

    holder: list[Any] | dict[str, Any]
    closing: str  # the bracket that ends it; "" for the whole text
    awaits: str = "item"  # what comes next: item, colon, value, comma
    key: str = ""  # of the value that comes next
    name: str = ""  # of a printed object

    def put(self, value: Any) -> None:
        if isinstance(self.holder, list) and self.awaits == "item":
            self.holder.append(value)
            self.awaits = "comma"
        elif isinstance(self.holder, dict) and self.awaits == "value":
            self.holder[self.key] = value
            self.awaits = "comma"
        elif isinstance(self.holder, dict) and self.awaits == "item" and not self.name:
            self.key = str(value)
            self.awaits = "colon"
        else:
            raise ValueError("a value where none is expected")

    def punctuate(self, mark: str) -> None:
        if self.awaits != ("colon" if mark == ":" else "comma"):
            raise ValueError(f"a {mark} where none is expected")
        self.awaits = "value" if mark == ":" else "item"

    def begin_field(self, name: str) -> None:
        if isinstance(self.holder, list):  # `Point(1, y=2)` reads as a list
            return
        is_next_of_text = self.awaits == "comma" and not self.closing  # `a=1 b=2`, without commas
        if self.awaits != "item" and not is_next_of_text:
            raise ValueError("a field where none is expected")
        self.key = name
        self.awaits = "value"

    @property
    def value(self) -> Any:
        if isinstance(self.holder, dict) and _EXCEPTION_NAME.fullmatch(self.name):
            return {"error": {"type": self.name, **self.holder}}
        return self.holder


class _Reader:
    """Reads the tokens of a text into values. Raises ValueError if the text is no literal."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.open: list[_Container] = []
        self.bare_words = False

    def read(self, whole: bool) -> Decoded:
        """Read a list or an object. `whole`: the text was not cut before it was read."""
        found: list[Any] = []
        rest = self._tokens(_Container(found, ""))
        if len(self.open) == 1:
            return NO_LITERAL if rest else Decoded(True, found[0], whole)
        # The text was cut: close what is still open, from the innermost outwards.
        for inner, outer in zip(self.open[:1:-1], self.open[-2:0:-1], strict=True):
            if inner.holder:
                outer.put(inner.value)
        cut = self.open[1]
        return Decoded(True, cut.value, complete=False) if cut.holder else NO_LITERAL

    def read_fields(self) -> Decoded:
        """Read a text of two or more fields: `success=False error=denied`.

        If a value is a bare word (`level=info`), the text is a line of a log and is not read,
        unless a field such as `success` is true or false.
        """
        fields: dict[str, Any] = {}
        outer = _Container(fields, "")
        rest = self._tokens(outer)
        was_cut = rest[:1] in ("'", '"') and outer.awaits == "value"
        is_outcome = any(isinstance(fields.get(name), bool) for name in _OUTCOMES)
        is_log = self.bare_words and not is_outcome
        if is_log or len(self.open) > 1 or len(fields) + was_cut < 2:
            return NO_LITERAL
        is_whole = outer.awaits == "comma" and not rest
        return Decoded(True, fields, complete=not rest) if is_whole or was_cut else NO_LITERAL

    def _tokens(self, outer: _Container) -> str:
        """Read up to the first character that is no part of a literal; return the rest."""
        self.open = [outer]
        position = 0
        while token := _TOKEN.match(self.text, position):
            position = token.end()
            self._take(token)
        return self.text[position:].strip()

    def _take(self, token: re.Match[str]) -> None:
        kind = token.lastgroup
        top = self.open[-1]
        if kind == "mark":
            top.punctuate(token["mark"])
        elif kind == "field":
            top.begin_field(token["field"])
        elif kind == "opening":
            self.open.append(
                _Container({}, "}") if token["opening"] == "{" else _Container([], "]")
            )
        elif kind == "round":
            has_fields = _FIELD_FOLLOWS.match(self.text, token.end()) is not None
            self.open.append(_Container({} if has_fields else [], ")", name=token["name"] or ""))
        elif kind == "closing":
            self.open.pop()
            if token["closing"] != top.closing or top.awaits not in ("item", "comma"):
                raise ValueError(f"a {token['closing']} where none is expected")
            self.open[-1].put(top.value)
        elif kind in ("double", "single"):
            top.put(_ESCAPE.sub(_unescaped, token[kind]))
        elif kind == "number":
            number = token["number"]
            is_whole = number.lstrip("+-").isdecimal() and len(number) < 300
            top.put(int(number) if is_whole else float(number))
        elif kind == "shown":
            top.put(token["shown"].strip("'\""))
        else:
            word = token["word"]
            self.bare_words = self.bare_words or word not in _WORDS
            top.put(_WORDS.get(word, word))


def _unescaped(match: re.Match[str]) -> str:
    if code := match[1] or match[2]:
        character = chr(int(code, 16))
        return character if not "\ud800" <= character <= "\udfff" else "\ufffd"
    return _ESCAPES.get(match[3], match[3])
