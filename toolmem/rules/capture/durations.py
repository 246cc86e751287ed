"""Words of a demand that say for how long it holds, and nothing of what it forbids."""

from __future__ import annotations

import re

from toolmem.late import late_pattern

# Words that put off what is forbidden: it is asked about, because the user means to allow it.
_FOR_NOW = late_pattern(
    r"\s*\b(?:just )?(?:yet|for now|right now|at the moment)\b|先(?=别|不要|不)|暂时|目前|现在(?=别|不要|不)"
)

# Words that say for how long: they limit nothing of a call.
_HERE = late_pattern(
    r"\s*,?\s*\b(?:(?:in|for|during|within) (?:the rest of )?(?:this|our|the current) "
    r"(?:session|conversation|chat|thread|task|run)|for (?:the rest of )?today|today|this (?:time|once)"
    r"|until (?:i|I) (?:say|tell you) (?:so|otherwise))\b\s*,?"
    r"|(?:在)?(?:本次|这次|这个|当前)(?:会话|对话|任务)(?:里|中|内|期间)?[，,]?|今天[，,]?|这一?次[，,]?",
    re.IGNORECASE,
)


def without_delay(sentence: str) -> str:
    """Without the words that put it off."""
    return _FOR_NOW.sub("", sentence)


def without_duration(sentence: str) -> str:
    """As it would be said for good."""
    return _HERE.sub(" ", sentence).strip()
