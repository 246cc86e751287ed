"""The words and forms of `words.json`, which `docs/capture_tables.py` makes of the YAML files beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolmem.late import late_pattern

_ALL: Mapping[str, Mapping[str, Any]] = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
ENGLISH, CHINESE, EFFECTS = _ALL["en"], _ALL["zh"], _ALL["effects"]


def split(text: str) -> frozenset[str]:
    return frozenset(text.split())


def words(name: str, of: Mapping[str, Any] = ENGLISH) -> frozenset[str]:
    """A list of words."""
    return split(of[name])


def table(name: str, of: Mapping[str, Any] = ENGLISH) -> dict[str, tuple[str, ...]]:
    """Lists of words by name."""
    return {key: tuple(listed.split()) for key, listed in of[name].items()}


def turned(name: str, of: Mapping[str, Any] = ENGLISH) -> dict[str, frozenset[str]]:
    """Word -> the names under which it is listed."""
    found: dict[str, set[str]] = {}
    for key, listed in table(name, of).items():
        for word in listed:
            found.setdefault(word, set()).add(key)
    return {word: frozenset(names) for word, names in found.items()}


def form(name: str, of: Mapping[str, Any] = ENGLISH) -> re.Pattern[str]:
    """A form of sentences."""
    return late_pattern(of["forms"][name], re.IGNORECASE | re.DOTALL)
