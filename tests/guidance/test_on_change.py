"""Whether a tool has changed: what is noticed, and how seldom what has not happened is."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from toolmem.guidance.counted.on_change import (
    RATE_SHARE,
    RUNNING,
    TRAIT_SHARE,
    TRAITS,
    WHOLE,
    WHOLE_SHARE,
    baseline_of,
    change_in_rate,
    change_in_traits,
    traits_of,
)
from toolmem.guidance.policies import Policy
from toolmem.models import Baseline, CallFigures, LifetimeCounters, ToolCallResult, ToolRecord

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEEP = 100


def record(seq: int, successes: int, failures: int) -> ToolRecord:
    counters = LifetimeCounters(successes=successes, failures=failures)
    return ToolRecord.model_construct(
        workspace="w", tool_name="t", memory_id="m", version=1, last_seq=seq, counters=counters
    )


class Tool:
    """A tool whose calls arrive one by one, with a look after each of them."""

    def __init__(self, seed: int = 0, rate: float = Policy().false_alarm_rate, life: int = 1000) -> None:
        self.draw = random.Random(seed)
        self.rate, self.life = rate, life
        self.seen = self.good = 0
        self.kept: list[CallFigures] = []
        self.baseline = Baseline()

    def call(self, worked: bool) -> None:
        self.seen += 1
        self.good += worked
        self.kept.append(CallFigures.model_construct(seq=self.seen, success=worked, execution_failed=None, score=1.0))
        del self.kept[:-KEEP]

    @property
    def record(self) -> ToolRecord:
        return record(self.seen, self.good, self.seen - self.good)

    def calls(self, number: int, success_rate: float) -> int | None:
        """After how many of these calls a look finds a change; None: after none."""
        for count in range(1, number + 1):
            self.call(self.draw.random() < success_rate)
            if change_in_rate(self.record, self.baseline, self.kept, rate=self.rate, life=self.life) is not None:
                return count
        return None

    def summarized(self, *, changed: bool = False) -> None:
        self.baseline = baseline_of(self.record, [], self.baseline, changed=changed)


def known(seed: int, calls: int, success_rate: float) -> Tool:
    tool = Tool(seed)
    for _ in range(calls):
        tool.call(tool.draw.random() < success_rate)
    tool.summarized()
    return tool


def test_the_levels_of_all_tests_of_a_life_sum_up_to_the_rate():
    """Bonferroni's bound, counted from the schedule itself: at life calls no test is left out."""
    life = 1000
    running = sum(life // step for _, step in RUNNING)
    whole = sum(number <= life for number in WHOLE)
    traits = sum(life // step for _, step in TRAITS)
    rate = RATE_SHARE * (1 - WHOLE_SHARE) / running * running + RATE_SHARE * WHOLE_SHARE / whole * whole
    assert rate + TRAIT_SHARE / traits * traits == pytest.approx(1.0)


@pytest.mark.parametrize("success_rate", [0.5, 0.9])
def test_a_stationary_tool_is_left_alone_whatever_the_number_of_looks(success_rate: float):
    """A rate of 0.2 over 250 calls allows 4 of 20 runs."""
    alarms = 0
    for seed in range(20):
        tool = known(seed, 100, success_rate)
        tool.rate, tool.life = 0.2, 250
        alarms += tool.calls(250, success_rate) is not None
    assert alarms <= 4


def test_a_drop_from_nine_in_ten_to_six_in_ten_is_noticed_soon():
    """Figures of more runs: benchmarks/results/change_detection.json."""
    delays = sorted(found if (found := known(seed, 300, 0.9).calls(200, 0.6)) else 999 for seed in range(40))
    assert delays[20] <= 24
    assert sum(delay <= 30 for delay in delays) >= 28
    assert delays[36] <= 60


def test_a_stationary_tool_is_summarized_three_times_in_a_thousand_calls_at_most():
    """Its first call, a full window, and a false alarm; by default, with comparisons where some end."""
    written = []
    for seed in range(8):
        tool = Tool(seed)
        summaries = 0
        for count in range(1, 1001):
            tool.call(tool.draw.random() < 0.9)
            looked = count - tool.baseline.seq
            alarm = any(looked % step == 0 for _, step in RUNNING) and (
                change_in_rate(tool.record, tool.baseline, tool.kept, rate=tool.rate, life=1000) is not None
            )
            if count in (1, 30) or alarm:
                tool.summarized(changed=alarm)
                summaries += 1
        written.append(summaries)
    assert max(written) <= 3


def test_a_tool_that_gets_better_is_noticed_as_well():
    assert known(1, 200, 0.4).calls(100, 1.0) is not None


def test_a_drop_is_found_by_a_single_look_long_after_the_calls_came():
    tool = known(0, 200, 0.9)
    for _ in range(45):
        tool.call(False)
    found = change_in_rate(tool.record, tool.baseline, tool.kept, rate=0.05, life=1000)
    assert found is not None
    assert str(found).startswith("failed: ")
    assert (found.k, found.n) == (28, 28)


def test_after_an_alarm_the_tool_is_compared_with_what_it_does_since():
    tool = known(3, 200, 0.95)
    assert tool.calls(100, 0.4) is not None
    tool.summarized(changed=True)
    assert (tool.baseline.successes, tool.baseline.failures) == (0, 0)
    assert tool.calls(150, 0.4) is None
    assert tool.calls(150, 0.95) is not None


def test_a_summary_without_a_change_adds_the_calls_so_far_to_what_is_known():
    tool = known(4, 50, 0.9)
    assert tool.calls(30, 0.9) is None
    tool.summarized()
    assert tool.baseline.successes + tool.baseline.failures == 80


@pytest.mark.parametrize("kept", [0, 1, 5, 27])
def test_few_kept_calls_never_raise(kept: int):
    tool = known(5, 60, 0.9)
    for _ in range(60):
        tool.call(False)
    figures = tool.kept[len(tool.kept) - kept :]
    change_in_rate(tool.record, tool.baseline, figures, rate=0.05, life=1000)


def test_counters_that_were_set_back_are_no_change():
    tool = known(6, 100, 0.9)
    back = record(140, 10, 0)
    figures = [
        CallFigures.model_construct(seq=seq, success=False, execution_failed=None, score=0.0) for seq in range(101, 141)
    ]
    assert change_in_rate(back, tool.baseline, figures, rate=0.05, life=1000) is None


def call(seq: int, *, error: str = "", **given: object) -> ToolCallResult:
    return ToolCallResult(
        tool_name="t",
        input=dict(given),
        success=not error,
        score=0.0 if error else 1.0,
        error_class=error,
        create_time=NOW,
        seq=seq,
        evaluation_status="ok",
    )


def traits_change(before: Callable[[int], ToolCallResult], after: Callable[[int], ToolCallResult], number: int):
    earlier = [before(seq) for seq in range(1, 101)]
    baseline = baseline_of(record(100, 0, 0), earlier, None, changed=False)
    now = [after(seq) for seq in range(101, 101 + number)]
    return change_in_traits(baseline, [*earlier, *now][-KEEP:], last_seq=100 + number, rate=0.05, life=1000)


def test_a_call_is_counted_under_its_error_class_and_its_parameters():
    assert traits_of(call(1, error="timeout", query="x")) == {"error timeout", "parameter query"}


def test_another_class_of_errors_at_the_same_rate_is_a_change():
    found = traits_change(
        lambda seq: call(seq, error="timeout" if seq % 2 else "", query="x"),
        lambda seq: call(seq, error="not_found" if seq % 2 else "", query="x"),
        32,
    )
    assert found is not None
    assert found.what in {"error not_found", "error timeout"}


def test_a_parameter_that_is_given_from_now_on_is_a_change():
    found = traits_change(lambda seq: call(seq, query="x"), lambda seq: call(seq, query="x", region="eu"), 16)
    assert found is not None
    assert (found.what, found.k, found.before_k) == ("parameter region", 16, 0)


def test_traits_that_stay_as_they_are_are_no_change():
    def usual(seq: int) -> ToolCallResult:
        return call(seq, error="timeout" if seq % 7 == 0 else "", query="x", **({"limit": 1} if seq % 3 else {}))

    assert traits_change(usual, usual, 64) is None
