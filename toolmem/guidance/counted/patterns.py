"""Which conditions go with success and which with failure, and only where the counts carry it.

Every condition on the calls' inputs that could separate them is a candidate, chosen without a look at the outcomes.
Each is compared by Fisher's exact test with the calls where it does not hold; Tarone's correction keeps the chance of
one or more false claims per tool within 5 %. Five things keep the test honest:

* calls that repeat one another in a conversation, word for word and with the same outcome, count once in the test
  (the counts shown are of all calls);
* failures that no input is to blame for (the service was down, too many requests) are left out of the test, so that
  they hide nothing; the counts shown hold them;
* what happened earlier in a conversation stays true for the rest of it: there each conversation counts once per side;
* candidates that hold of the same calls are one hypothesis, stated by its plainest name;
* what is seen in a single conversation only is not claimed where there are three or more of them.

A candidate that says nothing beyond those already chosen (the calls that they leave over show no difference) is
dropped.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from toolmem.guidance.counted.conditions import SIZES, Condition, Observation
from toolmem.guidance.counted.exact import fisher_exact, least_p, tarone_level
from toolmem.guidance.outcomes import UNKNOWN

ALPHA = 0.05  # chance of one or more false claims per tool
MAX_CANDIDATES = 1500
MAX_PATTERNS = 8
MAX_CUTS = 6  # bounds tried per measure
WARNING_BONUS = 0.2  # of the share that a statement is judged by: what fails is worth more than what works
LEAST_SEPARATED = 5  # failures, and other calls, that a clean separation is told of
_STRONGER = 1e-9  # nats
MIN_DIFFERENCE = 0.15  # of the two success rates; smaller ones help nobody choose

# The plainest way to name the same set of calls first.
_BY_PLAINNESS = (
    *("statement", "program", "present", "value", "clause", "part", "flag"),
    *("prose", "type", "shape", "table", "uppercase", "at_least", "earlier"),
)
_PLAINNESS = {kind: rank for rank, kind in enumerate(_BY_PLAINNESS)}


@dataclass(frozen=True, slots=True)
class Pattern:
    """`condition` goes with success or with failure; `k` counts the calls that went well."""

    condition: Condition
    within: Condition | None  # compared among the calls where this holds; None: among all
    k: int
    n: int  # calls where the condition holds
    other_k: int
    other_n: int  # calls (within) where it does not
    p: float  # Fisher's exact test on distinct calls, before the correction
    calls: int  # bit mask of the n calls
    base: int  # bit mask of the n + other_n calls

    @property
    def good(self) -> bool:
        """Calls where the condition holds went better than the others."""
        return self.k * self.other_n > self.other_k * self.n

    @property
    def strength(self) -> float:
        """Information about the outcome, in nats over all compared calls (half the G statistic)."""
        total, good = self.n + self.other_n, self.k + self.other_k
        cells = (
            (self.k, self.n, good),
            (self.n - self.k, self.n, total - good),
            (self.other_k, self.other_n, good),
            (self.other_n - self.other_k, self.other_n, total - good),
        )
        return sum(cell * math.log(cell * total / (row * column)) for cell, row, column in cells if cell)


@dataclass(frozen=True, slots=True)
class Search:
    """What the search for patterns found, and how hard it looked."""

    patterns: tuple[Pattern, ...]  # strongest first
    candidates: int  # hypotheses that the counts could have carried at all
    good: int  # calls that went well
    bad: int
    separating: Condition | None = None  # where no pattern passed: holds of all calls that failed, and of no other


@dataclass(frozen=True, slots=True)
class _Candidate:
    condition: Condition
    within: Condition | None
    holds: int  # bit masks: the calls where it holds, those compared, and those of them that the test counts
    base: int
    tested: int
    otherwise: Condition | None = None  # a name for the calls where it does not hold


def find_patterns(
    seen: Sequence[Observation],
    outcomes: Sequence[bool | None],
    conversation_of: Sequence[int],
    identity: Sequence[Hashable],
    blameless: Collection[int] = (),
) -> Search:
    """Patterns in `seen`, one observation per call.

    `outcomes`: True = went well, False = did not, None = not known or not to be counted. `conversation_of`: number of
    each call's conversation (UNKNOWN: not known). `identity`: equal for calls with the same input. `blameless`:
    positions of failures that say nothing about their input.
    """
    known = mask_of(i for i, outcome in enumerate(outcomes) if outcome is not None)
    good = mask_of(i for i, outcome in enumerate(outcomes) if outcome)
    if not good or good == known:
        return Search((), 0, good.bit_count(), (known & ~good).bit_count())
    distinct = _distinct(outcomes, conversation_of, identity) & ~mask_of(blameless)
    candidates = _candidates(seen, known, distinct, conversation_of)
    least = [
        least_p(
            (c.holds & c.tested).bit_count(),
            (c.base & ~c.holds & c.tested).bit_count(),
            (c.base & good & c.tested).bit_count(),
        )
        for c in candidates
    ]
    level = tarone_level(least, ALPHA)
    found = [
        pattern
        for candidate, reachable in zip(candidates, least, strict=True)
        if reachable <= level and (pattern := _tested(candidate, good, level)) is not None
    ]
    found = [sharpened(pattern, seen, good) for pattern in found]
    found = [pattern for pattern in found if _widespread(pattern, good, conversation_of)]
    found.sort(key=lambda one: (-one.strength, _PLAINNESS.get(one.condition.kind, 99), one.condition))
    return Search(
        tuple(_independent(found, good, known)),
        sum(p <= ALPHA for p in least),
        good.bit_count(),
        (known & ~good).bit_count(),
        None if found else _separating(candidates, good, known & ~mask_of(blameless)),
    )


def _separating(candidates: Sequence[_Candidate], good: int, known: int) -> Condition | None:
    """What all failures have and no other call: the plainest of several."""
    if min(good.bit_count(), (known & ~good).bit_count()) < LEAST_SEPARATED:
        return None
    for candidate in candidates:
        if candidate.within is None and candidate.condition.kind != "earlier" and candidate.base & known == known:
            if candidate.holds & known == known & ~good:
                return candidate.condition
            if candidate.holds & known == good and (rest := candidate.otherwise or _opposite(candidate.condition)):
                return rest
    return None


def sharpened(pattern: Pattern, seen: Sequence[Observation], good: int) -> Pattern:
    """The same pattern with its bound where it separates best; others as they are.

    Bounds are tried at a few quantiles, so that few tests are paid for. That the measure matters is what the test of
    such a bound carries; where exactly it matters is read from all values, and the counts shown are those of the value.
    """
    kind, path, measure, _ = pattern.condition
    if kind not in {"at_least", "below"}:
        return pattern
    values = {i: seen[i].measures.get((measure, path)) for i in positions_of(pattern.base)}
    best = pattern
    for bound in sorted({value for value in values.values() if value is not None})[1:]:
        above = mask_of(i for i, value in values.items() if value is not None and value >= bound)
        holds = above if kind == "at_least" else pattern.base & ~above
        counts = _counts(holds, pattern.base, good)
        if not counts[1] or not counts[3]:
            continue
        condition = pattern.condition._replace(bound=bound)
        sharper = Pattern(condition, pattern.within, *counts, pattern.p, holds, pattern.base)
        if sharper.good == pattern.good and sharper.strength > best.strength + _STRONGER:
            best = sharper
    return best


# ---------------------------------------------------------------- candidates


def _distinct(outcomes: Sequence[bool | None], conversation_of: Sequence[int], identity: Sequence[Hashable]) -> int:
    """One call of each (conversation, input, outcome): a call sent again and again is one observation."""
    met: set[Hashable] = set()
    first: list[int] = []
    for position, outcome in enumerate(outcomes):
        key = (conversation_of[position], identity[position], outcome)
        if outcome is not None and key not in met:
            met.add(key)
            first.append(position)
    return mask_of(first)


def _candidates(
    seen: Sequence[Observation], known: int, distinct: int, conversation_of: Sequence[int]
) -> list[_Candidate]:
    """Everything that could separate the calls, chosen from their inputs alone; one per set of calls."""
    holds: dict[Condition, list[int]] = {}
    for position in positions_of(known):
        for condition in seen[position].conditions:
            holds.setdefault(condition, []).append(position)
    masks = {condition: mask_of(positions) for condition, positions in holds.items() if len(positions) > 1}
    cuts, measured = _cuts(seen, known)
    masks.update(cuts)
    strata = _strata(seen, masks, known)
    made: dict[tuple[int, int], _Candidate] = {}
    for condition in sorted(masks, key=lambda c: (_PLAINNESS.get(c.kind, 99), c)):
        mask = masks[condition]
        span = measured.get((condition.detail, condition.path), known) if condition.kind == "at_least" else known
        for within, base in _comparisons(condition, mask, masks, strata, known):
            base &= span
            inside = mask & base
            outside = base & ~inside
            tested = base & distinct
            if condition.kind == "earlier":
                tested = _once_each(inside & distinct, conversation_of) | _once_each(
                    outside & distinct, conversation_of
                )
            if not inside & tested or not outside & tested:
                continue
            key = (base, min(inside, outside))
            known_as = made.setdefault(key, _Candidate(condition, within, inside, base, tested))
            if known_as.otherwise is None and known_as.holds == outside:
                made[key] = replace(known_as, otherwise=condition)
    chosen = list(made.values())
    if len(chosen) > MAX_CANDIDATES:
        chosen.sort(key=lambda c: -min(c.holds.bit_count(), (c.base & ~c.holds).bit_count()))
        del chosen[MAX_CANDIDATES:]
    return chosen


def _once_each(mask: int, conversation_of: Sequence[int]) -> int:
    """The first call of each conversation among those of `mask`."""
    first: dict[int, int] = {}
    for position in positions_of(mask):
        first.setdefault(conversation_of[position], position)
    return mask_of(first.values())


def _cuts(seen: Sequence[Observation], known: int) -> tuple[dict[Condition, int], dict[tuple[str, str], int]]:
    """Bounds on measures, at most MAX_CUTS each, at the quantiles of the values; and which calls have each measure.

    A value that is no number is not below a bound; a text too short to be measured is.
    """
    values: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for position in positions_of(known):
        for key, value in seen[position].measures.items():
            values.setdefault(key, []).append((value, position))
    masks: dict[Condition, int] = {}
    for (measure, path), pairs in values.items():
        different = sorted({value for value, _ in pairs})[1:]
        step = max(1.0, len(different) / MAX_CUTS)
        bounds = {different[int(i * step)] for i in range(min(MAX_CUTS, len(different)))}
        for bound in bounds:
            condition = Condition("at_least", path, measure, bound)
            masks[condition] = mask_of(position for value, position in pairs if value >= bound)
    measured = {key: mask_of(i for _, i in pairs) for key, pairs in values.items() if key[0] in SIZES}
    return masks, measured


def _strata(seen: Sequence[Observation], masks: dict[Condition, int], known: int) -> list[tuple[Condition, int]]:
    """The actions (statement kinds, values of the action parameter) within which calls are compared."""
    actions = Counter(action for i in positions_of(known) if (action := seen[i].action) is not None)
    if len(actions) < 2:
        return []
    return [(action, masks[action]) for action, _ in actions.most_common(6) if action in masks]


def _comparisons(
    condition: Condition,
    mask: int,
    masks: dict[Condition, int],
    strata: list[tuple[Condition, int]],
    known: int,
) -> Iterator[tuple[Condition | None, int]]:
    """Among which calls a condition is compared with its absence."""
    kind = condition.kind
    if kind == "flag":
        program = Condition("program", condition.path, condition.detail.split(" ", 1)[0])
        if program in masks:
            yield program, masks[program]
        return
    if kind in {"earlier", "clause", "table", "present"} or (kind, condition.detail) == ("at_least", "tables"):
        yield from (one for one in strata if kind != "earlier" or one[0].detail != condition.detail)
        if kind == "earlier" or (strata and kind != "present"):
            return
    if kind == "present" and (parent := Condition("present", condition.path.rpartition(".")[0])) in masks:
        yield parent, masks[parent]  # a field of an object that is not there is not missing
        return
    given = masks.get(Condition("present", condition.path), 0)
    if kind != "present" and (known & ~given).bit_count() >= 2 and given & ~mask:
        yield Condition("present", condition.path), given
    else:
        yield None, known


# ---------------------------------------------------------------- tests


def _counts(holds: int, base: int, good: int) -> tuple[int, int, int, int]:
    others = base & ~holds
    return (holds & good).bit_count(), holds.bit_count(), (others & good).bit_count(), others.bit_count()


def _tested(candidate: _Candidate, good: int, level: float) -> Pattern | None:
    k, n, other_k, other_n = _counts(candidate.holds & candidate.tested, candidate.tested, good)
    p = fisher_exact(k, n, other_k, other_n)
    if p > level:
        return None
    all_counts = _counts(candidate.holds, candidate.base, good)
    stated = Pattern(candidate.condition, candidate.within, *all_counts, p, candidate.holds, candidate.base)
    made = _plainer_side(stated, candidate.otherwise)
    difference = made.k / made.n - made.other_k / made.other_n
    # Word-for-word repeats may turn the direction that the distinct calls show: then the counts carry nothing.
    same_way = (all_counts[0] / all_counts[1] > all_counts[2] / all_counts[3]) == (k / n > other_k / other_n)
    return made if same_way and abs(difference) >= MIN_DIFFERENCE else None


def _opposite(condition: Condition) -> Condition | None:
    """What holds where `condition` does not, where that has a name of its own."""
    kind = {"present": "absent", "at_least": "below"}.get(condition.kind)
    return condition._replace(kind=kind) if kind else None


def _plainer_side(pattern: Pattern, otherwise: Condition | None) -> Pattern:
    """Of two sides that both have a name, the one nearer to always or never; a warning where it is as clear."""
    otherwise = _opposite(pattern.condition) or otherwise

    def clarity(k: int, n: int, good: bool) -> float:
        return (max(k, n - k) + 0.5) / (n + 1) + (0.0 if good else WARNING_BONUS)

    here, there = (pattern.k, pattern.n), (pattern.other_k, pattern.other_n)
    if otherwise is None or clarity(*here, pattern.good) >= clarity(*there, not pattern.good):
        return pattern
    others = pattern.base & ~pattern.calls
    return Pattern(otherwise, pattern.within, *there, *here, pattern.p, others, pattern.base)


def _widespread(pattern: Pattern, good: int, conversation_of: Sequence[int]) -> bool:
    """What the pattern claims was seen in two conversations at least, where there are three or more."""
    if len(set(conversation_of)) < 3:
        return True
    evidence = pattern.calls & good if pattern.good else pattern.calls & ~good
    shown_by = {conversation_of[i] for i in positions_of(evidence)}
    return len(shown_by) >= 2 or UNKNOWN in shown_by


def _independent(found: Sequence[Pattern], good: int, known: int) -> Iterator[Pattern]:
    """Those that still separate calls, inside or outside of every stronger one."""
    chosen: list[Pattern] = []
    per_path: Counter[tuple[str, str]] = Counter()
    for pattern in found:
        place = (pattern.condition.path, pattern.condition.kind)
        if len(chosen) >= MAX_PATTERNS or per_path[place] >= 3:
            continue
        if all(_adds(pattern, other, good, known) for other in chosen):
            chosen.append(pattern)
            per_path[place] += 1
            yield pattern


def _adds(pattern: Pattern, other: Pattern, good: int, known: int) -> bool:
    for part in (other.calls, known & ~other.calls):
        holds = pattern.calls & part
        k, n, other_k, other_n = _counts(holds, pattern.base & part, good)
        same_way = n and other_n and (k * other_n > other_k * n) == pattern.good
        if same_way and fisher_exact(k, n, other_k, other_n) <= ALPHA:
            return True
    return False


# ---------------------------------------------------------------- sets of positions as the bits of one number


def mask_of(positions: Iterable[int]) -> int:
    """Positions as the bits of one number."""
    raw = bytearray()
    for position in positions:
        byte = position >> 3
        if byte >= len(raw):
            raw.extend(bytes(byte + 1 - len(raw)))
        raw[byte] |= 1 << (position & 7)
    return int.from_bytes(raw, "little")


def positions_of(mask: int) -> list[int]:
    """Positions of the bits that are set, ascending."""
    return list(_bits(mask))


def _bits(mask: int) -> Iterator[int]:
    for byte, bits in enumerate(mask.to_bytes((mask.bit_length() + 7) // 8, "little")):
        while bits:
            low = bits & -bits
            yield byte * 8 + low.bit_length() - 1
            bits ^= low
