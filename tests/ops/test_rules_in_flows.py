"""Rules as parts of flows."""

from __future__ import annotations

import pytest

from toolmem.errors import RequestError
from toolmem.ops import CaptureToolRulesOp, ToolRulesPromptOp

SARAH = "never email Sarah at sarah@example.com"
TURN = {"user_message": SARAH, "tool_calls": [{"name": "send_email", "success": True}]}


async def test_a_turn_in_and_the_block_of_the_next_session_out(make_app):
    async with make_app() as app:
        captured = await app.run_flow("capture_tool_rules", workspace_id="team", **TURN)
        assert captured.success
        assert captured.answer == "Captured 1 rule (send_email)"
        (rule,) = captured.metadata["rules"]
        assert (rule["rule"], rule["priority"]) == (SARAH, "critical")
    async with make_app() as app:
        block = await app.run_flow("tool_rules_for_prompt", workspace_id="team", tools="send_email, calendar")
        assert block.answer.endswith(f"### `send_email`\n- **[critical]** {SARAH}")
        assert block.metadata["rules"] == [rule]
        assert (await app.run_flow("tool_rules_for_prompt", workspace_id="other")).answer == ""


async def test_both_ops_compose_into_one_flow(make_app):
    async with make_app() as app:
        run = await app.run_detailed(CaptureToolRulesOp() >> ToolRulesPromptOp(), workspace_id="team", **TURN)
        assert run.context.get("rules_block") == run.response.answer
        assert SARAH in run.response.answer
        assert [rule.rule for rule in run.context.get("captured_rules")] == [SARAH]


async def test_session_demands_and_deleted_rules_are_answered_apart(make_app):
    async with make_app() as app:
        said = {"user_message": "don't send it yet", "tool_calls": [{"name": "send_email"}]}
        captured = await app.run_flow("capture_tool_rules", workspace_id="team", **said)
        assert captured.metadata["rules"] == []
        assert captured.metadata["session"] == [{"tool_name": "send_email", "rule": "don't send it yet"}]
        assert "don't send it yet: kept for this session; say 'always' to keep it" in captured.answer
        assert captured.metadata["notes"] == ["don't send it yet: kept for this session; say 'always' to keep it"]


async def test_capture_switched_off_keeps_nothing(make_app):
    async with make_app("rules.capture=false") as app:
        captured = await app.run_flow("capture_tool_rules", workspace_id="team", **TURN)
        assert captured.success
        assert captured.metadata["rules"] == []
        assert captured.answer == "Capture is switched off"


async def test_the_caps_and_the_language_come_from_the_configuration(make_app):
    async with make_app("rules.max_in_prompt=1", "language=zh") as app:
        from toolmem.ops.workspace_rules import rule_store

        rules = await rule_store(app.services, ToolRulesPromptOp(), "team")
        for text in ("one", "two"):
            await rules.put_rule("t", text, priority="high")
        block = await app.run_flow("tool_rules_for_prompt", workspace_id="team")
        assert block.answer.startswith("## 工具作用域规则")
        assert len(block.metadata["rules"]) == len(block.metadata["left_out"]) == 1


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({}, "user_message"),
        ({"user_message": 3}, "user_message"),
        ({"tool_calls": [{"nme": "x"}]}, "tool_calls[0].name"),
        ({"user_mesage": "x"}, "user_mesage"),
    ],
)
async def test_a_bad_turn_is_refused_by_field(make_app, request_, field):
    async with make_app() as app:
        with pytest.raises(RequestError) as caught:
            await app.run_flow("capture_tool_rules", workspace_id="team", **request_)
        assert caught.value.field == field


# ---------------------------------------------------------------- failures that nobody declared


def failing(*outputs, name="search", key="output_summary", **more):
    return [{"name": name, key: output, **more} for output in outputs]


@pytest.mark.parametrize("key", ["output_summary", "output"])
async def test_calls_without_a_flag_count_as_failed_where_their_output_says_so(make_app, key):
    async with make_app() as app:
        calls = failing(*["Error: request timed out"] * 3, key=key)
        captured = await app.run_flow("capture_tool_rules", workspace_id="team", tool_calls=calls)
        (rule,) = captured.metadata["rules"]
    assert (rule["tool_name"], rule["priority"]) == ("search", "normal")
    assert rule["rule"].startswith("Tool failed 3 times in one turn (timeout). ")


@pytest.mark.parametrize(
    "call",
    [
        {"name": "search", "output_summary": '[{"title": "How to fix Error 404: not found"}]'},
        {"name": "search", "output_summary": "3 results: timeouts explained, error budgets, failing forward"},
        {"name": "search", "output_summary": ""},
        {"name": "search", "output_summary": "[]"},
        {"name": "search", "output_summary": "Error: request timed out", "success": True},
        {
            "name": "read_file",
            "arguments": {"path": "a.log"},
            "output_summary": "10:00 ok\n10:01 ERROR: disk full\n10:02",
        },
        {"name": "shell", "arguments": '{"command": "cat log"}', "output_summary": "all 3 checks passed, 0 errors"},
    ],
)
async def test_what_is_no_clear_failure_is_not_counted_as_one(make_app, call):
    async with make_app() as app:
        captured = await app.run_flow("capture_tool_rules", workspace_id="team", tool_calls=[call] * 3)
    assert captured.metadata["rules"] == []


@pytest.mark.parametrize("output", ["PermissionError: prod is locked", "Error: timeout", "no such table: users"])
async def test_rules_and_judgements_name_a_failure_alike(make_app, output):
    async with make_app() as app:
        calls = failing(output, output, success=False)
        records = [{"tool_name": "search", "output": output, "success": False}]
        captured = await app.run_flow("capture_tool_rules", workspace_id="team", tool_calls=calls)
        judged = await app.run_detailed("add_tool_call_result", workspace_id="team", tool_call_results=records)
        ((_, call),) = judged.context.get("judged_calls")
    (rule,) = captured.metadata["rules"]
    assert f"({call.error_class})" in rule["rule"]
    assert call.error_class in ("permission_denied", "timeout", "unknown_table")


async def test_three_time_outs_and_something_else_are_three_time_outs(make_app):
    async with make_app() as app:
        calls = failing(*["Error: timeout"] * 3, "no such table: users", success=False)
        captured = await app.run_flow("capture_tool_rules", workspace_id="team", tool_calls=calls)
    (rule,) = captured.metadata["rules"]
    assert rule["rule"].startswith("Tool failed 3 times in one turn (timeout). ")
