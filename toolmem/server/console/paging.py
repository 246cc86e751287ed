"""Cut rows into pages, as the query of an address asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PAGE = 50  # rows
Query = Mapping[str, str]


def cut(rows: Sequence[Any], query: Query) -> dict[str, Any]:
    """Return the page of rows that begins at `query["from"]`, and where its neighbours begin."""
    start = whole_number(query.get("from")) or 0
    return {
        "rows": rows[start : start + PAGE],
        "total": len(rows),
        "start": start,
        "next": start + PAGE if start + PAGE < len(rows) else None,
        "previous": max(0, start - PAGE) if start else None,
    }


def whole_number(text: str | None) -> int | None:
    """Read a whole number of up to 18 digits. Returns None for any other text."""
    if text is None or len(text) > 18 or not (text.isascii() and text.isdigit()):
        return None
    return int(text)
