"""Values as a prompt shows them: short, on one line, cut in the middle where they are long."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def as_json(value: Any) -> str:
    """A value on one line, as short as JSON allows; a text stays as it is."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def seconds_text(seconds: float | None) -> str | None:
    """Three digits behind the point, or three significant ones below a second; None stays unknown."""
    if seconds is None:
        return None
    return f"{seconds:.3g}" if seconds < 1 else f"{seconds:.3f}".rstrip("0").rstrip(".")


def cut_middle(text: str, limit: int) -> str:
    """At most `limit` characters; what is cut is cut in the middle and counted where it was.

    Tools say what they do at the start of an output and what went wrong at its end, so both are kept. Where
    the note does not fit, the note alone is left.
    """
    if len(text) <= limit:
        return text
    kept = max(limit - len(_cut_note(len(text))), 0)
    head, tail = kept - kept // 2, kept // 2
    return text[:head] + _cut_note(len(text) - kept) + text[len(text) - tail :]


def _cut_note(characters: int) -> str:
    return f"[... {characters:,} characters cut ...]"


def fit(texts: Mapping[str, str], limit: int) -> dict[str, str]:
    """Cut the longest texts so that all together have at most `limit` characters; short ones stay whole."""
    share = _share(sorted(map(len, texts.values())), limit)
    return {name: cut_middle(text, share) for name, text in texts.items()}


def _share(lengths: list[int], limit: int) -> int:
    """The length to which long texts are cut: what short ones do not need is shared among the long ones."""
    left = limit
    for position, length in enumerate(lengths):
        share = left // (len(lengths) - position)
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)
