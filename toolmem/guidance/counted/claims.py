"""What an analysis says, each finding as one claim: its kind, what it is about, its counts and the calls behind it.

No words here: `render` says a claim in a language, `worth` says what it is worth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from toolmem.guidance.counted.analysis import Analysis
from toolmem.guidance.counted.error_groups import ErrorGroup
from toolmem.guidance.counted.patterns import Pattern, mask_of, positions_of
from toolmem.guidance.counted.refusals import RefusedValues
from toolmem.guidance.counted.values import by_frequency
from toolmem.guidance.outcomes import flag_is_wrong
from toolmem.models import Claim, Subject
from toolmem.readers.error_messages import MASK, mask
from toolmem.readers.proportions import wilson_interval

MAX_ERRORS = 6
MAX_EMPTY_PATTERNS = 2
MAX_REFUSALS = 6
MAX_LISTED = 4  # values or examples listed in one sentence
MAX_THING = 50  # characters of an example of what varies in a message
MAX_EXAMPLE = 160  # characters of an input that is shown
FEW = 5  # calls
MANY_FAILED = 4  # calls, none of which worked


def claim(
    found: Analysis,
    kind: str,
    subject: Subject,
    k: int,
    n: int,
    positions: Sequence[int] = (),
    counts: Mapping[str, int] | None = None,
    detail: Mapping[str, Any] | None = None,
    earlier: Sequence[str] = (),
) -> Claim:
    """`positions`: of the calls that are its evidence; `earlier`: ids of calls that are evidence as well."""
    ids = (*earlier, *(found.ids[i] for i in positions))
    known = {name: value for name, value in (detail or {}).items() if value or (value == 0.0 and value is not False)}
    return Claim(text="", k=k, n=n, call_ids=ids, kind=kind, subject=subject, counts=dict(counts or {}), detail=known)


def overall(found: Analysis) -> Iterator[Claim]:
    """How many calls worked, with averages. Evidence: the calls whose outcome is known.

    A call worked where neither its flag nor its output says that it failed (`outcomes.went_wrong`).
    `figures.success_rate` goes by the recorded flag alone; where the judge saw errors behind it, both are told.
    """
    figures = found.statistics
    good = found.where(True)
    known = sorted([*good, *found.where(False)])
    detail = {
        "score": figures.avg_score,
        "time": figures.avg_time_cost,
        "tokens": figures.avg_token_cost,
        "unknown": figures.unknown if known and figures.unknown else None,
        "mixed_judges": len(figures.judges) if len(figures.judges) > 1 else None,
    }
    if not known:
        yield claim(found, "overall", Subject(form="overall_unknown"), 0, 0, (), {"calls": figures.calls}, detail)
        return
    yield claim(found, "overall", Subject(form="overall"), len(good), len(known), known, detail=detail)
    yield from _flag(found, known)


def _flag(found: Analysis, known: Sequence[int]) -> Iterator[Claim]:
    """What the recorded flag says, and by how many calls that differs. Evidence: the same calls."""
    wrong = sum(flag_is_wrong(found.calls[i]) for i in known)
    if wrong:
        form = "by_flag" if all(found.calls[i].success is not None for i in known) else "by_flag_or_judge"
        k, n = len(known) - found.statistics.failures, len(known)
        yield claim(found, "recorded_flag", Subject(form=form), k, n, known, {"wrong": wrong})


def patterns(found: Analysis) -> Iterator[Claim]:
    """What goes with success and with failure, as far as no refused value says it already."""
    for pattern in found.failures.patterns:
        if pattern.condition.kind == "earlier" and pattern.good and pattern.within is not None:
            yield _compared(found, "sequence", "advice_first", pattern)
        elif not _refused_already(found, pattern):
            yield _compared(found, "parameter", "pattern", pattern)


def _compared(found: Analysis, kind: str, form: str, pattern: Pattern) -> Claim:
    subject = Subject(form=form, conditions=(pattern.condition,), within=pattern.within)
    counts = {"ok": pattern.other_k, "on": pattern.other_n}
    return claim(found, kind, subject, pattern.k, pattern.n, positions_of(pattern.calls), counts)


def _refused_already(found: Analysis, pattern: Pattern) -> bool:
    """Whether the calls that do worse are among those of a refused value of the same parameter."""
    worse = pattern.base & ~pattern.calls if pattern.good else pattern.calls
    return any(
        one.path == pattern.condition.path and not worse & ~mask_of(one.positions)
        for one in found.refusals[:MAX_REFUSALS]
    )


def unexplained(found: Analysis) -> Iterator[Claim]:
    """What all failures have and no other call, where too few differ for the test; or that there are too few calls.

    Evidence: all calls whose outcome is known.
    """
    search = found.failures
    if search.patterns or found.refusals or not (search.good and search.bad):
        return
    known = [i for i, outcome in enumerate(found.outcomes) if outcome is not None]
    if search.separating is not None:
        subject = Subject(form="separated", conditions=(search.separating,))
        yield claim(found, "inconclusive", subject, search.good, len(known), known, {"bad": search.bad})
    elif not search.candidates:
        yield claim(found, "inconclusive", Subject(form="too_few"), search.good, len(known), known)


def refused(found: Analysis) -> Iterator[Claim]:
    """Values that the tool refuses by name, beside those that worked. Evidence: all calls with such a value."""
    for refusal in found.refusals[:MAX_REFUSALS]:
        first = refusal.conditions[0].kind
        form = f"refused_{'type' if first == 'shape' else first}"
        subject = Subject(form=form, path=refusal.path, conditions=refusal.conditions)
        k, n = len(refusal.named), len(refusal.positions)
        counts = {"ok": refusal.other_k, "on": refusal.other_n}
        detail = {"worked": _that_worked(found, refusal)}
        yield claim(found, "refused", subject, k, n, refusal.positions, counts, detail)


def _that_worked(found: Analysis, refusal: RefusedValues) -> list[str]:
    """The values, or the types, with which calls worked: most frequent first, MAX_LISTED at most."""
    kind = refusal.conditions[0].kind
    if kind in {"above", "under", "unlike"}:
        return []  # its bound or its form says it
    counts = Counter(
        condition.detail
        for i in found.where(True)
        for condition in found.seen[i].conditions
        if condition.kind == kind and condition.path == refusal.path
    )
    named = by_frequency(counts)
    return [*named[:MAX_LISTED], *(["…"] if len(named) > MAX_LISTED else [])]


def errors(found: Analysis, told: Collection[str]) -> Iterator[Claim]:
    """The most frequent messages of failed calls, but for those that repairs name (`told`, as `Subject.error`).

    Evidence: the calls that carry the message.
    """
    failures = len(found.where(False))
    recovered = {one.failure for one in found.recoveries}
    for group in found.errors[:MAX_ERRORS]:
        if (error := mask(group.label)) in told:
            continue
        followed = any(position in found.followed for position in group.positions)
        counts = {"recovered": sum(position in recovered for position in group.positions)} if followed else {}
        error_class = group.error_class if group.error_class != "error" else ""
        detail = {"label": group.label, "class": error_class, **_example_of(group)}
        subject = Subject(form="error", error=error)
        yield claim(found, "error_class", subject, len(group.positions), failures, group.positions, counts, detail)


def _example_of(group: ErrorGroup) -> dict[str, Any]:
    """What stands where the message varies, or a whole message where several things do."""
    things = [" ".join(thing.split()).rstrip(":,;") for thing in group.varying[:MAX_LISTED] if len(thing) <= MAX_THING]
    if any(things):
        return {"things": things}
    return {"example": group.example} if MASK in group.label else {}


def empty_answers(found: Analysis) -> Iterator[Claim]:
    """Calls that ran and were worth nothing, apart from failures, and what goes with them."""
    worthless = found.worthless
    if not worthless:
        return
    judged = sum(one is not None for one in found.useful)
    outputs = [found.calls[i].output.strip() for i in worthless]
    commonest = by_frequency(Counter(outputs))[0]
    detail = {"example": commonest if len(commonest) <= MAX_EXAMPLE else ""}
    yield claim(found, "empty_answer", Subject(form="empty"), len(worthless), judged, worthless, detail=detail)
    bad = [pattern for pattern in found.empty.patterns if not pattern.good]
    for pattern in bad[:MAX_EMPTY_PATTERNS]:
        yield _compared(found, "empty_pattern", "pattern_useful", pattern)


def repeats(found: Analysis) -> Iterator[Claim]:
    """What came of sending a failed call again word for word. Evidence: the repeats that the sentence counts."""
    failed, succeeded, n = found.repeats.failed, found.repeats.succeeded, found.repeats.count
    if n < 3:
        return
    low, high = wilson_interval(len(failed), n)
    if low > 0.5:
        yield claim(found, "repeat", Subject(form="repeat"), len(failed), n, failed)
    elif high < 0.5:
        yield claim(found, "repeat", Subject(form="retry"), len(succeeded), n, succeeded)


def verdict_on_all(found: Analysis) -> Iterator[Claim]:
    """Where every call ended the same way, what follows from that."""
    good, bad = found.where(True), found.where(False)
    if 0 < len(good) < FEW and not bad:
        yield claim(found, "overall", Subject(form="few_calls"), len(good), len(good), good)
    if len(bad) >= MANY_FAILED and not good:
        yield claim(found, "overall", Subject(form="all_failed"), len(bad), len(bad), bad)
