from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.guidance.counted.conditions import Condition, observe
from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.models import ToolCallResult
from toolmem.research.backtest.conditions_read import REPEATED, read_warnings
from toolmem.research.backtest.coverage import coverage
from toolmem.research.backtest.intervals import cluster_interval
from toolmem.research.backtest.paired import compare, paired
from toolmem.research.backtest.skill import forecasts, frame_of, score
from toolmem.research.backtest.warned import check_warnings

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def call(i: int, given_: dict[str, Any], success: bool, conversation: str = "") -> ToolCallResult:
    return ToolCallResult(
        tool_name="t",
        id=f"c{i}",
        input=given_,
        output="fine" if success else "Error: it broke",
        success=success,
        create_time=BEGIN + timedelta(seconds=i),
        metadata={"conversation_id": conversation or f"k{i}"},
    )


def by_mode(n: int, bad: str = "slow") -> list[ToolCallResult]:
    """Calls with mode slow fail, with mode fast work."""
    return [call(i, {"mode": ("slow", "fast")[i % 2], "n": i}, ("slow", "fast")[i % 2] != bad) for i in range(n)]


# ---------------------------------------------------------------- skill


def test_claims_that_hold_forecast_better_than_the_rate() -> None:
    each = forecasts(by_mode(40), by_mode(40))
    assert list(frame_of(each)["failed"]) == [True, False] * 20
    made = score(each)
    assert (made.n, made.told) == (40, 40)
    assert made.reference == pytest.approx(0.25)
    assert made.brier == pytest.approx((0.5 / 21) ** 2)  # (20 + 1/2) / 21 for those that fail
    assert made.score is not None
    assert made.score > 0.99
    assert made.low <= made.score <= made.high


def test_claims_that_turn_round_forecast_worse_than_the_rate() -> None:
    made = score(forecasts(by_mode(40), by_mode(40, bad="fast")))
    assert made.score is not None
    assert made.score < 0


def test_without_a_claim_the_rate_is_the_forecast_and_nothing_is_gained() -> None:
    calls = [call(i, {"n": i}, i % 3 > 0) for i in range(30)]
    made = score(forecasts(calls, calls))
    assert made.told == 0
    assert made.brier == made.reference == pytest.approx(2 / 9)


def test_nothing_to_forecast_has_no_score() -> None:
    assert score(forecasts(by_mode(10), [])).score is None
    assert score([]).n == 0


# ---------------------------------------------------------------- warnings


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("- Avoid `mode`='slow'.", Condition("value", "mode", "'slow'")),
        ('- Do not use mode "slow".', Condition("value", "mode", "'slow'")),
        ("- `n` above 10 fails.", Condition("above", "n", "number", 10.0)),
        ("- Never use `n` >= 10.", Condition("at_least", "n", "number", 10.0)),
        ("- `n` > 10: 0 of 4 worked; other numbers 6 of 7.", Condition("above", "n", "number", 10.0)),
        ("- Leave out `mode` (with it 0 of 5 worked).", Condition("present", "mode")),
        ("- Always give `mode` (without it 0 of 5 worked).", Condition("absent", "mode")),
        ("- `mode` as several words: 0 of 5 worked; others 9 of 9.", Condition("shape", "mode", "words")),
        ("- 避免`mode`='slow'（5 次中 0 次成功）。", Condition("value", "mode", "'slow'")),
        ("- Do not send a failed call again unchanged: 3 of 3 repeats failed again.", REPEATED),
        ("- 不要原样重发失败的调用：3 次重发中 3 次再次失败。", REPEATED),
    ],
)
def test_a_warning_is_read_as_a_condition(text: str, condition: Condition) -> None:
    seen = [observe(one, {}) for one in by_mode(4)]
    (warned,) = read_warnings(text, seen)
    assert warned.conditions == (condition,)


@pytest.mark.parametrize(
    "text",
    [
        "- `mode`='fast': 20 of 20 worked; others 0 of 20.",
        "- After “it failed”: leave out `mode` (3 of 3 recoveries).",
        "- “it must not fail”: 3 of 5 failures; 2 recovered within 3 calls.",
        "- Takes `mode`: given in 20 of 20 calls that worked.",
    ],
)
def test_good_news_repairs_and_reports_are_no_warnings(text: str) -> None:
    assert read_warnings(text, [observe(one, {}) for one in by_mode(4)]) == []


