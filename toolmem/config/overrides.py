"""Dotted overrides: `op.summary_tool_memory_op.params.recent_call_count=50`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from toolmem.config.hidden_values import HIDDEN, is_secret, masked
from toolmem.config.problems import dotted
from toolmem.config.scalars import read_scalar

Key = tuple[str, ...]

_PART = re.compile(r"\[(?P<bracket>[^\[\]]+)\]|(?P<word>[^.\[\]=]+)")
_ITEM = re.compile(r"-{0,2}(?P<name>[A-Za-z_][A-Za-z0-9_]*([.\[][^=]*)?)=(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True)
class Override:
    """One `name=value`. A name part that holds a dot stands in brackets: `prices[qwen2.5-72b].input=0.1`."""

    path: Key
    value: Any = field(repr=False)  # it may be a key

    @property
    def name(self) -> str:
        return dotted(self.path)


def read_overrides(items: Sequence[str]) -> tuple[list[Override], list[str]]:
    """(overrides in order, problems)."""
    read: list[Override] = []
    problems: list[str] = []
    for item in items:
        try:
            read.append(read_override(item))
        except ValueError as error:
            problems.append(f"override {_without_secret(item)!r}: {error}")
    return read, problems


def read_override(item: str) -> Override:
    """Raises ValueError where there is no `=`, the name is no dotted name, or the value cannot be read."""
    name, equals, text = item.lstrip("-").partition("=")
    if not equals:
        raise ValueError("expected name=value")
    return Override(_read_name(name.strip()), read_scalar(text))


def _read_name(name: str) -> Key:
    parts: list[str] = []
    position = 0
    while position < len(name):
        found = _PART.match(name, position)
        if found is None:
            raise ValueError(f"{name!r} is not a dotted name like llm.default.model_name")
        parts.append((found["bracket"] or found["word"]).strip())
        position = found.end()
        if position < len(name) and name[position] == ".":
            position += 1
            if position == len(name):
                parts.append("")
    if not parts or not all(parts):
        raise ValueError(f"{name!r} is not a dotted name like llm.default.model_name")
    return tuple(parts)


def _without_secret(item: str) -> str:
    name, equals, _ = item.partition("=")
    return f"{name}={HIDDEN}" if equals and is_secret(name.rpartition(".")[2]) else masked(item)


def split_overrides(argv: Sequence[str], known: Sequence[str] = ()) -> tuple[list[str], list[str], list[str]]:
    """(configuration files, overrides, what is left for the command line's own parser), each in its order.

    As ReMe writes it: `backend=http http.port=8002 config=my.yaml`, leading dashes tolerated (`--http.port=8002`).
    `known` are the command line's own options (`--limit`): an item of such a name is left to it. `config` counts
    only as the exact name; what follows a bare `--` is left alone.
    """
    files: list[str] = []
    overrides: list[str] = []
    rest: list[str] = []
    own = {option.lstrip("-") for option in known}
    for position, item in enumerate(argv):
        if item == "--":
            rest.extend(argv[position:])
            break
        found = _ITEM.fullmatch(item)
        if found is None or (item.startswith("-") and found["name"] in own):
            rest.append(item)
        elif found["name"] == "config":
            files.append(found["value"])
        else:
            overrides.append(f"{found['name']}={found['value']}")
    return files, overrides, rest
