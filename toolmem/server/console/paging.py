"""Cut rows into pages, as the query of an address asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PAGE = 50  # rows
Query = Mapping[str, str]


def cut(rows: Sequence[Any], query: Query) -> dict[str, Any]:
    """Return one page of rows, and the first row's number on the `next` and `previous` page."""
    start = whole_number(query.get("from")) or 0
    return {
        "rows": rows[start : start + PAGE],
        "total": len(rows),
        "start": start,
        "next": start + PAGE if start + PAGE < len(rows) else None,
        "previous": max(0, start - PAGE) if start else None,
    }


def whole_number(text: str | None) -> int | None:
    """Read a whole number of up to 18 digits; None for another text."""
    if text is None or len(text) > 18 or not (text.isascii() and text.isdigit()):
        return None
    return int(text)
