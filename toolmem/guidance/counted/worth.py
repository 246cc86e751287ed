"""What a claim is worth: how many calls its sentence would have helped.

Recoveries that a repair names, failures beyond what the other calls' rate predicts, repeats that failed again. It
orders sentences, and decides what stays where tokens are few.
"""

from __future__ import annotations

from toolmem.guidance.counted import values
from toolmem.guidance.counted.conditions import Condition
from toolmem.models import Claim

ALWAYS = 1e9  # of the sentence that is kept first
PREVENTION = 2.0  # a call that does not fail needs no repair

# A repair is wanted at the moment when it is read: each recovery counts so many times. One of any failure, and the
# parameter that an error is about, are worth less than what is told for the kind of error at hand.
_REPAIR, _REPAIR_OF_ANY, _TARGET = 3.0, 1.0, 0.6
_OF_EACH_CALL = {  # times the calls that the sentence counts
    "repair": _REPAIR,
    "repair_any": _REPAIR_OF_ANY,
    "target_named": _TARGET,
    "target_wanted": _TARGET,
    "target_unknown": _TARGET,
    "target_only": _TARGET,
    "repeat": 0.8,
    "retry": 0.8,
    "unrecovered": 0.7,
    "error": 0.4,
    "empty": 0.3,
    "by_flag": 0.2,
    "by_flag_or_judge": 0.2,
    "all_failed": 1.0,
    "separated": 0.02,
    "too_few": 0.02,
}
_SEEN_ONCE = 0.8  # a single recovery may have come by chance
_AT_ALL = {  # whatever the counts
    "overall": ALWAYS,
    "overall_unknown": ALWAYS,
    "few_calls": 0.2,
}
# What its declaration says as well yields to what went wrong: times 1 + the failures of the tool.
_OF_USE = {"usage": 0.15, "usage_none": 0.15, "usage_optional": 0.1}

# An agent seldom chooses the statement, program or table for its chances: that they differ is worth less to it.
_CHOOSABLE = {"statement": 0.3, "program": 0.5, "table": 0.5, "uppercase": 0.5}
_THING = 0.3  # so is what a single id, date or name has to do with it


def value(claim: Claim, failures: int) -> float:
    """Of a claim about a tool with so many failures."""
    if claim.subject is None:
        return 0.0
    form, k, n = claim.subject.form, claim.k, claim.n
    ok, on = claim.counts.get("ok", 0), claim.counts.get("on", 0)
    if form == "pattern":
        chosen = _choosable(Condition(*claim.subject.conditions[0]))
        return PREVENTION * moved(k, n, ok, on) * (0.8 if better(claim) else 1.0) * chosen
    if form == "pattern_useful":
        return _OF_EACH_CALL["empty"] * moved(k, n, ok, on)
    if form == "advice_first":
        return moved(k, n, ok, on)
    if claim.kind == "refused":
        return PREVENTION * n * ok / max(1, on)
    if form in {"repair", "repair_any"} and n == 1:
        return _SEEN_ONCE
    if form in _OF_USE:
        return _OF_USE[form] * (1 + failures)
    return _AT_ALL[form] if form in _AT_ALL else _OF_EACH_CALL.get(form, 0.0) * _counted(claim)


def _counted(claim: Claim) -> int:
    """The calls that a sentence helps with."""
    if claim.kind == "recorded_flag":
        return claim.counts["wrong"]
    return claim.n if claim.kind == "inconclusive" else claim.k


def better(claim: Claim) -> bool:
    """Whether the calls that a comparison is about went better than those beside them."""
    return claim.k * claim.counts["on"] > claim.counts["ok"] * claim.n


def moved(k: int, n: int, other_k: int, other_n: int) -> float:
    """How many calls a difference of two rates moves: that of the rates, times n other_n / (n + other_n)."""
    return abs(k / n - other_k / other_n) * n * other_n / (n + other_n) if n and other_n else 0.0


def _choosable(condition: Condition) -> float:
    return _THING if values_of_things(condition) else _CHOOSABLE.get(condition.kind, 1.0)


def values_of_things(condition: Condition) -> bool:
    """A value that names one thing (an id, a date, a name): a fact about that thing, not advice for the next call."""
    detail = condition.detail.strip("'")
    return condition.kind == "value" and (values.text_shape(detail) != "word" or detail != detail.lower())
