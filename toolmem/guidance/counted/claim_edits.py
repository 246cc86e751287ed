"""Guidance changed by new calls, for an author who sees the old guidance and the new calls and nothing else.

What a model is asked for in an incremental prompt, done by counting. Each old claim is read back from its words:

* a claim that the new calls make as well gets the counts of both;
* a condition on parameters is looked for in the new calls and counted on; the claim stays while Fisher's test on the
  sums carries it and its direction holds, and goes otherwise;
* repairs are said anew from the history that the old guidance carries, where it has one (`repair_history`);
* a refused value goes as soon as a call with it works; an error that was said to have no repair, as soon as it has one;
* figures over all calls (the success rate) are said anew from the sums;
* claims that only the new calls make are added, if they can stand on so few calls.

The most valuable claims stay within `MAX_TEXT` characters. `call_ids` holds the newest `MAX_IDS` calls of the evidence:
the counts go on where the calls have left the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from toolmem.guidance.counted import sentences
from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.claim_lines import About, Line, read_line
from toolmem.guidance.counted.conditions_in_words import told_condition
from toolmem.guidance.counted.exact import fisher_exact
from toolmem.guidance.counted.patterns import ALPHA, MIN_DIFFERENCE
from toolmem.guidance.counted.sentences import Sentence, lay_out
from toolmem.guidance.counted.wording import Wording, percent
from toolmem.guidance.counted.worth import TOLD_TWICE, moved, of_empty_pattern, of_pattern, of_refusal, of_repair, worth
from toolmem.guidance.statistics import statistics_of, wilson_interval
from toolmem.models import Claim, Guidance, ToolCallResult

MAX_TEXT = 780  # characters: what an incremental prompt can carry beside ten calls
MAX_IDS = 200
_SAID_ANEW = frozenset({"overall", "recorded_flag", "flag_wrong", "inconclusive"})
_REPAIRS = frozenset({"repair", "repair_since"})
_OF_ONE_ERROR = frozenset({"repair", "repair_widely"})
_ONE_PER_PHRASE = frozenset({"usage", "example", "empty_answer"})  # a second one would only say it again


def updated(
    old: Guidance, made: Guidance, found: Analysis, ids: Sequence[str], window: Sequence[ToolCallResult], say: Wording
) -> Guidance:
    """`old` after the new calls. `found`: the analysis of these calls alone; `ids`: theirs; `made`: the guidance from
    them and from the history of `old`, which says all repairs where there is one.

    `window` gives the statistics, which no author has to know.
    """
    said_anew = _SAID_ANEW | _REPAIRS if old.history is not None else _SAID_ANEW
    language = say.language
    fresh = {line.about: line for line in (read_line(claim, language) for claim in made.claims)}
    lines: list[Line] = []
    for claim in old.claims:
        if claim.kind in said_anew:
            continue
        line = read_line(claim, language)
        same = fresh.pop(line.about, None)
        after = _summed(line, same, say) if same else _counted_on(line, fresh, found, ids, say)
        if after is not None:
            lines.append(after)
    lines += _added(lines, fresh)
    rates = _rates(old, found, say)
    told = [_sentence(line, *rates) for line in lines]
    separated = any(line.claim.kind in ("parameter", "refused") for line in lines)
    told += _over_all(old, *rates, say, inconclusive=not separated)
    kept = _within(sentences.ordered(told), say)
    return made.model_copy(
        update={
            "text": lay_out(kept, say),
            "claims": _claims(kept, lines, old, ids),
            "statistics": statistics_of(window),
            "edits": old.edits + 1,
            "history": made.history if old.history is not None else None,  # else it would know less than the lines
        }
    )


def _claims(kept: Sequence[Sentence], lines: Sequence[Line], old: Guidance, ids: Sequence[str]) -> list[Claim]:
    """The claims of the sentences. Those over all calls stand on the old ones' calls and the new ones."""
    of_line = {line.claim.text: line.claim for line in lines}
    before = {claim.kind: claim.call_ids for claim in old.claims if claim.kind in _SAID_ANEW}
    claims = []
    for one in kept:
        known = of_line[one.text].call_ids if one.text in of_line else (*before.get(one.kind, ()), *ids)
        newest = tuple(dict.fromkeys(known))[-MAX_IDS:]
        claims.append(Claim(text=one.text, k=one.k, n=one.n, kind=one.kind, call_ids=newest))
    return claims


