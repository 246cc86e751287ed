"""What a condition says, taken apart: the shapes that sentences are made into. Words are written from them.

A condition of another shape is None here, and still holds for the guard.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from toolmem.guard.shell_commands import UNKNOWN
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass, field

LISTS = frozenset(["targets", "values", "emails", "hosts", "paths", "programs", "statements", "tables"])
_BOUNDS = frozenset(("exclusiveMinimum", "minimum", "exclusiveMaximum", "maximum"))


@dataclass(frozen=True, slots=True)
class TextShape:
    """What a text must be like."""

    kind: Literal["equals", "names", "at", "channel", "below", "option", "force", "pattern"]
    texts: tuple[str, ...]
    elsewhere: bool = False  # none of these, where an address or a target stands
    unknown: bool = False  # or a word that only the shell knows


@dataclass(frozen=True, slots=True)
class ListShape:
    """One of a list of the view is like this."""

    name: str
    text: TextShape


@dataclass(frozen=True, slots=True)
class CommandShape:
    """A simple command of one of these programs."""

    programs: tuple[str, ...]
    second: tuple[str, ...] = ()
    words: tuple[TextShape, ...] = ()  # each of these stands in it, in whatever order


@dataclass(frozen=True, slots=True)
class NumberShape:
    """A number of one of these parameters, by the keywords of JSON Schema."""

    names: tuple[str, ...]
    bounds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Joined:
    """Any, or all, of several."""

    how: Literal["any", "all"]
    parts: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Every:
    """Every call."""

    always: bool = field(default=True)


Shape = ListShape | CommandShape | NumberShape | Joined | Every


def read_condition(when: Any) -> Shape | None:
    """A condition as a sentence was made into it; None where it is of another shape."""
    if when is True:
        return Every()
    if not isinstance(when, Mapping):
        return None
    if isinstance(when.get("anyOf"), list):
        return _joined("any", when["anyOf"])
    if isinstance(when.get("allOf"), list):
        return _joined("all", when["allOf"])
    fields = when.get("properties")
    if not isinstance(fields, Mapping) or len(fields) != 1:
        return None
    ((name, listed),) = fields.items()
    item = listed.get("contains") if isinstance(listed, Mapping) else None
    if not isinstance(item, Mapping):
        return None
    if name == "commands":
        return _command(item)
    if name == "numbers":
        return _number(item)
    text = read_text_shape(item)
    return ListShape(name, text) if name in LISTS and text is not None else None


def _joined(how: Literal["any", "all"], given: list[Any]) -> Shape | None:
    parts = [read_condition(each) for each in given]
    known = tuple(each for each in parts if each is not None)
    return Joined(how, known) if len(known) == len(parts) else None


def _command(item: Mapping[str, Any]) -> Shape | None:
    first = [each.get("enum") for each in item.get("prefixItems", [])]
    words = [read_text_shape(each.get("contains", {})) for each in item.get("allOf", [])]
    if not first or not all(first) or len(first) > 2 or None in words:
        return None
    second = tuple(first[1]) if len(first) == 2 else ()
    return CommandShape(tuple(first[0]), second, tuple(each for each in words if each is not None))


def _number(item: Mapping[str, Any]) -> Shape | None:
    fields = item.get("properties", {})
    names, value = fields.get("name", {}).get("enum", []), fields.get("value", {})
    bounds = {keyword: value[keyword] for keyword in _BOUNDS & value.keys()}
    return NumberShape(tuple(names), bounds) if names and bounds else None


_PATTERNS: tuple[tuple[Any, re.Pattern[str]], ...] = (
    ("option", late_pattern(r"\^\(-\[a-z\]\*(\w)\[a-z\]\*(?:\|--[\w-]+)?\)\$")),
    ("force", late_pattern(r".*(--force).*")),
    ("names", late_pattern(r"\(\^\|\[\^\\w(?:-|㐀-鿿)?\]\)(.+)\(\$\|\[\^\\w(?:-|㐀-鿿)?\]\)")),
    ("at", late_pattern(r"@\(\[\^@\]\*\\\.\)\?\(?([^()]+?)\)?\$")),
    ("at", late_pattern(r"\(\^\|\\\.\)(.+)\$")),
    ("at", late_pattern(r"\^\(\[\^/\]\*\\\.\)\?\((.+)\)\$")),
    ("channel", late_pattern(r"\^\[#@\]\?\(?([^()]+?)\)?\$")),
    ("equals", late_pattern(r"\^\(([^()]+)\)\$")),
    ("below", late_pattern(r"(?:\^|\(\^\|/\))(.+)\(/\|\$\)")),
)


def read_text_shape(item: Mapping[str, Any]) -> TextShape | None:
    """What a text of a list must be like."""
    if "const" in item:
        return TextShape("equals", (str(item["const"]),))
    if isinstance(item.get("enum"), list):
        known = tuple(str(each) for each in item["enum"] if each != UNKNOWN)
        return TextShape("equals", known, unknown=UNKNOWN in item["enum"])
    if isinstance(item.get("not"), Mapping):
        other = read_text_shape(item["not"])
        return None if other is None else TextShape(other.kind, other.texts, elsewhere=True)
    pattern = item.get("pattern")
    if not isinstance(pattern, str):
        return None
    for kind, shape in _PATTERNS:
        if found := shape.fullmatch(pattern):
            return TextShape(kind, tuple(re.sub(r"\\(.)", r"\1", each) for each in found[1].split("|")))
    return TextShape("pattern", (pattern,))
