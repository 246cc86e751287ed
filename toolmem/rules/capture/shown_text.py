"""Which sentences of a message are the user's own.

What is announced as somebody else's text, or asked to be worked on, makes no rule.

The forms stand in `shown_text.yaml`: a later sentence is shown where one before it opens a text ("translate the
following"), an earlier one where one after it points back ("the mail above").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice

from toolmem.late import late_pattern
from toolmem.late_dataclasses import replace
from toolmem.rules.capture.chinese import opens_shown_chinese
from toolmem.rules.capture.cues import TABLES, Forms
from toolmem.rules.capture.english import opens_before_colon, small
from toolmem.rules.capture.pasted import MASK
from toolmem.rules.capture.sentences import CJK, Sentence, ends_with

_LANGUAGES = ("en", "zh")
_SPAN = 400  # characters at either end of a sentence that are looked at
_COLON = late_pattern(r":(?=\s|$|[\u3400-\u9fff])|：")
_COLONS = 6  # of a sentence that are looked at: the words that announce a text stand before its first ones


# By language, each kind of form as one pattern: `own` (it speaks of the user's own rules), `work` (it asks to work on a
# text, whatever it speaks of), `anywhere` (opens a text, wherever it stands), `line_end` (one on another line), `colon`
# (the same, behind a colon), `block` (a text that a blank line sets off), `back` (points at the text before it).
_FORMS = {language: Forms(TABLES["shown_text"][language]) for language in _LANGUAGES}


def own_sentences(sentences: Sequence[Sentence], demands: Callable[[Sentence], bool]) -> list[Sentence]:
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
        if opens_shown_text(text, sentence.breaks) and (_asks_to_work(text) or not demands(sentence)):
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
    kinds = ["anywhere"]
    kinds += ["line_end"] if breaks else []
    kinds += ["colon"] if breaks and not inside else []
    kinds += ["block"] if breaks > 1 else []
    return any(
        any(form[kind].search(text) for kind in kinds) and (form["work"].search(text) or not form["own"].search(text))
        for form in _spoken(text)
    )


def _points_back(text: str) -> bool:
    forms = _spoken(text)
    return any(form["back"].search(text) for form in forms) and not any(form["own"].search(text) for form in forms)


def _asks_to_work(text: str) -> bool:
    return any(form["work"].search(text) for form in _spoken(text))


def _spoken(text: str) -> list[Forms]:
    return [_FORMS[language] for language in _LANGUAGES if language == "en" or CJK.search(text)]


def _looked_at(sentence: Sentence) -> str:
    text = sentence.masked
    if len(text) > 2 * _SPAN:
        text = f"{text[:_SPAN]} {text[-_SPAN:]}"
    return small(text)
