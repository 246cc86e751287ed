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
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else None
