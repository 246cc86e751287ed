"""Is a message plain speech, with nothing pasted, quoted or machine-made in it?

Its shape decides, not a list of envelopes: a person who takes a demand back writes a sentence or two, in lines that
begin with a word. Markup, prefixes, list, diff and grep marks, quotations, what a colon introduces where nobody goes on
speaking behind it, code and columns make a message mixed; a sentence that looks like one of them is not lost, but
proposed. Linear in the message.
"""

from __future__ import annotations

import unicodedata

from toolmem.hosts.spoken_colons import without_spoken_colons
from toolmem.late import late_pattern

LONGEST = 2_000  # characters
_MOST_LINES = 2  # next to each other: more are broken by a program
_LONGEST_CODE = 80  # characters between two backticks

# Inline code on one line, an address of the web, a time of day: these hold marks that are none.
_TOKENS = late_pattern(rf"`[^`\n]{{1,{_LONGEST_CODE}}}`|\bhttps?://[\w./~%?&=+#-]+|(?<![\d:])\d{{1,2}}:\d\d(?![\d:])")
_NAMED = late_pattern(r"(?<!\w)\"[^\s\"]{1,80}\"(?!\w)|(?<!\w)'[^\s']{1,80}'(?!\w)")  # one word in quotation marks
_MIXED = late_pattern(
    r"[<>{}\[\]|\\\t\x00-\x09\x0b-\x1f\x7f-\x9f]"  # markup, JSON, columns, escapes of a terminal
    r"|[\"“”„‟«»「」『』《》〈〉‹›‘‚`＂]|(?<!\w)'|'(?!\w)"  # quotations; an apostrophe stands inside a word
    r"|[:：]|;\s*$|(?m:;$)|[=#@~^]{2}|\s[#*=~]+\s|//|/\*|\*/|\*\*|__|\+\+|->|=>|\w\(|\.{4}|[─-▟■-◿]"
)
_WORD = late_pattern(
    r"[^\W\d_]{1,40}(?:['’-][^\W\d_]{1,40}){0,4}[,.!?…]{0,3}(?:\s|$)|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]"
)
_SHOUTED = late_pattern(r"(?m)^[A-Z]{3,}\b[^a-z\n]{0,40}\b[A-Z]?[a-z]")  # ERROR You may ...


def is_plain(message: str) -> bool:
    """False for one that is empty, or longer than a person types."""
    text = message.rstrip().lstrip("\n").removeprefix(" ")
    if not text or len(text) > LONGEST or not all(map(_is_visible, text)):
        return False
    bare = without_spoken_colons(_NAMED.sub("x", _TOKENS.sub("x", text)))
    if _MIXED.search(bare) or _SHOUTED.search(bare):
        return False
    return all(map(_is_paragraph, _paragraphs(bare.split("\n"))))


def _is_visible(mark: str) -> bool:
    """Not a mark that changes how others look, or that nobody sees."""
    return mark == "\n" or unicodedata.category(mark) not in {"Cf", "Cc", "Co", "Cn", "Cs", "Zl", "Zp"}


def _paragraphs(lines: list[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [each for each in found if each]


def _is_paragraph(lines: list[str]) -> bool:
    """Lines that begin with a word, and not too many of them."""
    return len(lines) <= _MOST_LINES and all(map(_WORD.match, lines))
