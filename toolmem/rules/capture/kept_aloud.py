"""Messages that begin with `always:`, `never:`, `remember:` or 记住：. What they say is kept, or refused aloud.

Where the offline reader makes nothing of it, it is a reminder in the user's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from toolmem.late import late_pattern

IN_WORDS = "its words tell no argument of a call"  # why such a reminder is not checked
LONGEST = 500  # characters of a reminder: none is cut
_MOST_READ = 10_000  # characters of a paragraph that sentences are looked for in
_BEGINS = late_pattern(r"(?is)\s*(always|never|remember|记住)\s*[:：]\s*(.*)")
_SAID_ALREADY = late_pattern(r"(?i)(?:always|never|do not|don['’]t|no|not|you|must|ask|only)\b|[\u3400-\u9fff]")
_PARAGRAPH = late_pattern(r"\n[ \t]*\n")


class SaidAloud(NamedTuple):
    """`word`: always, never, remember; `spelled`: the message without its mark, always and never as words of it."""

    word: str
    spelled: str
    is_chinese: bool = False

    @property
    def first(self) -> str:
        """Its first paragraph, in one line, without the stop that ends it."""
        return " ".join(_PARAGRAPH.split(self.spelled, 1)[0].split()).rstrip(".。!！;；")


def said_aloud(message: str) -> SaidAloud | None:
    """None where it does not begin so."""
    found = _BEGINS.match(message)
    if found is None:
        return None
    word, body = found[1].lower(), found[2].strip()
    if word in {"always", "never"} and any(map(str.isalnum, body[:LONGEST])) and not _SAID_ALREADY.match(body):
        small = body[:1].lower() + body[1:] if body[1:2].islower() else body
        return SaidAloud(word, f"{word.capitalize()} {small}")
    return SaidAloud("remember" if word == "记住" else word, body, word == "记住")


def left_to_keep(aloud: SaidAloud, kept: Sequence[str]) -> str:
    """What of it is in none of the sentences that were kept; "" where that is nothing."""
    first = " ".join(_PARAGRAPH.split(aloud.spelled, 1)[0].split())
    held = [" ".join(each.split()) for each in kept]
    if aloud.word != "remember":
        return "" if any(map(first.startswith, held)) else aloud.first
    if len(first) > _MOST_READ:
        return first
    left = first
    for each in sorted(held, key=len, reverse=True):
        left = left.replace(each, " ")
    words = " ".join(left.split()).strip(" .。!！;；,，")
    return words if any(map(str.isalnum, words)) else ""


def refusal(text: str, *, chinese: bool = False) -> str:
    """Why this can be no reminder; "" where it can."""
    if not any(map(str.isalnum, text)):
        return _REFUSED["nothing"][chinese]
    if len(text) > LONGEST:
        return _REFUSED["long"][chinese]
    if text.endswith(("?", "？")):
        return _REFUSED["question"][chinese]
    return ""


_REFUSED = {
    "nothing": ("nothing follows that could be kept", "后面没有可以记住的内容"),
    "long": (
        f"what follows is longer than {LONGEST} characters: say it in a sentence or two",
        f"后面的内容超过 {LONGEST} 个字符：请用一两句话说",
    ),
    "question": ("it is a question: say what is to be kept", "这是一个问题：请说明要记住什么"),
}
