"""Calls that a tool reports as a success although it answered with an error."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from toolmem.guidance.counted.data_driven import DataDrivenWriter
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


def test_statistics_say_what_worked_and_what_the_flag_says() -> None:
    calls = flagged()
    guidance = DataDrivenWriter().compose("translate", calls)
    statistics = guidance.text.split("## Statistics\n")[1].splitlines()
    assert statistics[0].startswith("- 21 of 30 calls worked (70%, 95% interval 52%–83%)")
    said = "7 of these answered with an error. Read the output, not only the flag."
    assert statistics[1] == f"- By the recorded flag 28 of 30 worked (93%): {said}"
    assert guidance.statistics.success_rate == 28 / 30
    (worked,) = of_kind(guidance, "overall")
    assert (worked.k, worked.n, len(worked.call_ids)) == (21, 30, 30)
    (flag,) = of_kind(guidance, "recorded_flag")
    assert (flag.k, flag.n, len(flag.call_ids)) == (28, 30, 30)


def test_nothing_is_said_of_the_flag_where_it_is_right() -> None:
    right = [one for one in flagged() if not flag_is_wrong(one)]
    guidance = DataDrivenWriter().compose("translate", right)
    assert not of_kind(guidance, "recorded_flag")


def test_a_flag_that_is_partly_unknown_is_not_taken_for_one() -> None:
    calls = [one.model_copy(update={"success": None}) if i > 26 else one for i, one in enumerate(flagged())]
    guidance = DataDrivenWriter().compose("translate", calls)
    (flag,) = of_kind(guidance, "recorded_flag")
    assert flag.text.startswith("By the recorded flag, or the judge where there is none, 28 of 30 worked (93%): 7 of")
    assert flag.k / flag.n == guidance.statistics.success_rate


def test_errors_repairs_and_answers_are_those_of_calls_that_went_wrong_or_worked() -> None:
    guidance = DataDrivenWriter().compose("translate", flagged())
    errors = of_kind(guidance, "error_class")
    assert [(claim.k, claim.n) for claim in errors] == [(2, 9)]  # the other one is told with what repaired it
    assert "After “source '…' is not one of de, en”: change `source`" in guidance.text
    assert "change `source`, e.g. 'auto' → 'de' (7 of 7 recoveries)." in guidance.text
    assert "answered nothing useful" not in guidance.text


def test_refused_values_lead_the_success_patterns() -> None:
    guidance = DataDrivenWriter().compose("translate", flagged())
    success = guidance.text.split("## Success patterns\n")[1].splitlines()
    said = "`source` worked with 'en' or 'de' (21 of 23), never with 'auto' or 'unknown' (0 of 7; 7 errors name it)."
    assert success[0] == f"- {said}"
    (claim,) = of_kind(guidance, "refused")
    assert (claim.k, claim.n) == (7, 7)
    assert claim.call_ids == tuple(f"c{i}" for i in range(0, 14, 2))


def test_failures_that_repeat_behind_the_flag_are_counted_as_repeats() -> None:
    busy = [call(i, {"text": "same"}, '{"error": "text is not supported"}', conversation="one") for i in range(6)]
    (repeat,) = of_kind(DataDrivenWriter().compose("translate", busy), "repeat")
    assert (repeat.k, repeat.n) == (5, 5)


def test_chinese_says_both_as_well() -> None:
    chinese = DataDrivenWriter("zh").compose("translate", flagged())
    assert "- 按记录的标志，30 次调用中 28 次成功（93%）：其中 7 次返回的是错误。" in chinese.text
    assert not re.search(r"\b(worked|calls|never|errors)\b", chinese.text)
    english = DataDrivenWriter().compose("translate", flagged())
    counts = [sorted((c.kind, c.k, c.n, c.call_ids) for c in g.claims) for g in (english, chinese)]
    assert counts[0] == counts[1]
