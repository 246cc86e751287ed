"""The frames count what they say they count."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.models import ToolCallResult
from toolmem.research.report import (
    calls_frame,
    claims_frame,
    errors_frame,
    flag_and_judge_frame,
    resummarized,
    runs_frame,
    skips_frame,
    tools_frame,
    totals,
    wilson_interval,
)

COUNTS = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS)
def test_wilson_interval_lies_around_the_share_within_0_and_1(counts):
    k, n = counts
    low, high = wilson_interval(k, n)
    assert 0 <= low <= k / n <= high <= 1
    assert low < high


@given(COUNTS)
def test_wilson_interval_of_failures_mirrors_that_of_successes(counts):
    k, n = counts
    low, high = wilson_interval(k, n)
    mirrored = wilson_interval(n - k, n)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-12)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_interval_agrees_with_published_values(k, n, low, high):
    assert wilson_interval(k, n) == pytest.approx((low, high), abs=5e-5)


def test_every_recorded_call_is_counted_once_per_tool(build):
    evaluation = build(per_tool=150)
    tools = tools_frame(evaluation)
    assert tools["calls"].sum() == len(evaluation.calls) == 450
    assert list(tools["window_calls"]) == [100, 100, 100]
    assert list(tools["analyzed_calls"]) == [30, 30, 30]
    for tool in tools.itertuples():
        group = [call for call in evaluation.calls if call.tool_name == tool.tool_name]
        known = [call.failed for call in group if call.failed is not None]
        assert (tool.failures, tool.unknown) == (sum(known), len(group) - len(known))
        assert tool.success_rate == pytest.approx(1 - sum(known) / len(known))
        assert tool.avg_score == pytest.approx(
            sum(call.score for call in group if call.score is not None) / tool.scored
        )


def test_the_recorded_flag_goes_before_the_judge_and_unknown_calls_are_left_out(build):
    def call(success, execution_failed):
        return ToolCallResult(
            tool_name="t",
            create_time=datetime(2026, 1, 1, tzinfo=UTC),
            success=success,
            execution_failed=execution_failed,
        )

    calls = [call(True, True), call(False, False), call(None, True), call(None, False), call(None, None)]
    tool = tools_frame(build(calls=calls, memories=[])).iloc[0]
    assert (tool["calls"], tool["failures"], tool["unknown"], tool["success_rate"]) == (5, 2, 1, 0.5)
    assert list(calls_frame(build(calls=calls))["failed"].astype(object).where(lambda s: s.notna(), None)) == [
        False,
        True,
        True,
        False,
        None,
    ]
    assert totals(build(calls=calls))["success_rate"] == 0.5


def test_a_tool_without_known_outcome_has_no_rate_and_no_interval(build):
    calls = [ToolCallResult(tool_name="t", create_time=datetime(2026, 1, 1, tzinfo=UTC))]
    tool = tools_frame(build(calls=calls, memories=[])).iloc[0]
    assert tool[["success_rate", "low", "high", "avg_score", "avg_time_cost", "avg_token_cost"]].isna().all()


def test_flag_and_judge_count_every_call_once(build):
    evaluation = build(per_tool=60)
    table = flag_and_judge_frame(evaluation)
    assert table.to_numpy().sum() == len(evaluation.calls)
    assert table.loc["no flag"].sum() == sum(call.success is None for call in evaluation.calls)
    assert table["no verdict"].sum() == sum(call.score is None for call in evaluation.calls)


def test_errors_are_ordered_by_class_size_and_hold_the_first_example(build):
    evaluation = build(per_tool=60)
    errors = errors_frame(evaluation)
    failed = [call for call in evaluation.calls if call.failed or call.error_class]
    assert errors["calls"].sum() == len(failed)
    assert errors["class_calls"].is_monotonic_decreasing
    for row in errors.itertuples():
        example = evaluation.calls[row.row]
        assert (example.tool_name, example.output) == (row.tool_name, row.output)


def test_rows_of_the_input_are_kept_where_records_are_missing(build):
    evaluation = build(tools=["a"], per_tool=3, rows=[0, 5, 9])
    assert list(calls_frame(evaluation)["row"]) == [0, 5, 9]
    assert set(errors_frame(evaluation)["row"]) <= {0, 5, 9}


def test_claims_cite_calls_by_their_row(build):
    evaluation = build(tools=["a"], per_tool=40)
    claim = claims_frame(evaluation).iloc[0]
    cited = [int(row) for row in claim["rows"].split()]
    assert claim["k"] == claim["calls"] == claim["found"] == len(cited) > 0
    assert all(evaluation.calls[row].failed for row in cited)


def test_runs_add_up_what_was_spent_and_avoided(build):
    evaluation = build(tools=["a", "b"])
    skips, runs = skips_frame(evaluation), runs_frame(evaluation)
    assert len(skips) == 6
    assert list(runs["run"]) == ["all new", "nothing new", "newest 5 %"]
    assert list(runs["saved_prompt_tokens"]) == [0, 1310, 0]
    assert runs["saved_requests"].sum() == skips["saved_requests"].sum() == 2
    assert resummarized(evaluation) == []


def test_a_tool_summarized_again_with_nothing_new_is_named(build):
    evaluation = build(tools=["a", "b"])
    evaluation.summaries[1] = evaluation.summaries[0]
    assert resummarized(evaluation) == ["a", "b"]