def _summed(line: Line, same: Line, say: Wording) -> Line | None:
    """Both counts together."""
    if not line.phrase:
        return line
    counts = {name: count + same.counts.get(name, 0) for name, count in line.counts.items()}
    if line.phrase in {"pattern", "pattern_useful"} and not _carried(counts):
        return None
    return line.with_recovered(same.recovered, say).recounted(say, same.claim.call_ids, **counts)


def _counted_on(
    line: Line, fresh: dict[About, Line], found: Analysis, ids: Sequence[str],
    say: Wording,
) -> Line | None:  # fmt: skip
    """A claim that the new calls do not make by themselves; None where they contradict it."""
    kind, counts = line.claim.kind, line.counts
    bad = len(found.where(False))
    if kind == "error_class" and line.phrase:
        return line.recounted(say, n=counts["n"] + bad)
    if kind in {"rule_out", "unrecovered"}:
        repaired = any(other.claim.kind in _REPAIRS and other.error == line.error for other in fresh.values())
        if repaired:
            return None
        more = len(found.where(True)) + bad if kind == "rule_out" else 0
        return line.recounted(say, n=counts["n"] + more) if line.phrase else line
    if line.phrase in _OF_ONE_ERROR:
        others = [o.counts["n"] for o in fresh.values() if o.phrase in _OF_ONE_ERROR and o.error == line.error]
        return line.recounted(say, n=counts["n"] + max(others)) if others else line
    if kind == "repeat":
        return None if any(other.claim.kind == "repeat" for other in fresh.values()) else line
    if line.phrase in {"pattern", "advice_avoid", "advice_prefer", "advice_prefer_calls"}:
        return _condition_counted(line, found, ids, say)
    if line.phrase == "refused_value":
        return _refusal_counted(line, found, ids, say)
    return line


def _condition_counted(line: Line, found: Analysis, ids: Sequence[str], say: Wording) -> Line | None:
    told = told_condition(dict(line.words)["condition"], found.seen, say)
    if told is None:
        return line  # no new call has to do with it
    holds, base = told
    known = [i for i in base if found.outcomes[i] is not None]
    inside = [i for i in known if i in holds]
    good = sum(bool(found.outcomes[i]) for i in inside)
    counts = {**line.counts, "k": line.counts["k"] + good, "n": line.counts["n"] + len(inside)}
    if line.phrase == "pattern":
        others = [i for i in known if i not in holds]
        counts["ok"] += sum(bool(found.outcomes[i]) for i in others)
        counts["on"] += len(others)
        if not _carried(counts) or _better(counts) != _better(line.counts):
            return None
    elif (counts["k"] * 2 > counts["n"]) != (line.counts["k"] * 2 > line.counts["n"]):
        return None
    return line.recounted(say, tuple(ids[i] for i in inside), **counts)


def _refusal_counted(line: Line, found: Analysis, ids: Sequence[str], say: Wording) -> Line | None:
    words = dict(line.words)
    given = [
        (i, condition.detail)
        for i, one in enumerate(found.seen)
        for condition in one.conditions
        if condition.kind == "value" and condition.path == words["path"] and found.outcomes[i] is not None
    ]
    refused = [i for i, detail in given if detail in words["bad"]]
    others = [i for i, detail in given if detail not in words["bad"]]
    if any(found.outcomes[i] for i in refused):
        return None
    counts = {
        **line.counts,
        "n": line.counts["n"] + len(refused),
        "ok": line.counts["ok"] + sum(bool(found.outcomes[i]) for i in others),
        "on": line.counts["on"] + len(others),
    }
    return line.recounted(say, tuple(ids[i] for i in refused), **counts)


