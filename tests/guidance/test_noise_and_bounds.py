from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from toolmem.guidance.counted.analysis import analyze
from toolmem.guidance.counted.conditions import Condition, holds
from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.models import ToolCallResult

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def call(
    i: int, given: dict[str, Any], success: bool, conversation: str = "", error: str = "it broke"
) -> ToolCallResult:
    return ToolCallResult(
        tool_name="t",
        id=f"c{i}",
        seq=i + 1,
        input=given,
        output="fine" if success else f"Error: {error}",
        success=success,
        create_time=BEGIN + timedelta(seconds=i),
        metadata={"conversation_id": conversation or f"k{i}"},
    )


def text_of(calls: list[ToolCallResult]) -> str:
    return DataDrivenWriter().compose("t", calls).text


def test_a_parameter_that_changes_at_every_call_is_no_repair() -> None:
    """`token` is new in every call; what repairs is `units`."""
    units = ["metric", "kelvin", "metric"] * 12
    calls = [call(i, {"city": "Oslo", "token": f"x{i}", "units": u}, u == "metric", "one") for i, u in enumerate(units)]
    text = text_of(calls)
    assert "change `units`" in text
    assert "change `token`" not in text
    history = DataDrivenWriter().compose("t", calls).history
    assert history is not None
    assert {one.path for one in history.repairs} == {"units"}


def test_such_a_parameter_is_told_where_the_error_is_about_it_or_its_form_changes() -> None:
    about = [call(i, {"token": f"x{i}", "n": 1}, i % 3 != 1, "one", f"token x{i} is used up") for i in range(36)]
    assert "change `token`" in text_of(about)
    form = [
        call(i, {"day": f"0{i % 9}/03/2026" if i % 3 == 1 else f"2026-03-{10 + i % 9}", "n": 1}, i % 3 != 1, "one")
        for i in range(36)
    ]
    assert "change `day` from a date written with slashes or dots to a date like 2024-01-31" in text_of(form)


def test_the_only_parameter_always_is_what_changes() -> None:
    calls = [call(i, {"q": f"w{i}"}, i % 3 != 1, "one", "no route") for i in range(36)]
    assert analyze("t", calls).restless == frozenset()


@pytest.mark.parametrize("limit", [3, 10, 17, 26])
def test_a_bound_stands_where_the_calls_are_separated(limit: int) -> None:
    calls = [call(i, {"n": i % 30}, i % 30 <= limit) for i in range(120)]
    (pattern,) = (p for p in analyze("t", calls).failures.patterns if p.condition.path == "n")
    assert pattern.condition == Condition("at_least", "n", "number", limit + 1.0)
    assert (pattern.k, pattern.n, pattern.other_k, pattern.other_n) == (
        0,
        4 * (29 - limit),
        4 * (limit + 1),
        4 * (limit + 1),
    )
    assert f"`n` ≥ {limit + 1}: 0 of" in text_of(calls)


def test_the_counts_at_a_moved_bound_are_those_of_its_calls() -> None:
    calls = [call(i, {"n": i % 23}, (i % 23 <= 13) ^ (i % 17 == 0)) for i in range(140)]
    found = analyze("t", calls)
    for pattern in found.failures.patterns:
        held = [i for i, one in enumerate(found.seen) if holds(one, pattern.condition)]
        assert (pattern.k, pattern.n) == (sum(bool(found.outcomes[i]) for i in held), len(held))


def repeated(slow: int, fast: int) -> list[ToolCallResult]:
    """One conversation, two inputs, again and again."""
    modes = ["slow"] * slow + ["fast"] * fast
    return [call(i, {"mode": mode, "q": "x"}, mode == "fast", "one") for i, mode in enumerate(modes)]


def test_a_clean_separation_is_told_where_repeats_leave_too_little_to_test() -> None:
    text = text_of(repeated(8, 12))
    assert "`mode`='slow': none of these 8 calls worked, all 12 others did; too few differ to rule out chance." in text
    assert "Too few calls" not in text


def test_a_separation_of_few_calls_or_one_that_is_not_clean_is_too_little_data() -> None:
    assert "Too few calls" in text_of(repeated(3, 12))
    mixed = [*repeated(8, 12), call(90, {"mode": "slow", "q": "x"}, True, "one")]
    assert "none of these" not in text_of(mixed)


def test_a_separation_is_told_in_chinese_as_well() -> None:
    text = DataDrivenWriter("zh").compose("t", repeated(8, 12)).text
    assert "`mode`='slow'：这 8 次调用无一成功，其余 12 次全部成功" in text
