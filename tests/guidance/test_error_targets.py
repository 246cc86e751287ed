from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from toolmem.guidance.counted.analysis import analyze
from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.guidance.counted.error_targets import Target, targets
from toolmem.models import ToolCallResult

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
        ({"berths": [{"ship": "OSL7"}], "berth_class": "x"}, "Error: no berth left on ship OSL7", "berths", "named"),
        ({"new_text": "a", "old_text": "b c"}, "Error: invalid `new_text`: old text b c", "new_text", "named"),
        ({"order": 3, "user_key": "mia_77"}, "Error: no order of mia_77", "user_key", "named"),
        ({"sourceFormat": "csv", "data": "x y"}, "Error: unknown source format", "sourceFormat", "named"),
        ({"city": "Oslo", "units": "kelvin"}, "Error: 'kelvin' is no unit", "units", "named"),
        ({"nickname": "ab"}, "Error: user not found", "nickname", "only"),
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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"total_crates": 2, "parts": [1]}, "Error: shares do not add up, total cost is 41, but 40 given"),
        ({"crate_id": 2, "pay_key": "card_12"}, "Error: only an open crate can be sent"),
        ({"subject": "file of March", "body": "the file"}, "Error: 'x.pdf' is no file; nothing was sent"),
        ({"sourceFormat": "json", "rows": "all"}, "Error: not JSON, all lines were read"),
    ],
)
def test_a_word_in_common_points_nowhere(given: dict[str, Any], message: str) -> None:
    """A single word of a name that has several, or of a value, says nothing of the parameter."""
    assert found(call(0, given, message)) == []


def test_an_error_that_another_parameter_repaired_is_not_said_to_be_about_this_one() -> None:
    def tried(i: int, given: dict[str, Any], output: str = "") -> ToolCallResult:
        return call(i, given, output).model_copy(update={"metadata": {"conversation_id": "one"}})

    message = "Error: berth is too small"
    calls = [tried(0, {"berth": "x", "crates": 9}, message), tried(1, {"berth": "x", "crates": 2})]
    calls += [call(2, {"berth": "y", "crates": 9}, message), call(3, {"berth": "y", "crates": 1})]
    made = DataDrivenWriter().compose("t", calls)
    assert "change `crates`" in made.text
    assert not [one for one in made.claims if one.kind == "target"]


def test_a_service_that_is_down_points_nowhere() -> None:
    assert found(call(0, {"service": 1}, "Error: service unavailable", "server_error")) == []


def test_it_is_said_with_its_failures_as_evidence_and_only_where_no_repair_says_it() -> None:
    calls = [call(i, {"flights": [i], "cabin": "x"}, "Error: flight is not available") for i in range(3)]
    calls.append(call(3, {"flights": [9], "cabin": "x"}))
    (claim,) = (one for one in DataDrivenWriter().compose("t", calls).claims if one.kind == "target")
    assert (
        claim.text
        == "After “flight is not available”: check `flights`; the error names it or its value (3 of 3 failures)."
    )
    assert (claim.k, claim.n, claim.call_ids) == (3, 3, ("c0", "c1", "c2"))
    repaired = [one.model_copy(update={"metadata": {"conversation_id": "one"}}) for one in calls]
    made = DataDrivenWriter().compose("t", repaired)
    assert "change `flights`" in made.text
    assert not [one for one in made.claims if one.kind == "target"]


def test_it_is_said_in_chinese_as_well() -> None:
    text = DataDrivenWriter("zh").compose("t", [call(0, {"nickname": "ab"}, "Error: user not found")]).text
    assert "修改 `nickname`，没有给出其他参数（1 次失败中 1 次）" in text
