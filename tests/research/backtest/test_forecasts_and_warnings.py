from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.guidance.counted.conditions import Condition
from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.models import Claim, Guidance, Subject, ToolCallResult
from toolmem.research.backtest.coverage import coverage
from toolmem.research.backtest.naming import warnings_of
from toolmem.research.backtest.paired import cluster_interval, compare, paired
from toolmem.research.backtest.skill import forecasts, score
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
    assert [one.failed for one in each] == [True, False] * 20
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


def warned(*values: str, kind: str = "refused", form: str = "refused_value", k: int = 0, **counts: int) -> Guidance:
    """Guidance with a claim about each value of `mode`."""
    claims = [
        Claim(
            text=f"{form} {value}",
            k=k,
            n=5,
            call_ids=(),
            kind=kind,
            subject=Subject(form=form, path="mode", conditions=(Condition("value", "mode", value),)),
            counts=counts,
        )
        for value in values
    ]
    text = "\n".join(f"- {one.text}" for one in claims)
    return Guidance(text=text, claims=claims, author="a/b", prompt_version="1")


@pytest.mark.parametrize(
    ("claims", "warns"),
    [
        (warned("'slow'"), True),
        (warned("'slow'", kind="parameter", form="pattern", ok=9, on=9), True),
        (warned("'slow'", kind="parameter", form="pattern", k=5, ok=0, on=20), False),  # good news
        (warned("'slow'", kind="repeat", form="repeat", k=5), True),
        (warned("'slow'", kind="repeat", form="retry", k=5), False),
        (warned("'slow'", kind="repair", form="repair", k=3), False),
        (warned("'slow'", kind="error_class", form="error", k=3), False),
    ],
)
def test_a_claim_that_calls_something_bad_is_a_warning(claims: Guidance, warns: bool) -> None:
    assert bool([*warnings_of(claims, 100)]) is warns
    assert [*warnings_of(claims, 0)] == [*warnings_of(None, 100)] == []


def test_a_warning_is_wrong_where_later_calls_that_it_is_about_did_no_worse() -> None:
    text = {"t": warned("'slow'", "'cheap'")}
    right = check_warnings(text, {"t": by_mode(8)}, 100)
    assert (right.told, right.checked, right.wrong) == (2, 1, 0)  # nobody used 'cheap'
    wrong = check_warnings(text, {"t": by_mode(8, bad="fast")}, 100)
    assert (wrong.checked, wrong.wrong, wrong.share) == (1, 1, 1.0)
    assert [one.n for one in wrong.each] == [4, 0]


def test_where_nothing_worked_no_warning_was_wrong() -> None:
    calls = [call(i, {"mode": "slow" if i % 2 else "fast"}, False) for i in range(6)]
    assert check_warnings({"t": warned("'slow'")}, {"t": calls}, 100).wrong == 0


def test_a_warning_of_repeats_is_held_against_the_calls_that_failed_before() -> None:
    calls = [call(i, {"mode": "slow"}, i % 2 > 0, conversation=f"k{i // 2}") for i in range(8)]
    made = check_warnings({"t": warned("", kind="repeat", form="repeat", k=5)}, {"t": calls}, 100)
    assert [(one.k, one.n, one.other_k, one.other_n, one.wrong) for one in made.each] == [(4, 4, 0, 4, True)]


def test_the_writers_own_warnings_are_checked_in_both_languages() -> None:
    for language in ("", "zh"):
        guidance = DataDrivenWriter("zh" if language else "").compose("t", by_mode(40))
        made = check_warnings({"t": guidance}, {"t": by_mode(20)}, 1000)
        assert made.told == made.checked > 0
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
