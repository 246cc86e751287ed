"""Values of calls in at most so many characters a text, so that a record holds no file of sixty megabytes."""

from __future__ import annotations

from typing import Any

MOST_CHARACTERS = 200_000
_DEEPEST = 20


def shortened(value: Any, depth: int = 0) -> Any:
    """The value with its long texts cut; a mark says so."""
    if isinstance(value, str):
        return value if len(value) <= MOST_CHARACTERS else f"{value[:MOST_CHARACTERS]}…"
    if depth < _DEEPEST and isinstance(value, dict):
        return {name: shortened(each, depth + 1) for name, each in value.items()}
    if depth < _DEEPEST and isinstance(value, list):
        return [shortened(each, depth + 1) for each in value]
    return value
