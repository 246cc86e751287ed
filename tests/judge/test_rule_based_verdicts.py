"""What the rule-based check says of single calls: failed or not, score, evidence with its place."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from toolmem.judge.rule_based import RULE_BASED_JUDGE, RuleBasedCheck
from toolmem.models import ToolCallResult, ToolSchema, Verdict
from toolmem.protocols import Judge, Purpose

WHEN = datetime(2025, 3, 1, tzinfo=UTC)
GET_WEATHER = ToolSchema(
    name="get_weather",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 10}},
        "required": ["city"],
    },
)


def call(output: str, tool_name: str = "get_thing", success: bool | None = None, **more: Any) -> ToolCallResult:
    return ToolCallResult(tool_name=tool_name, output=output, success=success, create_time=WHEN, **more)


def verdict(output: str, tool_name: str = "get_thing", schema: ToolSchema | None = None, **more: Any) -> Verdict:
    return RuleBasedCheck().check(call(output, tool_name, **more), schema)


def test_it_is_a_free_judge_with_its_number_as_identity() -> None:
    check: Judge = RuleBasedCheck()
    assert check.paid is False
    assert (check.identity.backend, check.identity.model) == ("offline", "rule_based_check")
    assert check.identity.prompt_version == str(RULE_BASED_JUDGE)


async def test_the_port_gives_the_same_verdict_as_the_plain_check() -> None:
    class NoMeter:
        def book(self, entry: object) -> None:
            raise AssertionError("nothing is spent, so nothing is booked")

    purpose = Purpose("w", "f", "o", "t", NoMeter())
    one = call('{"error": "quota exceeded"}')
    assert await RuleBasedCheck().judge(one, None, purpose) == RuleBasedCheck().check(one)


def test_a_plain_answer_ran_and_answered_and_claims_no_more() -> None:
    said = verdict('{"temperature": 21, "sky": "clear"}')
    assert (said.execution_failed, said.score, said.error_class) == (False, 1.0, "")
    assert said.evaluation.startswith("Ran and answered")
    assert said.evaluation.endswith("usefulness not judged.")


def test_an_error_key_is_quoted_with_its_place() -> None:
    said = verdict('{"status": 404, "error": {"code": "NOT_FOUND", "message": "no order has the id 17"}}')
    assert (said.execution_failed, said.score, said.error_class) == (True, 0.0, "not_found")
    assert "at output key \"error.message\": 'no order has the id 17'" in said.evaluation


def test_a_text_message_is_quoted_with_its_line() -> None:
    said = verdict(
        "compiling\nTraceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'", "run_python"
    )
    assert said.execution_failed is True
    assert "at line 4: 'KeyError: 'x''" in said.evaluation


def test_a_message_in_the_first_line_is_quoted_with_its_characters() -> None:
    said = verdict("Error: user not found")
    assert "at characters 0-21: 'Error: user not found'" in said.evaluation


def test_long_evidence_is_cut() -> None:
    said = verdict("Error: " + "x" * 5_000)
    assert len(said.evaluation) < 300
    assert len(said.summary) < 300
    assert "..." in said.evaluation


def test_a_failed_flag_fails_the_call_whatever_the_output_says() -> None:
    said = verdict("all good", success=False)
    assert (said.execution_failed, said.score, said.error_class) == (True, 0.0, "error")
    assert "recorded flag" in said.evaluation
    assert "no sign of it" in said.evaluation


def test_a_success_flag_that_the_output_contradicts_is_told() -> None:
    said = verdict('{"error": "invalid token"}', success=True)
    assert (said.execution_failed, said.score) == (True, 0.0)
    assert "flag and output disagree" in said.evaluation


def test_a_success_flag_changes_nothing_where_the_output_is_fine() -> None:
    assert verdict("42", success=True) == verdict("42", success=None)


@pytest.mark.parametrize("output", ["", "  \n", "[]", "{}", "null", "No results found.", '{"results": [], "total": 0}'])
def test_an_empty_answer_to_a_question_ran_but_is_worth_nothing(output: str) -> None:
    said = verdict(output, "search_products", input={"query": "tents"})
    assert (said.execution_failed, said.score) == (False, 0.0)
    assert "the answer is empty" in said.evaluation


@pytest.mark.parametrize(
    ("tool_name", "given"),
    [
        ("write_file", {"path": "a", "content": "b"}),
        ("bash", {"command": "mkdir -p out"}),
        ("bash", {"command": "echo hi > note.txt"}),
        ("sql_execute", {"query": "INSERT INTO t VALUES (1)"}),
        ("think", {"thought": "hm"}),
    ],
)
def test_an_action_that_prints_nothing_is_fine(tool_name: str, given: dict[str, Any]) -> None:
    said = verdict("", tool_name, input=given)
    assert (said.execution_failed, said.score) == (False, 1.0)
    assert "usefulness not judged" in said.evaluation


@pytest.mark.parametrize("command", ["grep -n x a.txt", "ls missing*", "cat a | sort", "find . -name x"])
def test_a_shell_question_without_output_has_an_empty_answer(command: str) -> None:
    assert verdict("", "bash", input={"command": command}).score == 0.0


def test_an_input_that_fits_the_schema_is_told() -> None:
    assert "fits the tool's schema" in verdict("sunny", "get_weather", GET_WEATHER, input={"city": "Oslo"}).evaluation


def test_a_schema_breach_is_told_but_a_tool_that_answered_keeps_its_score() -> None:
    said = verdict("sunny", "get_weather", GET_WEATHER, input={"town": "Oslo", "city": "Oslo"})
    assert (said.execution_failed, said.score) == (False, 1.0)
    assert "parameter 'town' is not in the schema" in said.evaluation


def test_a_schema_breach_with_an_empty_output_is_worth_nothing() -> None:
    schema = ToolSchema(
        name="write_file",
        parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    )
    said = verdict("", "write_file", schema, input={})
    assert (said.execution_failed, said.score) == (False, 0.0)
    assert "nothing shows that the call was carried out" in said.evaluation


def test_a_schema_breach_names_the_class_of_a_failure_that_says_nothing() -> None:
    said = verdict("", "get_weather", GET_WEATHER, input={}, success=False)
    assert said.error_class == "missing_parameter"


def test_a_complaint_of_a_program_whose_failure_the_pipeline_hides_counts_only_where_it_stands_alone() -> None:
    given = {"command": "find a b -name x | wc -l"}
    assert verdict("3\nfind: 'b': No such file or directory\n", "bash", input=given).execution_failed is False
    assert verdict("find: 'b': No such file or directory\n", "bash", input=given).execution_failed is True


def test_the_summary_is_one_line_that_names_the_tool_the_input_and_what_came_back() -> None:
    said = verdict("line one\nline two", "read_file", input={"path": "notes.txt"})
    assert said.summary == 'read_file({"path": "notes.txt"}) returned line one line two'


def test_an_answer_that_was_cut_off_is_still_read() -> None:
    said = verdict('{"error": "rate limit exceeded", "trace": "' + "x" * 3_000)
    assert (said.execution_failed, said.error_class) == (True, "rate_limited")


def test_a_python_dict_with_an_error_is_read_like_json() -> None:
    said = verdict("{'ok': False, 'reason': 'seat taken', 'tries': None}")
    assert said.execution_failed is True
    assert 'output key "reason"' in said.evaluation


def test_halves_of_surrogate_pairs_never_reach_the_verdict() -> None:
    said = verdict('{"error": "bad name \\ud83d"}')
    said.evaluation.encode("utf-8")
    said.summary.encode("utf-8")
    assert said.execution_failed is True


@pytest.mark.parametrize(
    ("output", "fails"),
    [
        ("limit must be at most 7", True),
        ("limit不能超过7", True),
        ("limit 不得超过 7", True),
        ("limit 不可大于7", True),
        ("数量不允许超过7", True),
        ("limit 应不大于 7", True),
        ("limit 必须大于等于 3", True),
        ("limit 应小于等于 7", True),
        ("共有最多7个结果", False),
        ("本店营业超过7年", False),
    ],
)
async def test_a_bound_that_is_told_in_chinese_is_a_complaint_as_in_english(output, fails):
    from toolmem import AsyncToolMem

    async with AsyncToolMem(":memory:") as memory:
        await memory.add([{"tool_name": "t", "input": {"limit": 9}, "output": output}])
        (kept,) = await memory.calls()
    assert kept.score == (0.0 if fails else 1.0)
