"""Sentences of a message, whole: addresses, versions, paths, links and numbers do not end them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass

MASK = "\ue000"  # a private character in place of each masked one, so that positions stay
CJK = late_pattern(r"[\u3400-\u9fff]")
_LINE_BREAK = late_pattern("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")  # all that Unicode knows, as one
_SPACE = late_pattern(r"\s*")
_END = late_pattern(r"(?:(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s|$|[\u3400-\u9fff])|[。！？]+[”’」』）)\"']*)|\n")
_ABBREVIATION = late_pattern(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|e\.g|i\.e|cf|approx|no|nr|fig|dept|est|incl|excl|ca|jan|feb|mar|apr|jun"
    r"|jul|aug|sept?"
    r"|oct|nov|dec)|(?<!\w)[a-z])$",
    re.I,
)
_MAYBE = late_pattern(r"\b(?:a\.m|p\.m|etc|inc|ltd|co|corp|jr|sr|u\.s|u\.k)$", re.I)
_LIST_NUMBER = late_pattern(r"(?:^|\n)\s*\d{1,3}$")
_LEAD = late_pattern(r"[\s\-*•·–—>]*(?:\(?\d{1,3}[.)、]\s+)?(?:\[[ xX]?\]\s*)?")
_SOFT_WRAP = 40  # characters; a shorter line was ended on purpose


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as it was written, and the same with everything masked that is only shown."""

    text: str
    masked: str  # as long as `text`
    question: bool  # ends with a question mark
    line: int  # in which line of the message it begins, from 0
    breaks: int  # line breaks between it and what follows


def small(text: str) -> str:
    """Small letters and straight apostrophes, at the same positions."""
    text = text.replace("’", "'").replace("‘", "'").replace("*", " ").replace("\n", " ")
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def split_message(message: str, mask: Callable[[str], str]) -> Iterator[Sentence]:
    """The sentences that hold anything of the author's own. Linear in the length of the message."""
    message = _LINE_BREAK.sub("\n", message)
    masked = mask(message)
    start = line = 0
    for end in _ends(masked):
        text, own = _without_lead(message[start:end], masked[start:end])
        if any(char.isalnum() and char != MASK for char in own):
            yield Sentence(text, own, ends_with(own, "?？"), line, _breaks(message, start, end))
        line += message.count("\n", start, end)
        start = end


def _ends(masked: str) -> Iterator[int]:
    start, last = 0, len(masked.rstrip())
    for match in _END.finditer(masked):
        end = match.end()
        if match[0] == "\n":
            if _wraps(masked, start, match.start(), end):
                continue
        elif match[0][0] == "." and not _dot_ends(masked, start, match, last):
            continue
        start = end
        yield end
    if start < len(masked):
        yield len(masked)


def _dot_ends(masked: str, start: int, match: re.Match[str], last: int) -> bool:
    if match[0].startswith(".."):
        return not _continues(masked, match.end())
    before = masked[max(start, match.start() - 12) : match.start()]
    if _ABBREVIATION.search(before) or _LIST_NUMBER.search(masked[max(0, match.start() - 6) : match.start()]):
        return match.end() >= last
    return not (_MAYBE.search(before) and _continues(masked, match.end()))


def _continues(masked: str, end: int) -> bool:
    """Does the sentence go on: with a small letter or a figure?"""
    following = masked[end : end + 40].lstrip(" \t")
    return bool(following) and (following[0].islower() or following[0].isdigit()) and following[0].isascii()


def _wraps(masked: str, start: int, end: int, following: int) -> bool:
    """A line break inside a sentence: the line was full, and the next one goes on with a small letter."""
    line = masked[max(start, end - 200) : end].rsplit("\n", 1)[-1].rstrip()
    if len(line) < _SOFT_WRAP or line[-1] in ".!?:;。！？：；" or line[-1] == MASK:
        return False
    ahead = masked[following : following + 1]
    return bool(ahead) and ahead.isascii() and ahead.islower()


def _breaks(message: str, start: int, end: int) -> int:
    """Line breaks between the last word of a sentence and whatever comes next."""
    last = start + len(message[start:end].rstrip())
    space = _SPACE.match(message, last)
    return message.count("\n", last, space.end()) if space else 0


def _without_lead(text: str, masked: str) -> tuple[str, str]:
    """Without the bullet or number before it and the space behind it."""
    lead = _LEAD.match(masked)
    cut = lead.end() if lead else 0
    end = max(cut, len(masked.rstrip()))
    return text[cut:end], masked[cut:end]


def ends_with(text: str, signs: str) -> bool:
    """Does one of `signs` stand behind the last word? Read from the end, as only the end decides."""
    for char in reversed(text):
        if char in signs or char.isalnum() or char == "_":
            return char in signs
    return False
