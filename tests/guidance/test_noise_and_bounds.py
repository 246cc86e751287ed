from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from toolmem.guidance.counted.analysis import analyze
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
    assert '{"units": "kelvin"}: "it broke"' in text
    assert "another `units`" in text
    assert "another `token`" not in text
    history = DataDrivenWriter().compose("t", calls).history
    assert history is not None
    assert {one.path for one in history.repairs} == {"units"}


def test_such_a_parameter_is_told_where_the_error_is_about_it_or_its_form_changes() -> None:
    about = [call(i, {"token": f"x{i}", "n": 1}, i % 3 != 1, "one", f"token x{i} is used up") for i in range(36)]
    assert "another `token`" in text_of(about)
    form = [
        call(i, {"day": f"0{i % 9}/03/2026" if i % 3 == 1 else f"2026-03-{10 + i % 9}", "n": 1}, i % 3 != 1, "one")
        for i in range(36)
    ]
    assert 'then worked: {"day": "2026-03-1' in text_of(form)


def test_the_only_parameter_always_is_what_changes() -> None:
    calls = [call(i, {"q": f"w{i}"}, i % 3 != 1, "one", "no route") for i in range(36)]
    assert analyze("t", calls).restless == frozenset()
