"""Read the reply of a model that judges, or say why it cannot be read.

A verdict is a complete JSON object with a `score` and a `summary` or an `evaluation`. Strict JSON
is tried first, then json-repair. A reply whose verdicts contradict each other is unreadable: asking
again costs less than an invented score.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from toolmem.errors import ModelError
from toolmem.llm.prompts import without_thought

MAX_READ = 20_000  # characters of the end of a reply


class ReplyUnreadable(ModelError):
    """The reply of a model that judges holds no verdict that can be read."""


class ReadVerdict(NamedTuple):
    """The verdict that a reply holds. `summary` or `evaluation` may be empty, but not both."""

    summary: str
    evaluation: str
    score: int  # 0 or 1


def read_verdict(text: str) -> ReadVerdict:
    """Read the verdict in a reply, with its score rounded to 0 or 1. Raises ReplyUnreadable."""
    answer = without_thought(text)[-MAX_READ:]
    if not answer.strip():
        raise ReplyUnreadable("it is empty, or a thought without an end")
    found = [fields for value in _objects(answer) for fields in _verdicts(value)]
    if not found:
        raise ReplyUnreadable("it holds no complete JSON object with a score and an evaluation")
    scores = {_score(fields["score"]) for fields in found}
    if None in scores:
        raise ReplyUnreadable("its score is neither 0.0 nor 1.0")
    if len(scores) > 1:
        raise ReplyUnreadable("it holds verdicts with different scores")
    summary, evaluation = _text(found[-1].get("summary")), _text(found[-1].get("evaluation"))
    if not (summary or evaluation):
        raise ReplyUnreadable("its summary and its evaluation are empty")
    return ReadVerdict(summary, evaluation, scores.pop() or 0)


def _objects(text: str) -> Iterator[Any]:
    """Yield the JSON values of a reply, without a value that is cut off."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return
    try:
        yield msgspec.json.decode(text[start : end + 1])
        return
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        pass
    from json_repair import repair_json

    for part in _top_level(text[start : end + 1]):
        yield repair_json(part, return_objects=True, skip_json_loads=True)


def _top_level(text: str) -> Iterator[str]:
    """Yield each outermost `{...}` of a text, without one that has no end."""
    depth = start = 0
    for at, sign in enumerate(text):
        if sign == "{":
            start = at if depth == 0 else start
            depth += 1
        elif sign == "}" and depth:
            depth -= 1
            if depth == 0:
                yield text[start : at + 1]


def _verdicts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the object itself if it has the fields of a verdict, else the verdicts inside it."""
    if isinstance(value, dict):
        fields = {str(key).strip().lower(): each for key, each in value.items()}
        if "score" in fields and (fields.keys() & {"summary", "evaluation"}):
            yield fields
            return
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from _verdicts(each)


def _score(value: Any) -> int | None:
    try:
        number = float(value) if isinstance(value, str | int | float) else -1.0
    except ValueError:
        return None
    return int(number >= 0.5) if 0.0 <= number <= 1.0 else None


def _text(value: Any) -> str:
    """Write a value as one text: models also send lists of sentences, or one for each aspect."""
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_text(each)}" for key, each in value.items())
    if isinstance(value, list):
        return " ".join(map(_text, value))
    return "" if value is None else str(value).strip()
