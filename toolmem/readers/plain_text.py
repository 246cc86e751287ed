"""Names, values and texts that nobody vouches for, as they may be shown to a model, on a terminal or on a page.

hides(text)        whether it needs any of these
shown(text)        one line without a character that cannot be seen
plain(text)        the same, cut: a value inside a sentence
plain_line(text)   the same, and it cannot begin a heading or a bullet: a line of its own
plain_text(text)   several such lines, as a model writes them
name_shown(name)   the name of a tool: different names never look alike
escaped(text)      nothing is lost: what cannot be seen is written as its code point; `escaped_json` for JSON
counted(n, noun)   "1 call", "12,000 calls": one form of every count
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection

from toolmem.late import late_pattern

MAX_VALUE = 500  # characters of a value inside a sentence
MAX_LINE = 4_000
MAX_TEXT = 8_000  # of a text of several lines
MAX_NAME = 200
CUT = "…"

# Controls, formats and surrogates (Cc, Cf, Cs), all of Default_Ignorable_Code_Point, reserved ones included (Unicode
# 17), and letters without a form: the braille blank, the musical null notehead, the Khitan filler.
_UNSEEN = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_HIDDEN = late_pattern(f"[{_UNSEEN}]+")
_LINE_BREAK = late_pattern("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def counted(number: float | None, word: str) -> str:
    """`1 call`, `2 replies`, `12,000 calls`, and a dash where it is not known."""
    return f"{'–' if number is None else format(round(number), ',')} {noun(number, word)}"


def noun(number: float | None, word: str) -> str:
    """The word for so many: `call`, `calls`; `reply`, `replies`."""
    if number == 1:
        return word
    return f"{word[:-1]}ies" if re.search("[^aeiou]y$", word) else f"{word}es" if word.endswith("s") else f"{word}s"


def shown(text: str) -> str:
    """One line without control, bidirectional, zero-width and other characters that cannot be seen.

    White space and line breaks of all kinds are one space. Sequences of emoji fall into their parts.
    """
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip(" ")
    flat = " ".join(text.split())
    return " ".join(_HIDDEN.sub("", flat).split())


def hides(text: str) -> bool:
    """Whether it holds line breaks, or a character that cannot be seen."""
    return _HIDDEN.search(text) is not None


def plain(text: str, limit: int = MAX_VALUE) -> str:
    """`shown`, in at most `limit` characters; a cut is marked by "…"."""
    return _cut(shown(text), limit)


def plain_line(text: str, limit: int = MAX_LINE) -> str:
    """`plain`, with a backslash in front where it would begin a heading, a bullet, a quote or a fence."""
    return _cut(_guarded(shown(text)), limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - len(CUT)].rstrip() + CUT


# ---------------------------------------------------------------- structure

_OPENS = late_pattern(
    r"[#＃﹟>]"  # a heading, a quote
    r"|[-*+•‣◦·∙⁃‐‑‒–—―−](?:\s|$)"  # a bullet
    r"|[-=_*]{2,}\s*$"  # the line below a heading, a rule across the page
    r"|`{3}|~{3}"  # a fence
    r"|<[A-Za-z/!?]"  # markup
    r"|[*_]+\s*[\[［【〔]"  # `**[critical]**`, as only the rules of a system prompt are written
)
_HEADING = late_pattern(r"[#＃﹟]+\s+(?=\S)")
_BULLET = late_pattern(r"(?:[-*+]|\d{1,3}[.)])\s+(?=\S)")


def _guarded(line: str) -> str:
    return "\\" + line if _OPENS.match(line) else line


def plain_text(text: str, limit: int = MAX_TEXT, headings: Collection[str] = ()) -> str:
    """Lines as a model writes them, each as `shown`, in at most `limit` characters; a cut is marked by "…".

    Bullets and numbers stay. Headings become bold lines, but for those of `headings`; what else would have a form, as
    the rules of a system prompt have one (`- **[critical]** ...`), has a backslash in front.
    """
    lines = [_model_line(raw, headings) for raw in _LINE_BREAK.split(text)]
    kept = [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]
    return _cut("\n".join(kept).strip(), limit)


def _model_line(raw: str, headings: Collection[str]) -> str:
    line = shown(raw)
    if line in headings:
        return line
    if heading := _HEADING.match(line):
        return _guarded(f"**{line[heading.end() :].strip('*_# ')}**")
    indent = "  " if line and raw[:2].isspace() else ""
    bullet = _BULLET.match(line)
    start = bullet.end() if bullet else 0
    return indent + line[:start] + _guarded(line[start:])


# ---------------------------------------------------------------- names


def name_shown(name: str, limit: int = MAX_NAME) -> str:
    """The name of a tool as a heading may hold it: two names that differ never look alike.

    What cannot be seen, white space that is not one space, backticks and letters that look like ASCII ones are shown
    as their code points (`send_email\\u200b`); names in other scripts stay as they are. Of a long name the beginning
    and a fingerprint are shown.
    """
    if len(name) > limit:
        mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        return f"{name_shown(name[:limit])}{CUT}[{len(name):,} characters, {mark}]"
    return name if name.isascii() and _ORDINARY.fullmatch(name) else _apart(name)


_ORDINARY = late_pattern(r"[!-\[\]-_a-~]+(?: [!-\[\]-_a-~]+)*")  # ASCII but for backslash, backtick and loose spaces
_LOOSE = late_pattern(f"[{_UNSEEN}`‐‑‒−․‗ˍ＿∕⁄]|[^\\S ]|^ | $|(?<= ) ")
_WORD = late_pattern(r"[^\W_]+")
# Cyrillic, Greek, Armenian and other letters that are drawn as a letter of ASCII is.
_DRAWN_AS_ASCII = frozenset("аеорсухіјѕԁԛԝһӏгАВЕЅІЈКМНОРСТХҮԌԚԜΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορυχγօսոցհյքԼՕՏႽᴀᴄᴇᴏᴜᴠᴡᴢɑɡɩꞮƖǀ")


def _apart(name: str) -> str:
    name = name.replace("\\", "\\\\")
    if not unicodedata.is_normalized("NFC", name):
        return "".join(mark if mark.isascii() and not _LOOSE.match(mark) else _code_point(mark) for mark in name)
    own = {ord(mark) >> 8 for mark in name if not mark.isascii() and mark not in _DRAWN_AS_ASCII}
    name = _WORD.sub(lambda word: _word_apart(word[0], own), name)
    return _LOOSE.sub(lambda found: _code_point(found[0]), name)


def _word_apart(word: str, own: Collection[int]) -> str:
    """`own`: blocks of Unicode of which the name has letters that look like none of ASCII: it is written in them."""
    mixed = any(mark.isascii() and mark.isalpha() for mark in word)
    return "".join(_code_point(mark) if _looks_ascii(mark, mixed, own) else mark for mark in word)


def _looks_ascii(mark: str, mixed: bool, own: Collection[int]) -> bool:
    if mark.isascii():
        return False
    if mark in _DRAWN_AS_ASCII:
        return mixed or ord(mark) >> 8 not in own
    folded = unicodedata.normalize("NFKC", mark)  # full-width, mathematical and other styled letters and digits
    return folded.isascii() and folded.isalnum()


def _code_point(mark: str) -> str:
    return f"\\u{ord(mark):04x}" if ord(mark) <= 0xFFFF else f"\\U{ord(mark):08x}"


def escaped(text: str) -> str:
    """The text for a terminal: nothing of it is lost, and nothing acts on the terminal or turns its lines round.

    What cannot be seen is written as its code point, but for line breaks, tabs, and the joiners of emoji and of
    scripts that need them.
    """
    if text.isascii() and text.isprintable():
        return text
    return _ACTS.sub(lambda found: found[1] or _code_point(found[0]), text)


def escaped_json(text: str) -> str:
    """The same for a JSON text, which stays the same JSON."""
    return _ACTS.sub(lambda found: found[1] or json.dumps(found[0])[1:-1], text)


# Group 1: joiners behind something that can be seen and is not ASCII, which they belong to.
_ACTS = late_pattern(f"(?<![\\x00-\x7f{_UNSEEN}])(?<=.)([\u200c\u200d\ufe0e\ufe0f]+)|(?!\\n|\\t)[{_UNSEEN}]", re.DOTALL)
