from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.guidance.statistics import lifetime_statistics, statistics_of
from toolmem.models import CallFigures, JudgeIdentity, LifetimeCounters, ToolCallResult
from toolmem.readers.proportions import wilson_interval

RULES = JudgeIdentity(backend="offline", model="rule_based_check", prompt_version="a")
QWEN = JudgeIdentity(backend="dashscope", model="qwen-plus", prompt_version="b")


def call(**fields: object) -> ToolCallResult:
    return ToolCallResult.model_validate({"tool_name": "t", "create_time": datetime(2026, 1, 1, tzinfo=UTC), **fields})


def test_unknown_values_are_left_out_of_every_average() -> None:
    figures = statistics_of(
        [
            call(success=True, score=1.0, time_cost=2.0, token_cost=10, judge=RULES),
            call(success=False, score=0.0, time_cost=None, token_cost=None, judge=RULES),
            call(success=None, score=None),
        ]
    )
    assert figures.calls == 3
    assert figures.unknown == 1
    assert figures.unscored == 1
    assert figures.success_rate == 0.5
    assert figures.avg_score == 0.5
    assert figures.avg_time_cost == 2.0
    assert figures.avg_token_cost == 10.0


def test_the_recorded_flag_wins_over_what_the_judge_saw() -> None:
    figures = statistics_of([call(success=True, execution_failed=True), call(success=None, execution_failed=True)])
    assert (figures.failures, figures.success_rate) == (1, 0.5)


def test_no_calls_say_nothing() -> None:
    figures = statistics_of([])
    assert (figures.calls, figures.success_rate, figures.avg_score, figures.avg_time_cost) == (0, None, None, None)


def test_two_judges_are_both_named_and_a_judge_without_a_score_is_not() -> None:
    figures = statistics_of(
        [call(score=1.0, judge=QWEN), call(score=0.0, judge=RULES), call(score=1.0, judge=QWEN), call(judge=None)]
    )
    assert figures.judges == [str(QWEN), str(RULES)]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([True, False, None]),
            st.sampled_from([True, False, None]),
            st.sampled_from([0.0, 1.0, None]),
            st.one_of(st.none(), st.floats(0, 1e6)),
            st.one_of(st.none(), st.integers(0, 10**9)),
        ),
        max_size=20,
    )
)
def test_figures_and_calls_of_the_same_window_give_the_same_statistics(
    rows: list[tuple[bool | None, bool | None, float | None, float | None, int | None]],
) -> None:
    names = ("success", "execution_failed", "score", "time_cost", "token_cost")
    calls = [call(**dict(zip(names, row, strict=True)), judge=RULES) for row in rows]
    figures = [
        CallFigures(seq=i, judge=str(RULES), **dict(zip(names, row, strict=True))) for i, row in enumerate(rows, 1)
    ]
    assert statistics_of(calls) == statistics_of(figures)


def test_lifetime_rates_follow_from_the_counters() -> None:
    figures = lifetime_statistics(
        LifetimeCounters(
            calls=10, successes=6, failures=3, judged=8, score_sum=6.0, time_calls=2, time_sum=3.0, token_calls=0
        )
    )
    assert figures.unknown == 1
    assert figures.success_rate == pytest.approx(6 / 9)
    assert figures.avg_score == 0.75
    assert figures.avg_time_cost == 1.5
    assert figures.avg_token_cost is None
    assert figures.unscored == 2


def test_empty_counters_say_nothing() -> None:
    assert lifetime_statistics(LifetimeCounters()) == statistics_of([])


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        # R. G. Newcombe, Statistics in Medicine 17 (1998) 857-872, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_interval_agrees_with_published_figures(k: int, n: int, low: float, high: float) -> None:
    assert wilson_interval(k, n) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.floats(0.5, 0.999))
def test_wilson_interval_holds_the_proportion_and_stays_in_range(a: int, b: int, confidence: float) -> None:
    k, n = min(a, b), max(a, b, 1)
    low, high = wilson_interval(k, n, confidence)
    assert 0.0 <= low <= k / n <= high <= 1.0


def test_wilson_interval_without_calls_is_everything() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("k", "n", "confidence"), [(2, 1, 0.95), (-1, 1, 0.95), (0, 1, 1.0)])
def test_wilson_interval_refuses_what_is_no_proportion(k: int, n: int, confidence: float) -> None:
    with pytest.raises(ValueError):
        wilson_interval(k, n, confidence)
