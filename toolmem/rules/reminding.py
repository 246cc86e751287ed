"""The user's reminders come again while an agent works: no call is checked against them, and prompts are long ago."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolmem.late import late_pattern
from toolmem.readers.plain_text import plain

EVERY = 30  # calls without a reminder being shown, after which it comes with the next call of its tools
MOST_TOKENS = 60  # of all that comes with one call
_COUNTED = 52  # the estimate is up to 15 % off
_LONGEST = 500  # characters of a sentence that are looked at
_CJK = late_pattern(r"[\u3400-\u9fff]")
_LEAD = ("The user's words still hold: {}", "用户的要求仍然有效：{}")


def reminder_of(sentences: Sequence[str], count: Callable[[str], int]) -> tuple[str, int]:
    """What is told of these, and how many of them, from the first on; the first is cut where it alone is too long."""
    shown: list[str] = []
    for each in sentences:
        further = [*shown, f"“{plain(each, _LONGEST)}”"]
        if count(_told(further)) > _COUNTED:
            break
        shown = further
    if shown or not sentences:
        return (_told(shown) if shown else ""), len(shown)
    return _told([_cut(plain(sentences[0], _LONGEST), count)]), 1


def _told(shown: Sequence[str]) -> str:
    text = " ".join(shown)
    return _LEAD[bool(_CJK.search(text))].format(text)


def _cut(sentence: str, count: Callable[[str], int]) -> str:
    """As much of it as fits."""
    least, most = 0, len(sentence)
    while least < most:
        middle = (least + most + 1) // 2
        fits = count(_told([f"“{sentence[:middle]}…”"])) <= _COUNTED
        least, most = (middle, most) if fits else (least, middle - 1)
    return f"“{sentence[:least]}…”"
