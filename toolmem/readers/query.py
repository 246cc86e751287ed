"""The words of a search, as a request carries them."""

from __future__ import annotations

from typing import Any

from toolmem.errors import RequestError

MAX_QUERY = 10_000  # characters


def read_query(given: Any) -> str:
    """Without blanks around it. Raises RequestError."""
    if not isinstance(given, str):
        raise RequestError(f"query: expected text, got {type(given).__name__}", field="query")
    if len(given) > MAX_QUERY:
        message = f"query: {len(given):,} characters; at most {MAX_QUERY:,}, a question or a few words"
        raise RequestError(message, field="query")
    return given.strip()
