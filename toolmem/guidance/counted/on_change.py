"""Whether a tool has changed since its last summary: exact tests on counts, with one bound on all their false alarms.

A look compares the newest calls with those before them, back to the tool's last change:

* success rate: the newest 28 and the newest 56 calls, at every 6th and 28th call, and all calls since the summary at a
  few set numbers of them, each against everything earlier;
* traits (error classes, and which parameters are given): the newest 16 and 32 calls, at every 8th call, against the
  calls that the summary knew and the up to 64 that came before.

Each comparison is Fisher's exact test; the traits of one comparison share its level by Tarone's correction. Which
comparisons are made depends on the number of calls alone, never on what they hold or on when somebody looks, and
the false-alarm rate is spent over them in advance (spending over looks: K. K. G. Lan, D. L. DeMets, "Discrete
sequential boundaries for clinical trials", Biometrika 70 (1983) 659-663). As long as the calls are exchangeable (a
stationary tool) each test is wrong with at most its share, and by Bonferroni's inequality the chance that any look
between two summaries gives a false alarm is at most the rate. `life` ends what the rate is spent on: after so many
calls a summary is due in any case. The tests overlap and counts are whole numbers, so that the chance
measured is below a third of the bound. A faster test with as few false alarms has little room: Page's CUSUM, told both
success rates beforehand, notices a drop about as soon (both in `benchmarks/change_detection.py`).

The bound holds for exchangeable calls alone. Calls that depend on the ones before them come in runs of failures: an
agent that is stuck calls again, and the tasks of one sort follow one another. Then alarms are more frequent. They are
no error of the counts, for in those calls the tool did do worse, but they need not last.

After an alarm the calls so far are left out of later comparisons: they were chosen by it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from toolmem.guidance.counted.exact import fisher_exact, least_p, tarone_level
from toolmem.guidance.counted.values import parameters
from toolmem.guidance.outcomes import went_wrong
from toolmem.models import Baseline, CallFigures, ToolCallResult, ToolRecord

RUNNING = ((28, 6), (56, 28))  # (newest calls, at every n-th call) compared for the success rate
WHOLE = (8, 12, 16, 20, 24, 28, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)  # all calls since the summary
TRAITS = ((16, 8), (32, 8))
EARLIER = 64  # calls before an endpoint that a comparison of traits may read
KEPT = 128  # newest calls that a look reads

RATE_SHARE, TRAIT_SHARE = 0.95, 0.05  # of the false-alarm rate
WHOLE_SHARE = 0.15  # of the share of the success rate


@dataclass(frozen=True, slots=True)
class Change:
    """What has changed: `k` of the `n` newest calls, `before_k` of `before_n` earlier ones."""

    what: str  # "failed", "error <class>", "parameter <name>"
    k: int
    n: int
    before_k: int
    before_n: int
    p: float

    def __str__(self) -> str:
        return f"{self.what}: {self.k} of {self.n} newest calls, {self.before_k} of {self.before_n} before"


def traits_of(call: ToolCallResult) -> set[str]:
    """What a call is counted under: the class of its error, and each parameter that it gives."""
    found = {f"parameter {name}" for name in parameters(call.input)}
    if went_wrong(call):
        found.add(f"error {call.error_class or 'unknown'}")
    return found


def baseline_of(
    record: ToolRecord, calls: Sequence[ToolCallResult], old: Baseline | None, *, changed: bool
) -> Baseline:
    """The baseline of a summary that is written now. `calls`: the newest kept ones.

    Where nothing has `changed` it goes back as far as the old one did; without an old one, as far as the lifetime
    counters. Calls that gave an alarm, and those before, are not in it.
    """
    counters = record.counters
    totals = {"all_successes": counters.successes, "all_failures": counters.failures}
    if changed:
        return Baseline(seq=record.last_seq, **totals)
    judged = [call for call in calls if call.score is not None][-EARLIER * 2 :]
    counts = Counter(trait for call in judged for trait in traits_of(call))
    good, bad = (counters.successes, counters.failures) if old is None else _so_far(record, old)
    return Baseline(
        seq=record.last_seq, successes=good, failures=bad, **totals, trait_calls=len(judged), traits=dict(counts)
    )


def _so_far(record: ToolRecord, baseline: Baseline) -> tuple[int, int]:
    """(successes, failures) from the last change up to now. Counters that were set back count as nothing new."""
    good = record.counters.successes - baseline.all_successes
    bad = record.counters.failures - baseline.all_failures
    return baseline.successes + max(0, good), baseline.failures + max(0, bad)


def change_in_rate(
    record: ToolRecord, baseline: Baseline, figures: Sequence[CallFigures], *, rate: float, life: int
) -> Change | None:
    """A change of the success rate. `figures`: of the newest kept calls, oldest first."""
    spent = rate * RATE_SHARE
    tests = sum(life // step for _, step in RUNNING)
    level = spent * (1 - WHOLE_SHARE) / tests if tests else 0.0
    whole = [number for number in WHOLE if number <= life]
    whole_level = spent * WHOLE_SHARE / max(1, len(whole))
    newest = _Newest(record, baseline, figures)
    last = min(newest.age, life)
    first = newest.age - len(figures)  # the calls up to here are not at hand any more
    for length, step in RUNNING:
        for end in range(last - last % step, max(first, length - 1), -step):
            if (found := newest.compared(end, length, level)) is not None:
                return found
    for end in whole:
        if first < end <= last and (found := newest.compared(end, end, whole_level)) is not None:
            return found
    return None


class _Newest:
    """Failures among the newest calls, and among everything before them."""

    def __init__(self, record: ToolRecord, baseline: Baseline, figures: Sequence[CallFigures]) -> None:
        self._seq = baseline.seq
        self.age = record.last_seq - baseline.seq  # calls since the summary
        self._good, self._bad = _so_far(record, baseline)
        self._first = figures[0].seq if figures else record.last_seq + 1
        self._sums = {self._first - 1: (0, 0)}
        good = bad = 0
        for one in figures:
            good, bad = good + (one.failed is False), bad + (one.failed is True)
            self._sums[one.seq] = (good, bad)
        self._all = (good, bad)

    def compared(self, end: int, length: int, level: float) -> Change | None:
        """The `length` calls that end with the `end`-th since the summary, against everything before them."""
        last, before = self._sums.get(self._seq + end), self._sums.get(self._seq + end - length)
        if last is None or before is None:
            return None  # not kept any more
        good, bad = last[0] - before[0], last[1] - before[1]
        earlier_good = self._good - (self._all[0] - before[0])
        earlier_bad = self._bad - (self._all[1] - before[1])
        if min(earlier_good, earlier_bad) < 0 or good + bad == 0 or earlier_good + earlier_bad == 0:
            return None
        counts = (bad, good + bad, earlier_bad, earlier_good + earlier_bad)
        if not _far_apart(*counts):
            return None
        p = _fisher(*counts)
        return Change("failed", *counts, p) if p <= level else None


def change_in_traits(
    baseline: Baseline, calls: Sequence[ToolCallResult], *, last_seq: int, rate: float, life: int
) -> Change | None:
    """A change of error classes or of the parameters that are given. `calls`: the newest kept ones, oldest first."""
    tests = sum(life // step for _, step in TRAITS)
    level = rate * TRAIT_SHARE / tests if tests else 0.0
    fresh = {call.seq - baseline.seq: call for call in calls if call.seq is not None and call.seq > baseline.seq}
    age = last_seq - baseline.seq
    kept_from = min(fresh, default=age + 1)
    traits = {place: traits_of(call) for place, call in fresh.items() if call.score is not None}
    for end in range(min(age, life), max(0, age - EARLIER), -1):
        for length, step in TRAITS:
            first = max(1, end - EARLIER + 1)
            if end % step or end < length or first < kept_from:
                continue
            newest = [traits[i] for i in range(end - length + 1, end + 1) if i in traits]
            earlier = [traits[i] for i in range(first, end - length + 1) if i in traits]
            found = _differing(newest, earlier, baseline, level)
            if found is not None:
                return found
    return None


def _differing(
    newest: Sequence[set[str]], earlier: Sequence[set[str]], baseline: Baseline, level: float
) -> Change | None:
    n, before_n = len(newest), baseline.trait_calls + len(earlier)
    if not n or not before_n:
        return None
    now = Counter(trait for one in newest for trait in one)
    before = Counter(baseline.traits) + Counter(trait for one in earlier for trait in one)
    names = sorted(now.keys() | before.keys())
    allowed = tarone_level([least_p(n, before_n, now[name] + before[name]) for name in names], level)
    for name in names:
        counts = (now[name], n, before[name], before_n)
        if _far_apart(*counts) and (p := _fisher(*counts)) <= allowed:
            return Change(name, *counts, p)
    return None


def _far_apart(k: int, n: int, before_k: int, before_n: int) -> bool:
    """Spare the exact test where the rates differ by less than two standard errors.

    Its p-value is far above any level here, and leaving a test out never adds a false alarm.
    """
    share = (k + before_k) / (n + before_n)
    variance = share * (1 - share) * (1 / n + 1 / before_n)
    return variance > 0 and abs(k / n - before_k / before_n) >= 2 * math.sqrt(variance)


@lru_cache(maxsize=4096)
def _fisher(k: int, n: int, before_k: int, before_n: int) -> float:
    return fisher_exact(k, n, before_k, before_n)
