"""A payload as JSON, also one with more levels or longer numbers than Python may read: what is too deep is cut.

A call that could not be read at all would run unchecked. Cut at a depth where the guard says that it is too deep to be
read, it is asked about where a rule could bind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from toolmem.late import late_pattern

DEEPEST = 400  # levels that are kept: more than the guard looks into
_LONGEST_NUMBER = 4_000  # digits that Python reads
_MARKS = late_pattern(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_CUT = '"(too deep to be read)"'


def read_payload(text: str) -> Any:
    """Raises ValueError where it is no JSON. Linear in the text."""
    if text.count("[") + text.count("{") >= DEEPEST:
        text = "".join(_shallower(text))
    return json.loads(text, parse_int=_number)


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float(digits)


def _shallower(text: str) -> Iterator[str]:
    depth = at = 0
    for mark in _MARKS.finditer(text):
        if mark[0] in "[{":
            depth += 1
            if depth == DEEPEST:
                yield text[at : mark.start()]
                yield _CUT
        elif mark[0] in "]}":
            if depth == DEEPEST:
                at = mark.end()
            depth -= 1
    if depth < DEEPEST:
        yield text[at:]
