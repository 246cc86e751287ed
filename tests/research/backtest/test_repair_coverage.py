from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.guidance.counted.repairs import Repair
from toolmem.models import Claim, Guidance, Subject, ToolCallResult
from toolmem.research.backtest.baselines import counting_only, counting_pairs
from toolmem.research.backtest.coverage import ceiling, coverage, pooled, replayed_coverage
from toolmem.research.backtest.opportunities import opportunities
from toolmem.research.backtest.replay import kept_up

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
REFUSED = "Error: units must be metric"


def call(
    i: int, given_: dict[str, Any], success: bool | None, output: str = "", conversation: str = "a", tool: str = "t"
):
    return ToolCallResult(
        tool_name=tool,
        id=f"c{i}",
        input=given_,
        output=output or ("sunny" if success else REFUSED),
        success=success,
        create_time=BEGIN + timedelta(seconds=i),
        error_class="" if success else "invalid_value",
        metadata={"conversation_id": conversation, "task_id": conversation},
    )


def episodes(n: int, start: int = 0) -> list[ToolCallResult]:
    """`n` conversations: units refused, units changed, it works."""
    calls = []
    for i in range(start, start + n):
        calls.append(call(2 * i, {"city": f"x{i}", "units": "kelvin"}, False, conversation=f"k{i}"))
        calls.append(call(2 * i + 1, {"city": f"x{i}", "units": "metric"}, True, conversation=f"k{i}"))
    return calls


def advice(error: str = "units must be metric") -> Guidance:
    """After this error: change `units`."""
    about = Subject(form="repair", error=error, repairs=(Repair("changed", "units"),))
    claim = Claim(text=f"After “{error}”: change `units`.", k=1, n=1, call_ids=(), kind="repair", subject=about)
    return Guidance(text=f"- {claim.text}", claims=[claim], author="a/b", prompt_version="1")


def test_an_opportunity_is_a_failure_with_the_repair_of_its_next_success() -> None:
    calls = [
        call(0, {"units": "kelvin"}, False),
        call(1, {"q": 1}, True, tool="other"),
        call(2, {"units": "kelvin"}, False),
        call(3, {"units": "metric"}, True),
    ]
    found = opportunities(calls)
    assert [(one.position, one.repaired_at, one.tool_name) for one in found] == [(0, 3, "t"), (2, 3, "t")]
    assert found[0].repairs == {Repair("changed", "units")}
    assert (found[0].error_class, found[0].message, found[0].conversation) == (
        "invalid_value",
        "units must be metric",
        "a",
    )


def test_a_success_in_another_conversation_or_after_three_calls_repairs_nothing() -> None:
    assert opportunities([call(0, {"u": 1}, False), call(1, {"u": 2}, True, conversation="b")]) == []
    late = [call(i, {"u": i}, False) for i in range(4)] + [call(4, {"u": 9}, True)]
    assert [one.position for one in opportunities(late)] == [1, 2, 3]


def test_unknown_outcomes_repair_nothing() -> None:
    assert opportunities([call(0, {"u": 1}, False), call(1, {"u": 2}, None, "?")]) == []


def test_coverage_counts_the_failures_whose_repair_the_guidance_names() -> None:
    made = coverage({"t": advice()}, episodes(4), 100)
    assert (made.n, made.share) == (4, 1.0)
    assert coverage({}, episodes(4), 100).share == 0.0
    assert coverage({"t": advice("no such city")}, episodes(4), 100).share == 0.0
    assert coverage({"t": advice()}, [], 100).share is None
    assert made.hits == (True,) * 4
    assert made.asked[0].repairs == {Repair("changed", "units")}


def test_in_a_replay_only_the_guidance_that_was_there_counts() -> None:
    calls = episodes(3)
    text = advice()
    in_force = [None, None, None, None, text, text]  # written after the second conversation
    made = replayed_coverage(in_force, calls, 100)
    assert made.hits == (False, False, True)
    with pytest.raises(ValueError, match="6 calls, but guidance for 1"):
        replayed_coverage([text], calls, 100)


def test_parts_are_pooled_at_one_budget_only() -> None:
    parts = [coverage({}, episodes(2), 100), coverage({}, episodes(3), 100)]
    assert pooled(parts).n == 5
    with pytest.raises(ValueError, match="one budget"):
        pooled([parts[0], coverage({}, episodes(2), 200)])
    with pytest.raises(ValueError, match="none"):
        pooled([])


def test_what_was_never_seen_earlier_is_above_the_ceiling() -> None:
    later = opportunities(
        [*episodes(1, 5), call(90, {"day": 1}, False, conversation="z"), call(91, {}, True, conversation="z")]
    )
    assert ceiling(opportunities(episodes(2)), later) == [True, False]


def test_counting_only_joins_no_error_with_a_repair_and_pairs_do() -> None:
    calls = episodes(3)
    assert counting_only(calls).text.splitlines() == [
        "- After any failure: another `units` (3 of 3 recoveries).",
        "- “units must be metric”: 3 of 3 failures.",
    ]
    assert counting_pairs(calls).text == "- After “units must be metric”: another `units` (3 of 3 recoveries)."
    assert counting_only([call(0, {}, True)]).text == counting_pairs([call(0, {}, True)]).text == ""
    assert "任何失败之后" in counting_only(calls, "zh").text


def test_the_writer_names_later_what_repaired_earlier() -> None:
    for language in ("", "zh"):
        writer = DataDrivenWriter("zh" if language else "")
        assert coverage({"t": writer.compose("t", episodes(5))}, episodes(5, 10), 500).share == 1.0


def test_kept_up_guidance_knows_repairs_that_left_the_window() -> None:
    quiet = [call(1000 + i, {"city": "x", "units": "metric"}, True, conversation=f"q{i}") for i in range(60)]
    calls = [*episodes(5), *quiet]
    writer = DataDrivenWriter()
    assert coverage({"t": writer.compose("t", calls[-30:])}, episodes(3, 20), 500).share == 0.0
    kept = kept_up(writer, calls)
    assert coverage({"t": kept}, episodes(3, 20), 500).share == 1.0
    assert kept is not None
    assert '"units must be metric" (5 calls); then worked: {"units": "metric"}' in kept.text
    assert kept_up(writer, []) is None


@given(st.integers(1, 70), st.integers(1, 40), st.integers(1, 12), st.integers(0, 10**6))
def test_however_often_it_is_asked_a_repair_is_counted_once(n: int, window: int, every: int, seed: int) -> None:
    """Windows overlap or leave calls out; no count exceeds what a plain recount over all calls finds."""
    calls = [
        call(
            i,
            {"units": "kelvin" if (seed >> (i % 20)) & 1 else "metric", "n": i, "city": "Oslo"},
            not (seed >> (i % 20)) & 1,
        )
        for i in range(n)
    ]
    kept = kept_up(DataDrivenWriter(), calls, window, every)
    assert kept is not None
    assert kept.history is not None
    true = {one.repaired_at for one in opportunities(calls)}  # failures in a row before one success are one repair
    assert sum(kept.history.recovered.values()) <= len(true)
    if window >= every + 4:  # every failure stands in a window together with the calls that may repair it
        assert sum(kept.history.recovered.values()) == len(true)
    for claim in kept.claims:
        assert 0 <= claim.k <= claim.n
        assert len(set(claim.call_ids)) == len(claim.call_ids) <= claim.n
