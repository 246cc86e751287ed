"""Read a judge's reply as models really write it, or say that it cannot be read.

Accepted: fences or none, text around the JSON, `<think>` before it, trailing commas, single or typographic
quotes, Python literals, comments, raw line breaks and unescaped quotes in strings, keys in any case, a wrapping
object, a score that is a number, a text ("1.0") or a bool; scores between 0 and 1 go to 0.0 below 0.5, else to 1.0.

A verdict is a complete object with a `score` and a `summary` or `evaluation`; an object with a score alone is
taken for quoted data. Of several verdicts the last one counts if all have the same score. If they contradict each
other, or one has a score that is none, the reply is unreadable: asking again costs less than an invented score.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from toolmem.errors import ReplyUnreadable
from toolmem.judge.loose_json import NUMBER, Object, top_level_objects

_FIELDS = ("summary", "evaluation", "score")


@dataclass(frozen=True, slots=True)
class ReadReply:
    """What a judge's reply says. `summary` or `evaluation` may be empty, not both."""

    summary: str
    evaluation: str
    score: float  # 0.0 or 1.0


def read_verdict(text: str) -> ReadReply:
    """Raises ReplyUnreadable, and nothing else, where `text` holds no verdict. Time is linear in its length."""
    objects, truncated = top_level_objects(_after_leading_thoughts(text))
    verdicts = [fields for found in objects for fields in _verdict_like(found)]
    if not verdicts:
        raise ReplyUnreadable(_why_none(text, objects, truncated), reply=text)
    scores = {_score(fields["score"]) for fields in verdicts}
    last = verdicts[-1]
    if None in scores:
        bad = next(fields["score"] for fields in verdicts if _score(fields["score"]) is None)
        raise ReplyUnreadable(f"its score is {_shown(bad)}, expected 0.0 or 1.0", reply=text)
    if len(scores) > 1:
        raise ReplyUnreadable("it holds verdicts with different scores", reply=text)
    score = _score(last["score"])
    summary, evaluation = _words(last.get("summary")), _words(last.get("evaluation"))
    if score is None or not (summary or evaluation):
        raise ReplyUnreadable("both its summary and its evaluation are empty", reply=text)
    return ReadReply(summary, evaluation, score)


def _after_leading_thoughts(text: str) -> str:
    """Without a `<think>` block at the start. One that never ends leaves nothing: the answer was cut off."""
    start = re.match(r"\s*<think(?:ing)?>", text, re.IGNORECASE)
    if start is None:
        return text
    end = re.compile(r"</think(?:ing)?>", re.IGNORECASE).search(text, start.end())
    return text[end.end() :] if end else ""


def _verdict_like(found: Object) -> Iterator[dict[str, Any]]:
    """The object itself where it has a verdict's fields, else the verdicts that it wraps."""
    fields: dict[str, Any] = {}
    for key, value in found:
        name = key.strip().lower()
        if name == "score" and name in fields and _score(fields[name]) != _score(value):
            value = math.nan  # two scores in one object are none
        if name in _FIELDS:
            fields[name] = value
    if "score" in fields and len(fields) > 1:
        yield fields
        return
    for _, value in found:
        for inner in value if isinstance(value, list) else (value,):
            if isinstance(inner, tuple):
                yield from _verdict_like(inner)


def _score(value: Any) -> float | None:
    """0.0 or 1.0; None where the value is no score."""
    if isinstance(value, str) and NUMBER.match(value.strip()):
        value = float(value)
    if not isinstance(value, bool | float) or not 0.0 <= value <= 1.0:
        return None
    return 1.0 if value >= 0.5 else 0.0


def _words(value: Any) -> str:
    """A text field; models also send lists of sentences, or one sentence per aspect."""
    if isinstance(value, tuple):
        return "; ".join(f"{key}: {_words(item)}" for key, item in value)
    if isinstance(value, list):
        return " ".join(filter(None, map(_words, value)))
    return "" if value is None else str(value).strip()


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."


def _why_none(text: str, objects: list[Object], truncated: bool) -> str:
    if not text.strip():
        return "it is empty"
    if truncated:
        return "its JSON object is cut off"
    if objects:
        return "its JSON object lacks a score, or a summary and an evaluation"
    return "it holds no JSON object that can be read"
