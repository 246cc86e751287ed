"""Insert hooks into the text of a JSON settings file and remove them; every other byte stays.

Text is inserted right after an opening bracket, so that no comma before it is needed.
Comments, trailing commas and a byte order mark are allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from toolmem.text.patterns import late_pattern

BOM = "\ufeff"
_STRING_OR_COMMENT = late_pattern(r'("(?:[^"\\]|\\.)*")|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = late_pattern(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')
_decode = json.JSONDecoder().raw_decode  # returns the value and where it ends


class Part(NamedTuple):
    """A member of an object or an element of an array, and its position."""

    key: str  # "" for an element
    start: int  # of the key, or of the element
    value_start: int
    end: int
    value: Any


def readable(text: str) -> str:
    """The text with comments and trailing commas replaced by blanks, so that positions stay.

    Raises ValueError with line and column if it is no JSON object.
    """
    blank = partial(re.sub, r"[^\r\n]", " ")
    text = _STRING_OR_COMMENT.sub(lambda found: found[1] or blank(found[0]), text)
    text = _TRAILING_COMMA.sub(lambda found: found[1] or " ", text)
    if not isinstance(json.loads(text.removeprefix(BOM)), dict):
        raise ValueError("expected an object: line 1 column 1")
    return text


def parts(text: str, start: int) -> Iterator[Part]:
    """The parts of the object or array that begins at `start`."""
    at = _skip(text, start + 1)
    close = "}" if text[start] == "{" else "]"
    while text[at] != close:
        key = ""
        begin = at
        if close == "}":
            key, at = _decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        value, end = _decode(text, at)
        yield Part(key, begin, at, end, value)
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


def with_entries(text: str, entries: dict[str, Any]) -> tuple[str, list[tuple[int, int]]]:
    """Add one entry to `hooks.EVENT` for each event. Raises ValueError.

    Returns the text, and the spans (start, end) that were inserted, in order.
    """
    section = {"hooks": {event: [entry] for event, entry in entries.items()}}
    if not text.strip(f"{BOM} \t\r\n"):
        new = json.dumps(section, indent=2, ensure_ascii=False) + "\n"
        return text + new, [(len(text), len(text) + len(new))]
    clean = readable(text)
    root = _skip(clean, 0)
    hooks = _member(clean, root, "hooks")
    if hooks is None:
        edits = [_insertion(clean, root, section)]
    elif not isinstance(hooks.value, dict):
        raise ValueError("hooks: expected an object")
    else:
        there = {each.key: each for each in parts(clean, hooks.value_start)}
        missing = {event: [entry] for event, entry in entries.items() if event not in there}
        edits = [_insertion(clean, hooks.value_start, missing)] if missing else []
        for event in (event for event in entries if event in there):
            if not isinstance(there[event].value, list):
                raise ValueError(f"hooks.{event}: expected a list")
            edits.append(_insertion(clean, there[event].value_start, {"": entries[event]}))
    spans: list[tuple[int, int]] = []
    for at, new in sorted(edits):
        start = at + sum(end - begin for begin, end in spans)
        text = text[:start] + new + text[start:]
        spans.append((start, start + len(new)))
    return text, spans


def without_spans(text: str, spans: list[tuple[int, int]]) -> str:
    """Undo `with_entries` in a text that nobody has changed since."""
    for start, end in reversed(spans):
        text = text[:start] + text[end:]
    return text


def without_entries(text: str, is_ours: Callable[[Any], bool]) -> str:
    """Remove our entries, and containers that this leaves empty, from a text that was changed."""
    while (span := _span_of_entry(readable(text), is_ours)) is not None:
        before = text[: span[0]].rstrip(" \t\r\n")  # comments stay: they are not blanks in `text`
        text = before + text[span[1] :]
    return text


def _span_of_entry(text: str, is_ours: Callable[[Any], bool]) -> tuple[int, int] | None:
    """The span of the first entry of ours, with the containers that hold nothing else."""
    root = _skip(text, 0)
    hooks = _member(text, root, "hooks")
    path = _path_to(text, hooks.value_start, is_ours) if hooks else []
    if hooks is None or not path:
        return None
    path.insert(0, (root, hooks))
    siblings = list(parts(text, path[-1][0]))
    while len(path) > 1 and (len(siblings) == 1 or path[-1][1].key == "hooks"):
        path.pop()  # with the matcher beside an entry's `hooks`
        siblings = list(parts(text, path[-1][0]))
    container, part = path[-1]
    at = siblings.index(part)
    if at + 1 < len(siblings):
        return part.start, _skip(text, part.end) + 1  # with the comma behind it
    return (siblings[at - 1].end if at else container + 1), part.end


def _path_to(text: str, container: int, is_ours: Callable[[Any], bool]) -> list[tuple[int, Part]]:
    """The levels (container, part) from outside to the first entry of ours; [] if there is none."""
    for part in parts(text, container) if text[container] in "{[" else ():
        if further := _path_to(text, part.value_start, is_ours):
            return [(container, part), *further]
        if is_ours(part.value):
            return [(container, part)]
    return []


def _member(text: str, start: int, key: str) -> Part | None:
    return next((each for each in reversed(list(parts(text, start))) if each.key == key), None)


def _insertion(text: str, container: int, members: dict[str, Any]) -> tuple[int, str]:
    """The position after the opening bracket and the text to insert, indented as what follows it.

    The key "" means an element of an array.
    """
    first = next(parts(text, container), None)
    lead = ""
    dump = partial(json.dumps, ensure_ascii=False)
    close = ""
    before = text[container : first.start] if first else text[container:]
    if "\n" in before or text.removeprefix(BOM) == "{}":
        line_end = "\r\n" if "\r\n" in text else "\n"
        line = text[text.rfind("\n", 0, container) + 1 :]
        outer = line[: len(line) - len(line.lstrip(" \t"))]
        inner = outer + "  "
        if first:
            inner = re.split(r"[\r\n]", text[container + 1 : first.start])[-1]
        dump = partial(dump, indent=inner.removeprefix(outer) or "  ")
        lead = line_end + inner
        close = "" if first else line_end + outer
    names = [f"{json.dumps(key)}: " if key else "" for key in members]
    values = [dump(value).replace("\n", lead or "\n") for value in members.values()]
    new = [lead + name + value for name, value in zip(names, values, strict=True)]
    comma = "," if lead else ", "
    return container + 1, comma.join(new) + (comma if first else close)


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in f" \t\r\n{BOM}":
        at += 1
    return at
