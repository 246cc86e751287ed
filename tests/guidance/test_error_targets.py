from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from toolmem.guidance.analysis import analyze
from toolmem.guidance.data_driven import DataDrivenWriter
from toolmem.guidance.error_targets import Target, targets
from toolmem.schema import ToolCallResult

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def call(i: int, given: dict[str, Any], output: str = "", error_class: str = "invalid_value") -> ToolCallResult:
    return ToolCallResult(
        tool_name="t",
        id=f"c{i}",
        input=given,
        output=output or '{"ok": true}',
        success=not output,
        create_time=BEGIN + timedelta(seconds=i),
        error_class=error_class if output else "",
        metadata={"conversation_id": f"k{i}"},
    )


def found(*calls: ToolCallResult) -> list[Target]:
    analysis = analyze("t", calls)
    (group,) = analysis.errors
    return list(targets(analysis, group))


@pytest.mark.parametrize(
    ("given", "message", "path", "how"),
    [
        ({"flights": [1], "cabin": "x"}, "Error: flight HAT1 not available", "flights", "named"),
        ({"new_item_ids": ["1"], "item_ids": ["2"], "order": 3}, "Error: no such item_ids: 2", "item_ids", "named"),
        ({"payment_id": "gift_card_12", "seat": "a"}, "Error: gift card balance is not enough", "payment_id", "named"),
        ({"sourceFormat": "csv", "data": "x y"}, "Error: unknown source format", "sourceFormat", "named"),
        ({"city": "Oslo", "units": "kelvin"}, "Error: 'kelvin' is no unit", "units", "named"),
        ({"email": "a@b.c"}, "Error: user not found", "email", "only"),
    ],
)
def test_an_error_points_at_the_parameter_that_it_is_about(
    given: dict[str, Any], message: str, path: str, how: str
) -> None:
    assert Target(path, how, (0,)) in found(call(0, given, message))


def test_a_parameter_that_is_asked_for_and_known_from_other_calls_is_wanted() -> None:
    made = found(call(0, {"city": "Oslo"}, "Error: units is required"), call(1, {"city": "Oslo", "units": "metric"}))
    assert made == [Target("units", "wanted", (0,))]


def test_an_error_without_a_word_of_any_parameter_points_nowhere() -> None:
    assert found(call(0, {"a_thing": 1, "b_thing": 2}, "Error: something is wrong")) == []


def test_a_service_that_is_down_points_nowhere() -> None:
    assert found(call(0, {"service": 1}, "Error: service unavailable", "server_error")) == []


def test_it_is_said_with_its_failures_as_evidence_and_only_where_no_repair_says_it() -> None:
    calls = [call(i, {"flights": [i], "cabin": "x"}, "Error: flight is not available") for i in range(3)]
    calls.append(call(3, {"flights": [9], "cabin": "x"}))
    (claim,) = (one for one in DataDrivenWriter().compose("t", calls).claims if one.kind == "target")
    assert claim.text == "After “flight is not available”: check `flights`, which it is about (3 of 3 failures)."
    assert (claim.k, claim.n, claim.call_ids) == (3, 3, ("c0", "c1", "c2"))
    repaired = [one.model_copy(update={"metadata": {"conversation_id": "one"}}) for one in calls]
    made = DataDrivenWriter().compose("t", repaired)
    assert "change `flights`" in made.text
    assert not [one for one in made.claims if one.kind == "target"]


def test_it_is_said_in_chinese_as_well() -> None:
    text = DataDrivenWriter("zh").compose("t", [call(0, {"email": "a@b.c"}, "Error: user not found")]).text
    assert "修改 `email`，没有给出其他参数（1 次失败中 1 次）" in text
