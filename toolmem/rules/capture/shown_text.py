"""Which sentences of a message are the user's own: what is announced as somebody else's text, or asked to be worked on,
makes no rule.

The forms stand in `shown_text.yaml`: a later sentence is shown where one before it opens a text ("translate the
following"), an earlier one where one after it points back ("the mail above").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Literal

from toolmem.rules.capture import cues
from toolmem.rules.capture.chinese import opens_shown_chinese
from toolmem.rules.capture.english import small
from toolmem.rules.capture.english_places import opens_shown_text as opens_before_colon
from toolmem.rules.capture.pasted import MASK
from toolmem.rules.capture.sentences import Sentence, ends_with

_LANGUAGES = ("en", "zh")
_SPAN = 400  # characters at either end of a sentence that are looked at
_NAME = re.compile(r"\{([a-z]+)\}")
_CJK = re.compile(r"[\u3400-\u9fff]")
_COLON = re.compile(r":(?=\s|$|[\u3400-\u9fff])|：")
_COLONS = 6  # of a sentence that are looked at: the words that announce a text stand before its first ones


# The kinds of forms:
#     own        it speaks of the user's own rules
#     work       it asks to work on a text, whatever it speaks of
#     anywhere   opens a text wherever it stands
#     line_end   opens a text that begins on another line
#     colon      opens a text that begins on another line, behind a colon
#     block      opens a text that a blank line sets off
#     back       points at the text before it
_Kind = Literal["own", "work", "anywhere", "line_end", "colon", "block", "back"]


def own_sentences(sentences: Sequence[Sentence], demands: Callable[[Sentence], object]) -> list[Sentence]:
    """Those before the first that opens a shown text, it included; without those that a later one points back at.

    What is itself a demand by `demands` opens none, unless it asks to work on a text: "never translate the title".
    """
    own: list[Sentence] = []
    line = -1  # in which a text was opened that goes no further than this line
    for sentence in sentences:
        if sentence.line == line:
            continue
        text = _looked_at(sentence)
        if own and sentence.line > own[0].line and _points_back(text):
            own.clear()
        lead = _shown_lead(text)
        own.append(sentence if lead is None else _without_shown(sentence, len(lead)))
        if lead is not None and not _ends_in_line(lead, text):
            break
        if sentence is sentences[-1]:  # nothing follows that could be shown
            break
        if opens_shown_text(text, sentence.breaks) and (_works(text) or demands(sentence) is None):
            break
        line = sentence.line if lead is not None else -1
    return own


def _shown_lead(text: str) -> str | None:
    """What stands before a colon that opens a text: "post this in Slack: ..."."""
    leads = (text[: colon.start()] for colon in islice(_COLON.finditer(text), _COLONS))
    return next((lead for lead in leads if _opens_at_colon(lead)), None)


def _opens_at_colon(lead: str) -> bool:
    return opens_before_colon(lead) or opens_shown_chinese(lead) or opens_shown_text(f"{lead}:", 2, inside=True)


def _ends_in_line(lead: str, text: str) -> bool:
    """Is a text that is opened inside a sentence one to be written, and whole at the end of this line?"""
    return ends_with(text, ".!?。！？…") and not opens_shown_text(f"{lead}:", 2, inside=True)


def _without_shown(sentence: Sentence, lead: int) -> Sentence:
    masked = sentence.masked
    return replace(sentence, masked=masked[:lead] + re.sub(r"[^\n]", MASK, masked[lead:]))


def opens_shown_text(text: str, breaks: int, *, inside: bool = False) -> bool:
    """Does what follows this sentence, after so many line breaks, belong to somebody else?

    `inside`: `text` stands before a colon, and what follows in the same line.
    """
    kinds: list[_Kind] = ["anywhere"]
    kinds += ["line_end"] if breaks else []
    kinds += ["colon"] if breaks and not inside else []
    kinds += ["block"] if breaks > 1 else []
    return any(
        any(_has(text, language, kind) for kind in kinds)
        and (_has(text, language, "work") or not _has(text, language, "own"))
        for language in _spoken(text)
    )


def _works(text: str) -> bool:
    return any(_has(text, language, "work") for language in _spoken(text))


def _points_back(text: str) -> bool:
    languages = _spoken(text)
    return any(_has(text, each, "back") for each in languages) and not any(
        _has(text, each, "own") for each in languages
    )


def _spoken(text: str) -> Sequence[str]:
    return _LANGUAGES if _CJK.search(text) else _LANGUAGES[:1]


def _looked_at(sentence: Sentence) -> str:
    text = sentence.masked
    if len(text) > 2 * _SPAN:
        text = f"{text[:_SPAN]} {text[-_SPAN:]}"
    return small(text)


def _has(text: str, language: str, kind: _Kind) -> bool:
    return _pattern(language, kind).search(text) is not None


@cache
def _pattern(language: str, kind: _Kind) -> re.Pattern[str]:
    """Each is made when it is first asked for: all together they take longer than a hook has."""
    words = _words(language)
    return re.compile("|".join(f"(?:{_filled(form, words)})" for form in cues.table("shown_text")[language][kind]))


@cache
def _words(language: str) -> dict[str, str]:
    words: dict[str, str] = {}
    for name, listed in cues.table("shown_text")[language]["words"].items():
        words[name] = _filled(f"(?:{'|'.join(listed.split(', '))})", words)
    return words


def _filled(form: str, words: dict[str, str]) -> str:
    return _NAME.sub(lambda hole: words[hole[1]], form)
