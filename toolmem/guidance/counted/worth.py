"""What a sentence of guidance is worth, by the phrase that says it: one table, for those that write sentences and for
those that read them back from their words.

The worth estimates how many calls the sentence would have helped: recoveries that a repair names, failures beyond what
the other calls' rate predicts, repeats that failed again. It orders sentences, and decides what stays where tokens are
few.
"""

from __future__ import annotations

from toolmem.guidance.counted import values
from toolmem.guidance.counted.conditions import Condition

ALWAYS = 1e9  # of the sentence that is kept first
PREVENTION = 2.0  # a call that does not fail needs no repair
TOLD_TWICE = 0.25  # of the worth of a sentence: what an instruction adds to the counts that it stands on

# A repair is wanted at the moment when it is read: each recovery counts so many times. One of any failure, and the
# parameter that an error is about, are worth less than what is told for the kind of error at hand.
_REPAIR, _REPAIR_OF_ANY, _TARGET = 3.0, 1.0, 0.6
_OF_EACH_CALL = {  # times the calls that the sentence counts
    "repair": _REPAIR,
    "repair_since": _REPAIR,
    "repair_widely": _REPAIR,
    "repair_widely_since": _REPAIR,
    "repair_any": _REPAIR_OF_ANY,
    "repair_any_since": _REPAIR_OF_ANY,
    "target_named": _TARGET,
    "target_wanted": _TARGET,
    "target_unknown": _TARGET,
    "target_only": _TARGET,
    "repeat": 0.8,
    "retry": 0.8,
    "unrecovered": 0.7,
    "error": 0.4,
    "empty": 0.3,
    "rule_out": 0.3,
    "by_flag": 0.2,
    "by_flag_or_judge": 0.2,
    "all_failed": 1.0,
    "separated": 0.02,
    "inconclusive": 0.02,
    "too_few": 0.02,
}
_AT_ALL = {  # whatever the counts
    "overall": ALWAYS,
    "overall_unknown": ALWAYS,
    "repair_once": 0.8,
    "few_calls": 0.2,
    "worked": 0.15,
}
# What is known from the declaration anyway yields to what went wrong: times 1 + the failures of the tool.
_OF_USE = {"purpose": 0.3, "usage": 0.15, "usage_none": 0.15, "usage_optional": 0.1, "mix": 0.08, "answers": 0.07}
_UNREAD = 0.1  # a line of an old guidance that is none of the phrases

# An agent seldom chooses the statement, program or table for its chances: that they differ is worth less to it.
_CHOOSABLE = {"statement": 0.3, "program": 0.5, "table": 0.5, "uppercase": 0.5}
_THING = 0.3  # so is what a single id, date or name has to do with it


def worth(phrase: str, calls: int = 0, failures: int = 0) -> float:
    """Of a sentence that counts so many calls, of a tool with so many failures. `phrase`: a key of `PHRASES`, or ""."""
    if phrase in _OF_EACH_CALL:
        return _OF_EACH_CALL[phrase] * calls
    if phrase in _OF_USE:
        return _OF_USE[phrase] * (1 + failures)
    return _AT_ALL.get(phrase, _UNREAD)


def of_repair(phrase: str, k: int, n: int) -> float:
    """Of a repair of k of n recoveries; a single one may have come by chance."""
    return worth(phrase, k) if n > 1 else worth("repair_once")


def moved(k: int, n: int, other_k: int, other_n: int) -> float:
    """How many calls a difference of two rates moves: that of the rates, times n other_n / (n + other_n)."""
    return abs(k / n - other_k / other_n) * n * other_n / (n + other_n) if n and other_n else 0.0


def of_pattern(calls_moved: float, *, good: bool, condition: Condition | None = None) -> float:
    """Of what goes with success (`good`) or with failure; `condition`: None where it is not known."""
    chosen = 1.0 if condition is None else _choosable(condition)
    return PREVENTION * calls_moved * (0.8 if good else 1.0) * chosen


def of_empty_pattern(calls_moved: float) -> float:
    """Of what goes with answers that are worth nothing."""
    return _OF_EACH_CALL["empty"] * calls_moved


def of_refusal(n: int, other_k: int, other_n: int) -> float:
    """Of a value that n calls were refused for, where other_k of other_n calls with another one worked."""
    return PREVENTION * n * other_k / max(1, other_n)


def _choosable(condition: Condition) -> float:
    return _THING if values_of_things(condition) else _CHOOSABLE.get(condition.kind, 1.0)


def values_of_things(condition: Condition) -> bool:
    """A value that names one thing (an id, a date, a name): a fact about that thing, not advice for the next call."""
    detail = condition.detail.strip("'")
    return condition.kind == "value" and (values.text_shape(detail) != "word" or detail != detail.lower())
