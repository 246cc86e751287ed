"""Unicode normalization in linear time."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from toolmem.late import late_pattern

MAX_MARKS = 30  # combining marks in a row, as in Unicode's stream-safe text; no script needs as many

_MAY_BE_MARKS = late_pattern(rf"[^\w\s\x00-\x7f]{{{MAX_MARKS + 1},}}")


def normal_form(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """`text` in this form; of a run of combining marks the first MAX_MARKS.

    Marks are sorted by the square of their number, and a hundred thousand of them would take minutes.
    """
    if text.isascii():
        return text
    return unicodedata.normalize(form, _MAY_BE_MARKS.sub(_few_marks, text))


def _few_marks(run: re.Match[str]) -> str:
    kept, marks = [], 0
    for char in run[0]:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= MAX_MARKS:
            kept.append(char)
    return "".join(kept)
