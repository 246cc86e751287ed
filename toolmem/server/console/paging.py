"""One page of rows, and what an address asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PAGE = 50  # rows
Query = Mapping[str, str]


def cut(rows: Sequence[Any], query: Query) -> dict[str, Any]:
    """One page of rows; `next` and `previous`: where its neighbours begin, or None."""
    start = whole_number(query.get("from")) or 0
    return {
        "rows": rows[start : start + PAGE],
        "total": len(rows),
        "start": start,
        "next": start + PAGE if start + PAGE < len(rows) else None,
        "previous": max(0, start - PAGE) if start else None,
    }


def whole_number(text: str | None) -> int | None:
    """The number that a text is, where it fits into 64 bits."""
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 19
    return int(text) if text is not None and is_number else None