def _better(counts: Mapping[str, int]) -> bool:
    return counts["k"] * counts["on"] > counts["ok"] * counts["n"]


def _carried(counts: dict[str, int]) -> bool:
    """Whether the sums still tell the calls apart."""
    k, n, ok, on = (counts[name] for name in ("k", "n", "ok", "on"))
    return bool(n and on) and abs(k / n - ok / on) >= MIN_DIFFERENCE and fisher_exact(k, n, ok, on) <= ALPHA


def _added(lines: Sequence[Line], fresh: dict[About, Line]) -> Iterator[Line]:
    """What only the new calls say. Of lines that describe the usual call the old one stays."""
    there = {line.phrase for line in lines if line.claim.kind in _ONE_PER_PHRASE}
    for line in fresh.values():
        if line.claim.kind not in _SAID_ANEW and line.phrase not in there:
            yield line


def _rates(old: Guidance, found: Analysis, say: Wording) -> tuple[int, int]:
    """(calls that worked, calls whose outcome is known) of all calls known to the guidance and the new ones."""
    rates_told = (read_line(claim, say.language) for claim in old.claims if claim.kind == "overall")
    before = next((line.counts for line in rates_told if line.phrase), {"k": 0, "n": 0})
    good, bad = len(found.where(True)), len(found.where(False))
    return before["k"] + good, before["n"] + good + bad


def _over_all(old: Guidance, k: int, n: int, say: Wording, *, inconclusive: bool) -> Iterator[Sentence]:
    """The figures over all calls known to the guidance, said from the sums."""
    if not n:
        return
    low, high = wilson_interval(k, n)
    rates = {"rate": percent(k / n), "low": percent(low), "high": percent(high)}
    text = say.say("overall", k=k, n=n, extras="", **rates)
    yield Sentence("statistics", "overall", text, k, n, (), worth("overall"))
    if inconclusive and 0 < k < n and any(claim.kind == "inconclusive" for claim in old.claims):
        yield Sentence("success", "inconclusive", say.say("too_few"), k, n, (), worth("too_few", n))


def _sentence(line: Line, k: int, n: int) -> Sentence:
    """`k` of the tool's `n` calls worked."""
    claim = line.claim
    return Sentence(line.part, claim.kind, claim.text, claim.k, claim.n, (), _value(line, k, n))


def _value(line: Line, all_k: int, all_n: int) -> float:
    """As the writer of the line valued it, as far as its words tell."""
    kind, phrase, c = line.claim.kind, line.phrase, line.counts
    k, n, ok, on = c.get("k", 0), c.get("n", 0), c.get("ok", 0), c.get("on", 0)
    if phrase == "pattern":
        return of_pattern(moved(k, n, ok, on), good=line.part == "success")
    if phrase == "pattern_useful":
        return of_empty_pattern(moved(k, n, ok, on))
    if phrase == "advice_first":
        return moved(k, n, ok, on)
    if kind == "advice" and phrase:
        shift = moved(k, n, max(0, all_k - k), max(0, all_n - n))
        return TOLD_TWICE * of_pattern(shift, good=k * all_n > all_k * n)
    if kind == "refused" and phrase:
        return of_refusal(n, ok, on)
    if kind in _REPAIRS and phrase:
        return of_repair(phrase, k, n)
    return worth(phrase, line.claim.k, all_n - all_k)


def _within(ordered: Sequence[Sentence], say: Wording) -> list[Sentence]:
    """The most valuable sentences whose text has at most MAX_TEXT characters."""
    kept: list[Sentence] = []
    for one in ordered:
        if len(lay_out([*kept, one], say)) <= MAX_TEXT:
            kept.append(one)
    return kept
