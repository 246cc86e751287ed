"""Calls that a tool reports as a success although it answered with an error."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from toolmem.guidance.outcomes import flag_is_wrong, passing, went_wrong
from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import Claim, Guidance, ToolCallResult

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def call(
    number: int, given: dict[str, object], output: str, success: bool | None = True, conversation: object = None
) -> ToolCallResult:
    """A call as the rule-based check judges it."""
    made = ToolCallResult(
        tool_name="translate",
        input=given,
        output=output,
        success=success,
        id=f"c{number}",
        create_time=NOW + timedelta(seconds=number),
        metadata={} if conversation is None else {"conversation_id": conversation},
    )
    return made.judged(RuleBasedCheck().check(made))


def flagged() -> list[ToolCallResult]:
    """30 calls, 28 flagged a success: 7 of them answered with an error, and each was repaired by 'de'."""
    calls = []
    for i in range(7):
        given = {"source": ["auto", "unknown"][i % 2], "text": f"t{i}"}
        refused = f'{{"error": "source \'{given["source"]}\' is not one of de, en"}}'
        calls.append(call(2 * i, given, refused, conversation=i))
        calls.append(call(2 * i + 1, {"source": "de", "text": f"t{i}"}, '{"translation": "x"}', conversation=i))
    calls += [call(i, {"source": "en", "text": f"t{i}"}, '{"translation": "y"}', conversation=i) for i in range(14, 28)]
    calls += [call(i, {"source": "en"}, "Error: missing parameter 'text'", False, i) for i in (28, 29)]
    return calls


def of_kind(guidance: Guidance, kind: str) -> list[Claim]:
    return [claim for claim in guidance.claims if claim.kind == kind]


@pytest.mark.parametrize(
    ("success", "execution_failed", "wrong"),
    [
        (True, True, True),
        (True, False, False),
        (True, None, False),
        (False, False, True),
        (False, None, True),
        (None, True, True),
        (None, False, False),
        (None, None, None),
    ],
)
def test_a_call_went_wrong_where_its_flag_or_the_judge_says_so(
    success: bool | None, execution_failed: bool | None, wrong: bool | None
) -> None:
    one = ToolCallResult(tool_name="t", success=success, execution_failed=execution_failed, create_time=NOW)
    assert went_wrong(one) is wrong
    assert flag_is_wrong(one) is (success is True and execution_failed is True)


@pytest.mark.parametrize(
    ("error_class", "expected"), [("server_error", True), ("rate_limited", True), ("timeout", False)]
)
def test_a_broken_service_says_nothing_about_the_input(error_class: str, expected: bool) -> None:
    broken = ToolCallResult(tool_name="t", success=False, error_class=error_class, create_time=NOW)
    assert passing(broken) is expected
    assert passing(broken.model_copy(update={"success": True})) is False
