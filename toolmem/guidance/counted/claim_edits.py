"""Guidance changed by new calls, for an author who sees the old guidance and the new calls and nothing else.

What a model is asked for in an incremental prompt, done by counting. Claims are known by their kind and subject:

* a claim that the new calls make as well gets the counts of both;
* a condition on parameters is looked for in the new calls and counted on; the claim stays while Fisher's test on the
  sums carries it and its direction holds, and goes otherwise;
* repairs are said anew from the history that the old guidance carries (`repair_history`);
* a refused value goes as soon as a call with it works; an error that was said to have no repair, as soon as it has one;
* figures over all calls (the success rate) are said anew from the sums;
* claims that only the new calls make are added, if they can stand on so few calls.

The most valuable claims stay within `MAX_TEXT` characters. `call_ids` holds the newest `MAX_IDS` calls of the evidence:
the counts go on where the calls have left the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.conditions import OF_TEXTS, Condition, holds
from toolmem.guidance.counted.exact import fisher_exact
from toolmem.guidance.counted.patterns import ALPHA, MIN_DIFFERENCE
from toolmem.guidance.counted.render import Wording, lay_out, said, sentence
from toolmem.guidance.counted.worth import better
from toolmem.guidance.statistics import statistics_of
from toolmem.models import Claim, Guidance, Subject, ToolCallResult
from toolmem.readers.error_messages import mask

MAX_TEXT = 780  # characters: what an incremental prompt can carry beside ten calls
MAX_IDS = 200
_FIGURES = frozenset({"overall", "recorded_flag", "inconclusive"})  # over all calls: said anew from the sums
_REPAIRS = frozenset({"repair", "repair_since"})  # said anew from the history
_ONE_PER_FORM = frozenset({"usage", "empty_answer"})  # a second one would only say it again


def editable(guidance: Guidance, say: Wording) -> bool:
    """Whether the history is there, and of every claim what its sentence is made of. Version 0.1 stored neither."""
    try:
        there = all(one.subject is not None and bool(sentence(one, say)) for one in guidance.claims)
    except (LookupError, TypeError, ValueError, AssertionError):
        return False
    return there and guidance.history is not None


def updated(old: Guidance, made: Guidance, found: Analysis, window: Sequence[ToolCallResult], say: Wording) -> Guidance:
    """`old` after the new calls.

    `found`: the analysis of these calls alone; `made`: the guidance from them and from the history of `old`, which says
    all repairs; `window` gives the statistics, which no author has to know.
    """
    fresh = {(one.kind, one.subject): one for one in made.claims if one.kind not in _FIGURES}
    claims: list[Claim] = []
    for one in old.claims:
        if one.kind in _FIGURES | _REPAIRS:
            continue
        also = fresh.pop((one.kind, one.subject), None)
        after = _summed(one, also) if also is not None else _counted_on(one, made, found)
        if after is not None:
            claims.append(after)
    there = {_form(one) for one in claims if one.kind in _ONE_PER_FORM}
    claims += [one for one in fresh.values() if _form(one) not in there]
    figures = list(_over_all(old, found, separated=any(one.kind in ("parameter", "refused") for one in claims)))
    failures = next((one.n - one.k for one in figures), 0)
    kept = _within(said([*claims, *figures], say, failures), say)
    return made.model_copy(
        update={
            "text": lay_out(kept, say),
            "claims": [_changed(one) for one in kept],
            "statistics": statistics_of(window),
            "edits": old.edits + 1,
        }
    )


def _form(one: Claim) -> str:
    return one.subject.form if one.subject is not None else ""


def _summed(one: Claim, also: Claim) -> Claim | None:
    """Both counts together."""
    counts = {name: one.counts.get(name, 0) + also.counts.get(name, 0) for name in one.counts | also.counts}
    after = _changed(one, also.call_ids, k=one.k + also.k, n=one.n + also.n, counts=counts)
    return after if one.kind not in {"parameter", "empty_pattern"} or _carried(after) else None


def _counted_on(one: Claim, made: Guidance, found: Analysis) -> Claim | None:
    """A claim that the new calls do not make by themselves; None where they contradict it."""
    assert one.subject is not None
    if one.kind == "error_class":
        return _changed(one, n=one.n + len(found.where(False)))
    if one.kind == "unrecovered":
        return None if _repaired(one.subject.error, found) else one
    if one.kind == "repeat":
        return None if any(other.kind == "repeat" for other in made.claims) else one
    return _sides_counted(one, one.subject, found) if one.kind in {"parameter", "refused"} else one


def _repaired(error: str, found: Analysis) -> bool:
    failures = {position for group in found.errors if mask(group.label) == error for position in group.positions}
    return any(one.failure in failures for one in found.repaired)


def _sides_counted(one: Claim, about: Subject, found: Analysis) -> Claim | None:
    """New calls whose outcome is known, counted where a condition of the claim holds, and where none does."""
    refused = one.kind == "refused"
    within = Condition("present", about.path) if refused else about.within and Condition(*about.within)
    conditions = [Condition(*each) for each in about.conditions]
    inside: list[int] = []
    others: list[int] = []
    for i, seen in enumerate(found.seen):
        if found.outcomes[i] is not None and (within is None or holds(seen, within)):
            (inside if any(holds(seen, condition) for condition in conditions) else others).append(i)
    k = _worked(inside, found)
    if refused and k:
        return None
    if not refused and not inside and conditions[0].kind in OF_TEXTS and conditions[0].path not in found.text_kinds:
        return one  # so few calls may not show that a parameter holds SQL or commands
    counts = {"ok": one.counts["ok"] + _worked(others, found), "on": one.counts["on"] + len(others)}
    after = _changed(one, [found.ids[i] for i in inside], k=one.k + k, n=one.n + len(inside), counts=counts)
    return after if refused or (_carried(after) and better(after) == better(one)) else None


def _worked(positions: Sequence[int], found: Analysis) -> int:
    return sum(bool(found.outcomes[i]) for i in positions)


def _carried(one: Claim) -> bool:
    """Whether the sums still tell the calls apart."""
    k, n, ok, on = one.k, one.n, one.counts["ok"], one.counts["on"]
    return bool(n and on) and abs(k / n - ok / on) >= MIN_DIFFERENCE and fisher_exact(k, n, ok, on) <= ALPHA


def _changed(one: Claim, ids: Sequence[str] = (), **update: Any) -> Claim:
    """With other counts; `ids`: calls that are further evidence. The newest MAX_IDS are kept."""
    return one.model_copy(update={**update, "call_ids": tuple(dict.fromkeys((*one.call_ids, *ids)))[-MAX_IDS:]})


def _over_all(old: Guidance, found: Analysis, *, separated: bool) -> Iterator[Claim]:
    """The figures over all calls known to the guidance and the new ones."""
    before: Mapping[str, Claim] = {one.subject.form: one for one in old.claims if one.subject is not None}
    good, bad = len(found.where(True)), len(found.where(False))
    overall = before.get("overall") or Claim(text="", k=0, n=0, call_ids=(), kind="overall")
    k, n = overall.k + good, overall.n + good + bad
    if n:
        yield _changed(overall, found.ids, k=k, n=n, subject=Subject(form="overall"), detail={})
    unknown = next((one for one in old.claims if one.kind == "inconclusive"), None)
    if unknown is not None and not separated and 0 < k < n:
        yield _changed(unknown, found.ids, k=k, n=n, subject=Subject(form="too_few"), counts={}, detail={})


def _within(ordered: Sequence[Claim], say: Wording) -> list[Claim]:
    """The most valuable claims whose text has at most MAX_TEXT characters."""
    kept: list[Claim] = []
    for one in ordered:
        if len(lay_out([*kept, one], say)) <= MAX_TEXT:
            kept.append(one)
    return kept
