"""What tells a record of ReMe's from one of toolmem's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolmem.late import late_pattern

_ONLY_OURS = ("id", "conversation_id", "evaluation_status", "judge", "seq", "execution_failed")
_ONLY_REME = ("call_hash", "is_summarized")
_REME_TIME = late_pattern(r"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)?\s{0,9}")  # "": now


def is_of_reme(raw: Mapping[str, Any]) -> bool:
    """Was the record written by a client of ReMe's, whose default for a time that nobody measured is 0?

    It has a field or a value that only ReMe writes: a hash of the call, tokens of -1, a time that is empty or in ReMe's
    form (no `T`, no zone). What bears a field of toolmem's own is toolmem's.
    """
    if any(name in raw for name in _ONLY_OURS):
        return False
    tokens, created = raw.get("token_cost"), raw.get("create_time")
    unknown = isinstance(tokens, int | float) and not isinstance(tokens, bool) and tokens < 0
    return (
        unknown
        or any(name in raw for name in _ONLY_REME)
        or (isinstance(created, str) and _REME_TIME.fullmatch(created) is not None)
    )
