"""A regular expression as the texts that it fits, for people: `^(npm test|pytest)\\b` is "`npm test` or `pytest`".

Where it begins and ends is left out, and what may be anything is "…". One that fits more than a few texts is shown as
it is written. Nothing reads these words back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolmem.late import late_pattern

if TYPE_CHECKING:
    import re

_MOST = 6  # texts of one pattern
_LONGEST = 200  # characters of a pattern that is taken apart
_DEEPEST = 8  # groups in groups
_ANY = "…"
_BLANK = late_pattern(r"\s+")
_GAP = late_pattern(f"{_ANY}+")
# One piece of a pattern: an edge, a class of characters, an escaped sign, or any other character.
_PIECE = late_pattern(
    r"(?P<edge>\\[bBAzZ]|[$^]|\(\?[a-z]{1,4}\))|(?P<blank>\\s|\[ \\t\]|\[\\s\])"
    r"|(?P<any>\\[wWdDS]|\.|\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|\\(?P<escaped>[^\w\s])|(?P<plain>[^\\()|*+?{}\[\]])"
)
_REPEATED = late_pattern(r"(?P<how>[*+?]|\{\d{0,4},?\d{0,4}\})[?+]?")


def pattern_in_words(pattern: str) -> str:
    """In backticks: the texts, or the pattern where they are too many. Linear in the pattern."""
    try:
        texts = _PatternReader(pattern).texts() if len(pattern) <= _LONGEST else []
    except _TooMuch:
        texts = []
    shown = [f"`{each}`" for each in texts]
    if not shown or any("`" in each or each in ("", _ANY) for each in texts):
        return f"`{pattern}`"
    return " or ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


class _TooMuch(Exception):
    """It is shown as it is written."""


class _PatternReader:
    """Takes one pattern apart from its beginning to its end."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0

    def texts(self) -> list[str]:
        found, _ = self._choices()
        if self._at < len(self._pattern):  # a bracket that nothing opened
            raise _TooMuch
        return list(dict.fromkeys(_GAP.sub(_ANY, _BLANK.sub(" ", each)).strip() for each in found))

    def _choices(self) -> tuple[list[str], bool]:
        """What the alternatives up to a closing bracket fit; is one of them an edge alone, as in `(^|/)`?"""
        found: list[str] = []
        is_edge = False
        while True:
            texts, edge_alone = self._sequence()
            is_edge = is_edge or edge_alone
            found += texts
            if len(found) > _MOST:
                raise _TooMuch
            if not self._next("|"):
                return found, is_edge

    def _sequence(self) -> tuple[list[str], bool]:
        made, has_edge, begun = [""], False, self._at
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            piece = _PIECE.match(self._pattern, self._at)
            if piece is not None and piece["edge"]:
                self._at, has_edge = piece.end(), True
                continue
            one = self._repeated(self._group() if piece is None else self._character(piece))
            made = [f"{left}{right}" for left in made for right in one]
            if len(made) > _MOST:
                raise _TooMuch
        return made, has_edge and made == [""] and self._at > begun

    def _character(self, piece: re.Match[str]) -> list[str]:
        self._at = piece.end()
        if piece["blank"]:
            return [" "]
        return [_ANY if piece["any"] else piece["escaped"] or piece["plain"]]

    def _group(self) -> list[str]:
        if not self._next("("):
            raise _TooMuch
        if self._next("?") and not self._next(":"):
            raise _TooMuch
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _TooMuch
        found, is_edge = self._choices()
        self._depth -= 1
        if not self._next(")"):
            raise _TooMuch
        return [""] if is_edge else found

    def _repeated(self, texts: list[str]) -> list[str]:
        """What is there or not is both; what comes several times is once, and any others are "…"."""
        repeated = _REPEATED.match(self._pattern, self._at)
        if repeated is None:
            return texts
        self._at = repeated.end()
        if texts in ([_ANY], [" "]):
            return texts
        if repeated["how"] == "?":
            return ["", *texts]
        if repeated["how"] == "+":
            return texts
        return [_ANY]

    def _next(self, sign: str) -> bool:
        if not self._pattern.startswith(sign, self._at):
            return False
        self._at += len(sign)
        return True
