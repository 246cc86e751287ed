"""Changes a JSON text to hold another value and leaves every byte alone that the change does not concern.

    changed('{"a": 1}', {"a": 1, "b": 2})   # '{"a": 1, "b": 2}'

Spacing, key order, escapes, numbers and comments stay as somebody wrote them; what is new is laid out like what
stands around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from toolmem.errors import RequestError
from toolmem.late import late_pattern

DEEPEST = 200
_MOST_EDITS = 200
_SHORT = 120  # characters of a list that stands in one line
_SPACE = late_pattern(r"[ \t\r\n]*")
_COMMENT = late_pattern(r"//[^\r\n]*|/\*.*?\*/", re.S)
_NUMBER = late_pattern(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORD = late_pattern(r"true|false|null")
_LINE_END = late_pattern(r"\r\n|\n|\r")
_WORDS = {"true": True, "false": False, "null": None}


@dataclass(slots=True)
class TextSpan:
    """A value and where it stands: of a container, also what it holds."""

    start: int
    end: int = 0
    value: Any = None
    items: list[TextItem] = field(default_factory=list)


@dataclass(slots=True)
class TextItem:
    """A member of an object, or an element of an array."""

    key: str | None
    start: int  # of the key, or of the element
    held: TextSpan
    comma: int = -1  # where the comma after it stands

    @property
    def end(self) -> int:
        return self.held.end


class JsonText:
    """A JSON text that is read once, its values with their places. Raises RequestError with line and column."""

    def __init__(self, text: str, *, comments: bool = False) -> None:
        self.text, self._comments = text, comments
        at = self._gap(0)
        self.root = self._value(at, 1)
        rest = self._gap(self.root.end)
        if rest < len(text):
            raise self._problem("expected the end of the file", rest)

    def _value(self, at: int, depth: int) -> TextSpan:
        text = self.text
        first = text[at : at + 1]
        if first and first in "{[":
            if depth > DEEPEST:
                raise self._problem(f"values are nested more than {DEEPEST} deep", at)
            return self._container(at, depth, "}" if first == "{" else "]")
        if first == '"':
            value, end = self._string(at)
            return TextSpan(at, end, value)
        if found := _NUMBER.match(text, at):
            return TextSpan(at, found.end(), _number(found[0]))
        if found := _WORD.match(text, at):
            return TextSpan(at, found.end(), _WORDS[found[0]])
        raise self._problem("expected a value", at)

    def _container(self, at: int, depth: int, close: str) -> TextSpan:
        span = TextSpan(at)
        place = self._gap(at + 1)
        while self.text[place : place + 1] != close:
            if span.items and span.items[-1].comma < 0:
                raise self._problem(f"expected ',' or '{close}'", place)
            item = self._item(place, depth, is_object=close == "}")
            span.items.append(item)
            place = self._gap(item.end)
            if self.text[place : place + 1] == ",":
                item.comma = place
                place = self._gap(place + 1)
                if self.text[place : place + 1] == close and not self._comments:
                    raise self._problem("a comma stands before the end of a list of values", item.comma)
        span.end = place + 1
        span.value = (
            {str(each.key): each.held.value for each in span.items}
            if close == "}"
            else [each.held.value for each in span.items]
        )
        return span

    def _item(self, at: int, depth: int, *, is_object: bool) -> TextItem:
        if not is_object:
            return TextItem(None, at, self._value(at, depth + 1))
        if self.text[at : at + 1] != '"':
            raise self._problem("expected a key in double quotes", at)
        key, end = self._string(at)
        colon = self._gap(end)
        if self.text[colon : colon + 1] != ":":
            raise self._problem("expected ':'", colon)
        return TextItem(key, at, self._value(self._gap(colon + 1), depth + 1))

    def _string(self, at: int) -> tuple[str, int]:
        try:
            value, end = scanstring(self.text, at + 1)
        except json.JSONDecodeError as error:
            raise self._problem(error.msg, error.pos) from None
        return value, end

    def _gap(self, at: int) -> int:
        """The place behind white space and comments."""
        while True:
            at = _SPACE.match(self.text, at).end()  # type: ignore[union-attr]
            if self.text[at : at + 1] != "/":
                return at
            found = _COMMENT.match(self.text, at)
            if found is None:
                raise self._problem("expected a value", at)
            if not self._comments:
                raise self._problem("a comment, which this file's agent does not read", at)
            at = found.end()

    def _problem(self, what: str, at: int) -> RequestError:
        before = _LINE_END.split(self.text[:at])
        return RequestError(f"line {len(before)}, column {len(before[-1]) + 1}: {what}", field="settings")


def laid_out(value: Mapping[str, Any]) -> str:
    """A new text, as `changed` would have added it to one."""
    return changed("{}", value) + "\n"


def changed(text: str, wanted: Mapping[str, Any], *, comments: bool = False) -> str:
    """The text with as little changed as makes it hold `wanted`. Raises RequestError where it cannot be read."""
    for _ in range(_MOST_EDITS):
        read = JsonText(text, comments=comments)
        edits = _first_difference(_Layout(read), read.root, wanted)
        if not edits:
            return text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
    raise RequestError(f"more than {_MOST_EDITS} places would change, or a key stands twice", field="settings")


_Edit = tuple[int, int, str]


def _first_difference(layout: _Layout, span: TextSpan, wanted: Any) -> list[_Edit]:
    """What changes next; nothing where the value is the wanted one."""
    if span.value == wanted:
        return []
    if isinstance(span.value, dict) and isinstance(wanted, Mapping):
        return _in_object(layout, span, wanted)
    if isinstance(span.value, list) and isinstance(wanted, list):
        return _in_array(layout, span, wanted)
    return [(span.start, span.end, layout.shown(wanted, span.start))]


def _in_object(layout: _Layout, span: TextSpan, wanted: Mapping[str, Any]) -> list[_Edit]:
    last = {item.key: at for at, item in enumerate(span.items)}  # of a key that stands twice the last one counts
    for key, at in last.items():
        if key not in wanted:
            return layout.removed(span, at)
    for key, at in last.items():
        if edits := _first_difference(layout, span.items[at].held, wanted[str(key)]):
            return edits
    key = next(key for key in wanted if key not in last)
    return layout.added(span, len(span.items), key, wanted[key])


def _in_array(layout: _Layout, span: TextSpan, wanted: list[Any]) -> list[_Edit]:
    items = span.items
    at = next((n for n, (item, new) in enumerate(zip(items, wanted, strict=False)) if item.held.value != new), None)
    at = min(len(items), len(wanted)) if at is None else at
    if len(items) > len(wanted):
        return layout.removed(span, at)
    if len(items) < len(wanted):
        return layout.added(span, at, None, wanted[at])
    return _first_difference(layout, items[at].held, wanted[at])


class _Layout:
    """How a text is laid out, and what is added to it or taken out of it in the same way."""

    def __init__(self, read: JsonText) -> None:
        self._text, root = read.text, read.root
        found = _LINE_END.search(self._text)
        self._line_end = found[0] if found else "\n"
        self._spread = not root.items or bool(_LINE_END.search(self._text, root.start, root.end))
        first = self._text[root.start + 1 : root.items[0].start] if root.items else ""
        self._step = re.split(r"[\r\n]", first)[-1] if _LINE_END.search(first) and not first.strip() else ""
        self._step = self._step or "  "

    def shown(self, value: Any, at: int) -> str:
        """A value that begins at this place."""
        if not self._spread:
            return json.dumps(value, ensure_ascii=False)
        return self._block(value, self._indent(at))

    def added(self, span: TextSpan, index: int, key: str | None, value: Any) -> list[_Edit]:
        named = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
        if not span.items:
            return self._first_added(span, named, value)
        first = span.items[0]
        if not _LINE_END.search(self._text, span.start, first.start):
            lead, new = " ", named + json.dumps(value, ensure_ascii=False)
        else:
            indent = self._indent(first.start)
            lead, new = self._line_end + indent, named + self._block(value, indent)
        if index < len(span.items):
            return [(span.items[index].start, span.items[index].start, f"{new},{lead}")]
        last = span.items[-1]
        ends = max(last.end, last.comma + 1)
        behind = self._behind_comments(ends, span.end - 1)
        if behind > ends and not lead.strip(" "):
            lead = self._line_end  # a comment may end with its line
        if last.comma >= 0:  # one stood behind the last value already, and so it does again
            return [(behind, behind, f"{lead}{new},")]
        if behind == last.end:
            return [(last.end, last.end, f",{lead}{new}")]
        return [(last.end, last.end, ","), (behind, behind, lead + new)]

    def _first_added(self, span: TextSpan, named: str, value: Any) -> list[_Edit]:
        if not self._spread:
            return [(span.start + 1, span.start + 1, named + json.dumps(value, ensure_ascii=False))]
        outer = self._indent(span.start)
        new = f"{self._line_end}{outer}{self._step}{named}{self._block(value, outer + self._step)}"
        inside = self._text[span.start + 1 : span.end - 1]
        if inside.strip():  # a comment
            return [(span.start + 1, span.start + 1, new + self._line_end + outer)]
        return [(span.start + 1, span.end - 1, new + self._line_end + outer)]

    def removed(self, span: TextSpan, index: int) -> list[_Edit]:
        item, items = span.items[index], span.items
        if len(items) == 1:
            start, end = span.start + 1, span.end - 1
            rest = self._text[start : item.start] + self._text[item.end : end].replace(",", "", item.comma >= 0)
            return [(start, end, "")] if not rest.strip() else self._cut(item.start, item)
        if index == 0:
            following = items[1].start
            is_plain = not self._text[item.end : following].replace(",", "", 1).strip()
            return [(item.start, following, "")] if is_plain else self._cut(item.start, item)
        before = items[index - 1]
        start = self._after_comments(before.comma + 1, item)
        if index < len(items) - 1 or item.comma >= 0:
            return self._cut(start, item)
        return [(before.comma, before.comma + 1, ""), (start, item.end, "")]

    def _cut(self, start: int, item: TextItem) -> list[_Edit]:
        """Without an item and its comma; a comment between these two stays."""
        if item.comma < 0 or not self._text[item.end : item.comma].strip():
            return [(start, max(item.end, item.comma + 1), "")]
        return [(start, item.end, ""), (item.comma, item.comma + 1, "")]

    def _after_comments(self, at: int, item: TextItem) -> int:
        """Where to cut before an item: a comment that ends with its line keeps the line's end."""
        comment = self._last_comment(at, item.start)
        if comment is None:
            return at
        end = item.end if self._text[item.end : item.comma].strip() else max(item.end, item.comma + 1)
        line = _LINE_END.match(self._text, comment.end()) if comment[0].startswith("//") else None
        return comment.end() if line is None or self._text[end : end + 1] in ("\r", "\n") else line.end()

    def _behind_comments(self, at: int, end: int) -> int:
        """Where the last comment between two places ends; the first place where there is none."""
        comment = self._last_comment(at, end)
        return comment.end() if comment else at

    def _last_comment(self, at: int, end: int) -> re.Match[str] | None:
        last: re.Match[str] | None = None
        while at < end and self._text[at] in " \t\r\n/":
            found = _COMMENT.match(self._text, at)
            at = found.end() if found else at + 1
            last = found or last
        return last

    def _block(self, value: Any, indent: str) -> str:
        """A value over several lines; what holds plain values alone, and is short, in one."""
        flat = json.dumps(value, ensure_ascii=False)
        parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        if not parts or (isinstance(value, list) and len(flat) <= _SHORT and not any(map(_holds, parts))):
            return flat
        inner = f"{self._line_end}{indent}{self._step}"
        blocks = [self._block(each, indent + self._step) for each in parts]
        if isinstance(value, dict):
            blocks = [f"{json.dumps(key, ensure_ascii=False)}: {each}" for key, each in zip(value, blocks, strict=True)]
        opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
        return opening + inner + f",{inner}".join(blocks) + self._line_end + indent + closing

    def _indent(self, at: int) -> str:
        """The white space with which the line of this place begins."""
        start = max(self._text.rfind("\n", 0, at), self._text.rfind("\r", 0, at)) + 1
        return re.match(r"[ \t]*", self._text[start:at])[0]  # type: ignore[index]


def _holds(value: Any) -> bool:
    return isinstance(value, dict | list)


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)
