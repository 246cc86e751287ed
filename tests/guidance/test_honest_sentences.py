"""Sentences that could say more than the calls do: lists that are cut, answers of no use, calls that "worked"."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from toolmem.guidance.counted.data_driven import DataDrivenWriter
from toolmem.models import Claim, ToolCallResult

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def call(i: int, given: dict[str, Any], **fields: Any) -> ToolCallResult:
    return ToolCallResult.model_validate(
        {
            "tool_name": "t",
            "id": f"c{i}",
            "seq": i + 1,
            "input": given,
            "output": f"{i} things",
            "success": True,
            "score": 1.0,
            "evaluation_status": "ok",
            "create_time": BEGIN + timedelta(seconds=i),
            "metadata": {"conversation_id": f"k{i}"},
            **fields,
        }
    )


def claims(calls: Sequence[ToolCallResult], kind: str) -> list[Claim]:
    return [one for one in DataDrivenWriter().compose("t", calls).claims if one.kind == kind]


@pytest.mark.parametrize(
    ("count", "end"),
    [
        (8, "`p07` (a number): given"),
        (9, "`p07` (a number) and 1 more (`p08`): given"),
        (11, "`p07` (a number) and 3 more (`p08`, `p09`, `p10`): given"),
        (40, "`p07` (a number) and 32 more: given"),
    ],
)
def test_a_long_list_of_parameters_says_what_it_leaves_out(count: int, end: str) -> None:
    calls = [call(i, {f"p{j:02}": i + j for j in range(count)}) for i in range(5)]
    (takes,) = (one for one in claims(calls, "usage") if one.text.startswith("Takes"))
    assert f"{end} in 5 of 5 calls that worked." in takes.text


def test_further_optional_parameters_are_told_too() -> None:
    calls = [call(i, {"q": i, f"p{i:02}": 1}) for i in range(10)]
    (optional,) = (one for one in claims(calls, "usage") if one.text.startswith("Optional"))
    assert "and 2 more (`p08`, `p09`); at least one" in optional.text


def test_a_call_without_a_useful_answer_is_no_example_and_no_usual_form() -> None:
    calls = [call(i, {"q": i}, score=0.0) for i in range(5)]
    text = DataDrivenWriter().compose("t", calls).text
    assert "for example" not in text
    assert "usual form" not in text
    assert "5 of 5 calls worked (100%, 95% interval 57%–100%); average" in text
    assert "5 of 5 calls that did not fail answered nothing useful" in text


def test_it_is_said_that_an_error_behind_a_flag_of_success_counts_as_a_failure() -> None:
    calls = [call(i, {"q": i}) for i in range(3)]
    assert "flag" not in claims(calls, "overall")[0].text
    calls += [call(3, {"q": 3}, output="Error: no", score=0.0, execution_failed=True, error_class="not_found")]
    (overall,) = claims(calls, "overall")
    assert overall.text.startswith("3 of 4 calls worked (75%")
    (flag,) = claims(calls, "recorded_flag")
    assert flag.text.startswith(
        "By the recorded flag 4 of 4 worked (100%): 1 of these answered with an error. Read the"
    )
