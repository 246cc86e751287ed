"""Sentences with their counts: what an analysis says, each as one claim with a place in the text and a value.

The values come from `worth`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from toolmem.guidance.counted import values
from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.error_messages import MASK, ErrorGroup
from toolmem.guidance.counted.masks import mask_of, positions_of
from toolmem.guidance.counted.patterns import Pattern, Search
from toolmem.guidance.counted.refusals import Refusal
from toolmem.guidance.counted.wording import Wording, percent, quoted
from toolmem.guidance.counted.worth import (
    of_empty_pattern,
    of_pattern,
    of_refusal,
    worth,
)
from toolmem.guidance.fitting import BULLET
from toolmem.guidance.outcomes import flag_is_wrong
from toolmem.guidance.shown import claim_text
from toolmem.guidance.statistics import wilson_interval

Part = Literal["core", "success", "issues", "practices", "statistics"]
PARTS: tuple[Part, ...] = ("core", "success", "issues", "practices", "statistics")

MAX_ERRORS = 6
MAX_EMPTY_PATTERNS = 2
MAX_REFUSALS = 6
MAX_LISTED = 4  # values or examples listed in one sentence
MAX_THING = 50  # characters of an example of what varies in a message
MAX_EXAMPLE = 160  # characters of an input that is shown
FEW = 5  # calls
MANY_FAILED = 4  # calls, none of which worked
_PREVENTING = frozenset({"parameter", "refused", "advice", "sequence"})


@dataclass(frozen=True, slots=True)
class Sentence:
    """One claim before it gets its ids: `k` of `n`, and the positions of the calls that are its evidence.

    `value` decides what stays where tokens are few. In the text what prevents a failure comes before what repairs one.
    """

    part: Part
    kind: str
    text: str
    k: int
    n: int
    positions: Sequence[int]
    value: float
    earlier: tuple[str, ...] = ()  # ids of calls that are evidence as well, and are not among the positions

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", claim_text(self.text))

    @property
    def prevents(self) -> bool:
        return self.kind in _PREVENTING


def overall(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """How many calls worked, with averages. Evidence: the calls whose outcome is known.

    A call worked where neither its flag nor its output says that it failed (`outcomes.went_wrong`).
    `figures.success_rate` goes by the recorded flag alone; where the judge saw errors behind it, both are told.
    """
    figures = found.statistics
    good, bad = found.where(True), found.where(False)
    known = sorted([*good, *bad])
    extras = []
    if figures.avg_score is not None:
        extras.append(say.say("score", x=f"{figures.avg_score:.2f}"))
    if figures.avg_time_cost is not None:
        extras.append(say.say("time", x=say.duration(figures.avg_time_cost)))
    if figures.avg_token_cost is not None:
        extras.append(say.say("tokens", x=f"{figures.avg_token_cost:.0f}"))
    if figures.unknown and known:
        extras.append(say.say("unknown", x=figures.unknown))
    if len(figures.judges) > 1:
        extras.append(say.say("mixed_judges", x=len(figures.judges)))
    if not known:
        text = say.say("overall_unknown", n=figures.calls, extras=say.extras(extras))
        yield Sentence("statistics", "overall", text, 0, 0, (), worth("overall_unknown"))
        return
    k, n = len(good), len(known)
    low, high = wilson_interval(k, n)
    rates = {"rate": percent(k / n), "low": percent(low), "high": percent(high)}
    text = say.say("overall", k=k, n=n, extras=say.extras(extras), **rates)
    yield Sentence("statistics", "overall", text, k, n, known, worth("overall"))
    yield from _flag(found, known, say)


def _flag(found: Analysis, known: Sequence[int], say: Wording) -> Iterator[Sentence]:
    """What the recorded flag says, and by how many calls that differs. Evidence: the same calls."""
    wrong = [i for i in known if flag_is_wrong(found.calls[i])]
    if not wrong:
        return
    key = "by_flag" if all(found.calls[i].success is not None for i in known) else "by_flag_or_judge"
    k, n = len(known) - found.statistics.failures, len(known)
    text = say.say(key, k=k, n=n, rate=percent(k / n), wrong=len(wrong))
    yield Sentence("statistics", "recorded_flag", text, k, n, known, worth(key, len(wrong)))


def patterns(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """What goes with success and with failure, as far as no refused value says it already."""
    search = found.failures
    for pattern in search.patterns:
        evidence = positions_of(pattern.calls)
        if pattern.condition.kind == "earlier" and pattern.good and pattern.within is not None:
            yield Sentence(
                "practices", "sequence", _first_then(pattern, say), pattern.k, pattern.n, evidence, pattern.weight
            )
        elif not _refused_already(found, pattern):
            part: Part = "success" if pattern.good else "issues"
            value = of_pattern(pattern.weight, good=pattern.good, condition=pattern.condition)
            yield Sentence(part, "parameter", say.pattern(pattern), pattern.k, pattern.n, evidence, value)
    if not search.patterns and not found.refusals and search.good and search.bad:
        yield _nothing_found(found, search, say)


def _refused_already(found: Analysis, pattern: Pattern) -> bool:
    """Whether the calls that do worse are among those of a refused value of the same parameter."""
    worse = pattern.base & ~pattern.calls if pattern.good else pattern.calls
    return any(
        one.path == pattern.condition.path and not worse & ~mask_of(one.positions)
        for one in found.refusals[:MAX_REFUSALS]
    )


def refused(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """Values that the tool refuses by name, beside those that worked. Evidence: all calls with such a value."""
    for refusal in found.refusals[:MAX_REFUSALS]:
        worked = _that_worked(found, refusal, say)
        k, n = len(refusal.named), len(refusal.positions)
        value = of_refusal(n, refusal.other_k, refusal.other_n)
        yield Sentence("success", "refused", say.refusal(refusal, worked), k, n, refusal.positions, value)


def _that_worked(found: Analysis, refusal: Refusal, say: Wording) -> list[str]:
    """The values, or the types, with which calls worked: most frequent first, MAX_LISTED at most."""
    kind = "type" if refusal.conditions[0].kind == "type" else "shape"
    kind = "value" if refusal.conditions[0].kind == "value" else kind
    counts = Counter(
        condition.detail
        for i in found.where(True)
        for condition in found.seen[i].conditions
        if condition.kind == kind and condition.path == refusal.path
    )
    named = [
        detail if kind == "value" else say.shape(detail) for detail in sorted(counts, key=lambda d: (-counts[d], d))
    ]
    return [*named[:MAX_LISTED], *(["…"] if len(named) > MAX_LISTED else [])]


def example(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """An input of the usual form that worked, where no pattern tells good calls apart. Evidence: the calls with it.

    Never an input that was ever answered with nothing useful.
    """
    if any(pattern.good for pattern in found.failures.patterns):
        return
    good = found.where(True)
    useless = {values.canonical(found.calls[i].input) for i in found.worthless}
    inputs = Counter(text for i in good if (text := values.canonical(found.calls[i].input)) not in useless)
    forms = {values.canonical(found.calls[i].input): frozenset(found.seen[i].params) for i in good}
    usual = Counter(frozenset(found.seen[i].params) for i in good)
    short = [
        (-usual[forms[text]], -count, len(text), text) for text, count in inputs.items() if 2 < len(text) <= MAX_EXAMPLE
    ]
    if short:
        text = min(short)[-1]
        held = [i for i in good if values.canonical(found.calls[i].input) == text]
        said = say.say("worked", x=text, k=len(held), n=len(good))
        yield Sentence("success", "example", said, len(held), len(good), held, worth("worked"))


def errors(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """The most frequent messages of failed calls. Evidence: the calls that carry the message."""
    failures = len(found.where(False))
    recovered = {one.failure for one in found.recoveries}
    for group in found.errors[:MAX_ERRORS]:
        k = len(group.positions)
        back = sum(position in recovered for position in group.positions)
        followed = any(position in found.followed for position in group.positions)
        text = say.say(
            "error",
            message=say.error(group),
            cls=f" ({group.error_class})" if group.error_class not in {"", "error"} else "",
            k=k,
            n=failures,
            example=_example_of(group, say),
            recovered=say.say("recovered", r=back) if followed else "",
        )
        yield Sentence("issues", "error_class", text, k, failures, group.positions, worth("error", k))


def empty_answers(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """Calls that ran and were worth nothing, apart from failures, and what goes with them."""
    worthless = found.worthless
    judged = sum(one is not None for one in found.useful)
    if not worthless:
        return
    outputs = [found.calls[i].output.strip() for i in worthless]
    commonest = max(sorted(set(outputs)), key=outputs.count)
    example = say.say("example", x=quoted(commonest)) if commonest and len(commonest) <= 160 else ""
    text = say.say("empty", k=len(worthless), n=judged, example=example)
    value = worth("empty", len(worthless))
    yield Sentence("issues", "empty_answer", text, len(worthless), judged, worthless, value)
    bad = [pattern for pattern in found.empty.patterns if not pattern.good]
    for pattern in bad[:MAX_EMPTY_PATTERNS]:
        text = say.pattern(pattern, "pattern_useful")
        evidence = positions_of(pattern.calls)
        yield Sentence(
            "issues", "empty_pattern", text, pattern.k, pattern.n, evidence, of_empty_pattern(pattern.weight)
        )


def repeats(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """What came of sending a failed call again word for word. Evidence: the repeats that the sentence counts."""
    k, n = len(found.repeats.failed), found.repeats.count
    if n < 3:
        return
    low, high = wilson_interval(k, n)
    if low > 0.5:
        text = say.say("repeat", k=k, n=n)
        yield Sentence("practices", "repeat", text, k, n, found.repeats.failed, worth("repeat", k))
    elif high < 0.5:
        text = say.say("retry", k=n - k, n=n)
        yield Sentence("practices", "repeat", text, n - k, n, found.repeats.succeeded, worth("retry", n - k))


def verdict_on_all(found: Analysis, say: Wording) -> Iterator[Sentence]:
    """Where every call ended the same way, what follows from that."""
    good, bad = found.failures.good, found.failures.bad
    if 0 < good < FEW and not bad:
        yield Sentence("issues", "overall", say.say("few_calls"), good, good, found.where(True), worth("few_calls"))
    if bad >= MANY_FAILED and not good:
        failed = found.where(False)
        yield Sentence("practices", "overall", say.say("all_failed"), bad, bad, failed, worth("all_failed", bad))


def _first_then(pattern: Pattern, say: Wording) -> str:
    within = pattern.within
    assert within is not None
    return say.say(
        "advice_first",
        action=within.detail.strip("'"),
        first=pattern.condition.detail.strip("'"),
        k=pattern.k,
        n=pattern.n,
        ok=pattern.other_k,
        on=pattern.other_n,
    )


def _nothing_found(found: Analysis, search: Search, say: Wording) -> Sentence:
    if search.separating is not None:
        key, separating = "separated", say.sentence_of(search.separating)
        text = say.say(key, condition=separating, k=search.good, bad=search.bad)
    else:
        key = "inconclusive" if search.candidates else "too_few"
        text = say.say(key, tests=search.candidates)
    known = [i for i, outcome in enumerate(found.outcomes) if outcome is not None]
    return Sentence("success", "inconclusive", text, search.good, len(known), known, worth(key, len(known)))


def _example_of(group: ErrorGroup, say: Wording) -> str:
    """What stands where the message varies, or a whole message where several things do."""
    things = [" ".join(thing.split()).rstrip(":,;") for thing in group.varying[:MAX_LISTED] if len(thing) <= MAX_THING]
    if any(things):
        return say.say("example", x=say.join(things))
    varies = MASK in group.label and group.example and quoted(group.example) != quoted(group.label)
    return say.say("example", x=quoted(group.example)) if varies else ""


def ordered(sentences: Iterable[Sentence]) -> list[Sentence]:
    """Most valuable first; equal ones by part, then by text, so that the order is always the same."""
    return sorted(sentences, key=lambda one: (-one.value, PARTS.index(one.part), one.text))


def lay_out(sentences: Sequence[Sentence], say: Wording) -> str:
    """The text of guidance: its parts in order, each sentence on a line of its own: prevention first, then by value."""
    lines: list[str] = []
    for part in PARTS:
        of_part = sorted((one for one in sentences if one.part == part), key=lambda one: not one.prevents)
        lines += _part(part, [one.text for one in of_part], say)
    return "\n".join(lines)


def _part(part: Part, texts: Sequence[str], say: Wording) -> list[str]:
    return [f"## {say.heading(part)}", *(BULLET + text for text in texts)] if texts else []
