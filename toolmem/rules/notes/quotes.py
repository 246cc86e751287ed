"""Find a quote in what the user typed, whatever its case, white space and quotation marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from toolmem.text.forms import normalized

QuoteStatus = Literal["said", "shown", "unsaid", "too_short"]
_MIN_WORDS = 3
_MIN_CHINESE = 4  # characters
_ENDS = ".!?;。！？；\n"
_STRAIGHT_MARKS = str.maketrans("‘’“”–—", "''\"\"--")
_WORD = re.compile(r"[\w'’-]+")
_PIECE = re.compile(r"[^\W\u3400-\u9fff]+|[\u3400-\u9fff]")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
# A line as grep prints it: `path:12: text`.
_SEARCH_HIT = re.compile(r"^[^\s:]{1,300}:\d{1,7}(?::\d{1,7})?[:-][^\n]*", re.M)


def find_quote(quote: str, user_messages: Iterable[str]) -> QuoteStatus:
    """Find a quote in the messages that the user typed.

    said: in the user's own words; shown: only in pasted or quoted text; unsaid: nowhere;
    too_short: neither a whole sentence nor three words (four Chinese characters) of a sentence.
    """
    sought = _comparable(quote)
    if not any(map(str.isalnum, sought)):
        return "unsaid"
    found: QuoteStatus = "unsaid"
    for message in user_messages:
        compared = _comparable(message)
        if sought not in compared:
            continue
        if not _is_in_own_words(quote, message):
            found = "shown"
        elif _is_enough(sought, compared):
            return "said"
        elif found == "unsaid":
            found = "too_short"
    return found


def newest_message_with(quote: str, messages: Sequence[str]) -> int:
    """Return the index of the newest message that holds a quote; -1 if no message does."""
    sought = _comparable(quote)
    found = [at for at, message in enumerate(messages) if sought in _comparable(message)]
    return max(found, default=-1)


def _comparable(text: str) -> str:
    return " ".join(normalized(text).translate(_STRAIGHT_MARKS).split())


def _is_in_own_words(quote: str, message: str) -> bool:
    """Whether any word of the quote stands outside of pasted text and quotations."""
    from toolmem.rules.reader.pasted import MASK, mask_pasted  # takes long to load

    own = _SEARCH_HIT.sub(lambda line: MASK * len(line[0]), mask_pasted(message))
    sought = [_comparable(piece[0]) for piece in _PIECE.finditer(quote)]
    pieces = list(_PIECE.finditer(message))
    for at in _runs_of(sought, [_comparable(piece[0]) for piece in pieces]):
        run = pieces[at : at + len(sought)]
        if any(own[piece.start() : piece.end()] == piece[0] for piece in run):
            return True
    return False


def _runs_of(sought: list[str], texts: list[str]) -> Iterator[int]:
    """Yield each position of one list in another, in linear time: messages may be long."""
    joined = "\0".join(["", *texts, ""])
    run = "\0".join(["", *sought, ""])
    number = last = 0
    while (at := joined.find(run, last)) >= 0:
        number += joined.count("\0", last, at)
        yield number
        number += 1
        last = at + 1


def _is_enough(sought: str, message: str) -> bool:
    """Whether a quote has enough words, or is a whole sentence of the message."""
    words = len(_WORD.findall(sought))
    chinese = len(_CHINESE.findall(sought))
    if words >= _MIN_WORDS or chinese >= _MIN_CHINESE:
        return True
    at = message.find(sought)
    before = message[:at].rstrip()
    after = message[at + len(sought) :].lstrip()
    is_end = sought[-1] in _ENDS or not after or after[0] in _ENDS
    return is_end and (not before or before[-1] in _ENDS)
