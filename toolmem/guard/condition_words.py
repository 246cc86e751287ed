"""A condition in plain words, for who approves it: "a target that names sarah". Nothing reads these words back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from toolmem.guard.call_conditions import Condition
from toolmem.guard.shell_commands import UNKNOWN

_LONGEST = 300  # characters of a condition that is shown as it is written
_NOUNS = {
    "targets": "a target",
    "values": "a value",
    "emails": "an e-mail address",
    "hosts": "a host",
    "paths": "a path",
    "programs": "the program",
    "statements": "a statement",
    "tables": "the table",
    "commands": "a command",
    "numbers": "a number",
}
_SHAPES = (  # patterns as sentences are made into, and how they are told
    (re.compile(r"\(\^\|\[\^\\w(?:-)?\]\)(.+)\(\$\|\[\^\\w(?:-)?\]\)"), "that names {}"),
    (re.compile(r"@\(\[\^@\]\*\\\.\)\?\(?([^()]+)\)?\$"), "at {}"),
    (re.compile(r"\(\^\|\\\.\)(.+)\$"), "at {}"),
    (re.compile(r"\^\(\[\^/\]\*\\\.\)\?\((.+)\)\$"), "at {}"),
    (re.compile(r"\^\[#@\]\?\(?([^()]+)\)?\$"), "{}"),
    (re.compile(r"\^\(([^()]+)\)\$"), "{}"),
    (re.compile(r"(?:\^|\(\^\|/\))(.+)\(/\|\$\)"), "{} or below it"),
)
_OPTION = re.compile(r"\^\(-\[a-z\]\*(\w)\[a-z\]\*(?:\|--[\w-]+)?\)\$")
_FORCED = re.compile(r"--force")
_BOUNDS = {"exclusiveMinimum": "over", "minimum": "of at least", "exclusiveMaximum": "under", "maximum": "of at most"}


def in_words(when: Condition | None) -> str:
    """What a call must hold for its rule to apply; a condition of another shape is shown as it is written."""
    if when is None:
        return "nothing is checked"
    told = _told(when)
    return told or f"the condition {json.dumps(when, ensure_ascii=False)[:_LONGEST]}"


def _told(when: Any) -> str:
    """ "" where a part is of no shape that is known."""
    if when is True:
        return "every call"
    if not isinstance(when, Mapping):
        return ""
    for joint, words in (("anyOf", " or "), ("allOf", " and ")):
        if joint in when:
            parts = [_told(each) for each in when[joint]]
            return words.join(parts) if all(parts) else ""
    fields = when.get("properties")
    if not isinstance(fields, Mapping) or len(fields) != 1:
        return ""
    ((name, field),) = fields.items()
    item = field.get("contains") if isinstance(field, Mapping) else None
    if name not in _NOUNS or item is None:
        return ""
    if name == "commands":
        return _command(item)
    if name == "numbers":
        return _number(item)
    return _joined(_NOUNS[name], _text(item))


def _joined(noun: str, text: str) -> str:
    return f"{noun} {text}" if text else ""


def _text(item: Mapping[str, Any]) -> str:
    if "const" in item:
        return f"`{item['const']}`"
    if "enum" in item:
        known = [f"`{each}`" for each in item["enum"] if each != UNKNOWN]
        return " or ".join(known) + (" or one that only the shell knows" if UNKNOWN in item["enum"] else "")
    pattern = str(item.get("pattern", ""))
    if "not" in item:
        other = _text(item["not"])
        address = "with an @ " if pattern == "@" else ""
        return f"{address}other than {other.removeprefix('that names ')}" if other else ""
    return _pattern(pattern)


def _pattern(pattern: str) -> str:
    for shape, words in _SHAPES:
        if found := shape.fullmatch(pattern):
            return words.format(" or ".join(f"`{_plain(each)}`" for each in found[1].split("|")))
    return f"like `{pattern}`" if pattern else ""


def _plain(escaped: str) -> str:
    return re.sub(r"\\(.)", r"\1", escaped)


def _command(item: Mapping[str, Any]) -> str:
    first = [each.get("enum") for each in item.get("prefixItems", [])]
    if not first or not all(first):
        return ""
    if first == [[">"]]:
        told = "a command that writes a file"
    else:
        told = "a command `" + " ".join("|".join(names) for names in first) + "`"
    for each in item.get("allOf", []):
        held = each.get("contains", {})
        if option := _OPTION.fullmatch(str(held.get("pattern", ""))):
            told += f" with `-{option[1]}`"
        elif _FORCED.search(str(held.get("pattern", ""))):
            told += " with force"
        else:
            word = _text(held)
            told += f" with {word}" if word else " with a word of its own"
    return told


def _number(item: Mapping[str, Any]) -> str:
    fields = item.get("properties", {})
    names, value = fields.get("name", {}).get("enum", []), fields.get("value", {})
    bounds = [f"{words} {value[keyword]:,g}" for keyword, words in _BOUNDS.items() if keyword in value]
    return f"{' or '.join(f'`{name}`' for name in names)} {' and '.join(bounds)}" if names and bounds else ""
