"""Did the user say these words? Compared as the guard compares text, in the messages that the road heard."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from toolmem.guard.view import plain
from toolmem.late import late_pattern

Standing = Literal["said", "shown", "unsaid", "too_short"]
_LEAST_WORDS = 3
_LEAST_CHINESE = 4  # characters
_ENDS = ".!?;。！？；\n"
_WORD = late_pattern(r"[\w'’-]+")
_PIECE = late_pattern(r"[^\W\u3400-\u9fff]+|[\u3400-\u9fff]")
_FOUND = late_pattern(r"(?m)^[^\s:]{1,300}:\d{1,7}(?::\d{1,7})?[:-][^\n]*")
_CHINESE = late_pattern(r"[\u3400-\u9fff]")


def without_found_lines(message: str, mask: str) -> str:
    """The message with lines as searches print them (`path:12: text`) masked, character by character."""
    return _FOUND.sub(lambda line: re.sub(r"[^\n]", mask, line[0]), message)


def standing_of(quote: str, heard: Iterable[str], own_words: Callable[[str], str]) -> Standing:
    """`own_words`: a message with what its author only shows masked, character by character, by what is no letter.

    said: it stands whole in what the user typed; shown: only in what the message quotes or pasted; unsaid: nowhere;
    too_short: it stands there and is neither a whole sentence nor three words, or four Chinese characters, of one.
    """
    sought = _compared(quote)
    if not any(character.isalnum() for character in sought):
        return "unsaid"
    found: Standing = "unsaid"
    for message in heard:
        compared = _compared(message)
        if sought not in compared:
            continue
        if not _stands_in_own(quote, message, own_words(message)):
            found = "shown"
        elif _is_enough(sought, compared):
            return "said"
        elif found == "unsaid":
            found = "too_short"
    return found


def _stands_in_own(quote: str, message: str, own: str) -> bool:
    """Is some word of it the author's own, where it stands? A name in backquotes makes no sentence another's."""
    sought = [_compared(match[0]) for match in _PIECE.finditer(quote)]
    pieces = list(_PIECE.finditer(message))
    texts = [_compared(match[0]) for match in pieces]
    for at in _runs_of(sought, texts):
        if any(own[match.start() : match.end()] == match[0] for match in pieces[at : at + len(sought)]):
            return True
    return False


def _runs_of(sought: list[str], texts: list[str]) -> Iterator[int]:
    """Where a list stands in another, in linear time."""
    mark = "\0"
    joined, run = mark + mark.join(texts) + mark, mark + mark.join(sought) + mark
    starts = {0: 0}
    place = 0
    for number, text in enumerate(texts, 1):
        place += len(text) + 1
        starts[place] = number
    at = joined.find(run)
    while at >= 0:
        yield starts[at]
        at = joined.find(run, at + 1)


def _compared(text: str) -> str:
    """Case, white space and the forms of quotation marks and dashes aside; the ends of lines stay as spaces."""
    marks = str.maketrans("‘’“”–—", "''\"\"--")
    return " ".join(plain(unicodedata.normalize("NFKC", text)).translate(marks).split())


def _is_enough(sought: str, message: str) -> bool:
    if len(_WORD.findall(sought)) >= _LEAST_WORDS or len(_CHINESE.findall(sought)) >= _LEAST_CHINESE:
        return _within_one_sentence(sought, message)
    at = message.find(sought)
    before = message[:at].rstrip()
    after = message[at + len(sought) :].lstrip()
    whole = sought[-1] in _ENDS or not after or after[0] in _ENDS
    return whole and (not before or before[-1] in _ENDS)


def _within_one_sentence(sought: str, message: str) -> bool:
    """Words that begin and end where words of the message do."""
    at = message.find(sought)
    while at >= 0:
        before, after = message[at - 1 : at], message[at + len(sought) : at + len(sought) + 1]
        cut = (before.isalnum() and sought[0].isalnum()) or (after.isalnum() and sought[-1].isalnum())
        if not cut or _CHINESE.match(sought[0]) or _CHINESE.match(sought[-1]):
            return True
        at = message.find(sought, at + 1)
    return False