def test_a_warning_that_cannot_be_read_is_counted_apart() -> None:
    made = check_warnings({"t": "- Never book a flight in the past."}, {"t": by_mode(8)}, 100)
    assert (made.told, made.read, made.checked, made.share) == (1, 0, 0, None)


def test_a_warning_is_wrong_where_later_calls_that_it_is_about_did_no_worse() -> None:
    text = {"t": "- Avoid `mode`='slow'.\n- Avoid `mode`='cheap'."}
    right = check_warnings(text, {"t": by_mode(8)}, 100)
    assert (right.told, right.checked, right.wrong) == (2, 1, 0)  # nobody used 'cheap'
    wrong = check_warnings(text, {"t": by_mode(8, bad="fast")}, 100)
    assert (wrong.checked, wrong.wrong, wrong.share) == (1, 1, 1.0)
    assert list(wrong.frame()["n"]) == [4, 0]


def test_where_nothing_worked_no_warning_was_wrong() -> None:
    calls = [call(i, {"mode": "slow" if i % 2 else "fast"}, False) for i in range(6)]
    assert check_warnings({"t": "- Avoid `mode`='slow'."}, {"t": calls}, 100).wrong == 0


def test_the_writers_own_warnings_are_read_in_both_languages() -> None:
    for language in ("", "zh"):
        guidance = DataDrivenWriter("zh" if language else "").compose("t", by_mode(40))
        made = check_warnings({"t": guidance}, {"t": by_mode(20)}, 1000)
        assert made.told == made.read == made.checked > 0
        assert made.wrong == 0


# ---------------------------------------------------------------- intervals and pairs


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=40))
def test_an_interval_holds_the_mean_and_stays_within_the_bounds(drawn: list[tuple[bool, int]]) -> None:
    values, clusters = [float(hit) for hit, _ in drawn], [cluster for _, cluster in drawn]
    low, high = cluster_interval(values, clusters)
    mean = sum(values) / len(values)
    assert 0 <= low <= high <= 1
    assert cluster_interval(values, clusters) == (low, high)
    assert len(set(clusters)) > 1 or (low, high) == (0, 1)
    assert low - 0.35 <= mean <= high + 0.35  # a percentile interval of few clusters may miss the mean a little


def test_the_interval_of_what_never_happened_is_exact() -> None:
    low, high = cluster_interval([0.0] * 30, range(30))
    assert low == 0.0
    assert high == pytest.approx(1 - 0.025 ** (1 / 30))  # Clopper-Pearson for 0 of 30


def test_calls_of_one_conversation_widen_the_interval() -> None:
    values = [float(i % 2) for i in range(10) for _ in range(10)]
    alone = cluster_interval(values, range(100))
    together = cluster_interval(values, [i // 10 for i in range(100)])
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_a_small_loss_is_not_inferior_and_a_large_one_is() -> None:
    clusters = range(400)
    kept = [1.0] * 200 + [0.0] * 200
    small = paired(kept, [*kept[:199], 0.0, *kept[200:]], clusters, 0.02)
    assert (small.only_first, small.only_second, small.verdict) == (1, 0, "not inferior")
    assert small.difference == pytest.approx(-1 / 400)
    large = paired(kept, [0.0] * 400, clusters, 0.02)
    assert large.verdict == "inferior"
    assert paired(kept[:40], kept[:40], range(40), 0.02).verdict == "undecided"  # too few to exclude a loss of 0.02
    assert paired(kept, kept, [i % 4 for i in clusters], 0.5).verdict == "undecided"  # four clusters


def test_pairs_of_different_cases_are_refused() -> None:
    with pytest.raises(ValueError, match="same cases"):
        paired([1.0], [1.0, 0.0], [1], 0.02)
    with pytest.raises(ValueError, match="margin"):
        paired([1.0], [1.0], [1], -0.1)
    calls = [call(0, {"m": 1}, False, "a"), call(1, {"m": 2}, True, "a")]
    with pytest.raises(ValueError, match="different ones"):
        compare(coverage({}, calls, 100), coverage({}, [], 100))
