"""After a turn: instructions become critical rules, repeated failures normal ones."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta

import pytest

from toolmem.errors import ConfigError, RequestError, StoreUnavailable
from toolmem.models import ToolSchema
from toolmem.rules.capture.hook import ToolMemoryCaptureHook, extract
from toolmem.rules.capture.repeated_failures import class_of
from toolmem.rules.identity import UNSCOPED
from toolmem.rules.turns import ToolUse, Turn, read_turn, turns_of_messages

SARAH = "never email Sarah at sarah@example.com"
SWITCH = "TOOLMEM_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED"


def turn(message: str, *ran: str, tools=()) -> Turn:
    return Turn(message, tuple(ToolUse(name) for name in ran), tools=tuple(tools))


def failing(*outputs: str, tool: str = "fetch") -> Turn:
    return Turn("go on", tuple(ToolUse(tool, success=False, output_summary=output) for output in outputs))


@pytest.fixture
def hook(rules):
    return ToolMemoryCaptureHook(rules, enabled=True)


async def told(rules) -> list[tuple[str, str]]:
    return [(rule.tool_name, rule.rule) for rule in (await rules.all_rules())[0]]


# ---------------------------------------------------------------- instructions


@pytest.mark.parametrize("message", [SARAH, "永远不要给 sarah@example.com 的 Sarah 发邮件"])
async def test_the_safety_case_is_captured_whole_under_its_tool(hook, rules, store, message):
    (rule,) = (await hook.after_turn(turn(message, "send_email"))).rules
    assert (rule.tool_name, rule.rule) == ("send_email", message)
    assert (rule.priority, rule.source, rule.tags) == ("critical", "user_explicit", ["user-edict"])
    assert (await store.get("team", "tool-send_email", f"rule/{rule.id}")) is not None


@pytest.mark.parametrize(
    ("demand", "answer"),
    [
        ("don't send it yet", "Always."),
        ("don't cancel my order", "yes, always please"),
        ("先别发邮件", "永远"),
    ],
)
async def test_a_demand_of_this_session_is_told_and_kept_for_good_by_always(hook, rules, demand, answer):
    captured = await hook.after_turn(turn(demand, "send_email"))
    assert captured.rules == []
    in_english = f"{demand}: kept for this session; say 'always' to keep it"
    assert captured.notes == [in_english if demand.isascii() else f"{demand}：在本次会话内有效；回复“永远”即可长期保留"]
    (rule,) = (await hook.after_turn(turn(answer))).rules
    assert (rule.tool_name, rule.rule, rule.priority) == ("send_email", demand, "critical")


@pytest.mark.parametrize(
    "demand",
    [
        "for this session, never email Sarah",
        "never email Sarah in this conversation",
        "In this chat, never email Sarah",
    ],
)
async def test_never_in_this_session_holds_for_the_session_until_always_is_said(hook, demand):
    captured = await hook.after_turn(turn(demand, "send_email"))
    assert ([each.rule for each in captured.session], captured.rules) == ([demand], [])
    (rule,) = (await hook.after_turn(turn("always"))).rules
    assert rule.rule == "never email Sarah"


@pytest.mark.parametrize("message", ["always?", "It always fails.", "Always use the staging database.", "ok", "thanks"])
async def test_another_message_keeps_nothing_of_the_session_for_good(hook, rules, message):
    await hook.after_turn(turn("don't send it yet", "send_email"))
    captured = await hook.after_turn(turn(message, "send_email"))
    assert "don't send it yet" not in [rule.rule for rule in captured.rules]


async def test_always_in_another_session_keeps_nothing(hook, rules):
    await hook.after_turn(Turn("don't send it yet", (ToolUse("send_email"),), "one"))
    assert (await hook.after_turn(Turn("always", (), "two"))).rules == []


async def test_two_instructions_on_two_tools_are_exactly_two_rules(hook, rules):
    message = "Don't run shell commands with sudo. Stop using browser for that."
    await hook.after_turn(turn(message, "shell", "browser"))
    assert [tool for tool, _ in await told(rules)] == ["browser", "shell"]


async def test_a_request_is_no_rule(hook, rules):
    captured = await hook.after_turn(turn("Send Sarah an update when you can.", "send_email"))
    assert captured.rules == []
    assert await told(rules) == []


async def test_an_instruction_that_names_no_tool_goes_to_the_first_one_of_the_turn(hook, rules):
    await hook.after_turn(turn("Never do that automatically.", "calendar"))
    assert await told(rules) == [("calendar", "Never do that automatically")]


async def test_an_instruction_without_any_tool_is_unscoped_and_pinned(hook, rules):
    await hook.after_turn(turn("Never send anything without asking me first."))
    ((tool, _),) = await told(rules)
    assert tool == UNSCOPED
    assert len((await rules.rules_for_prompt(["send_email"])).rules) == 1


async def test_the_tool_that_the_instruction_names_wins_over_the_first_one_called(hook, rules):
    await hook.after_turn(turn(SARAH, "calendar", "send_email"))
    assert await told(rules) == [("send_email", SARAH)]


async def test_two_named_tools_get_one_rule_each(hook, rules):
    await hook.after_turn(
        turn("Never use web_search or browser_open for medical questions.", "web_search", "browser_open")
    )
    assert [tool for tool, _ in await told(rules)] == ["browser_open", "web_search"]


async def test_a_tool_of_the_catalogue_that_did_not_run_is_found(hook, rules):
    schema = ToolSchema(name="send_email", description="Send an e-mail")
    await hook.after_turn(turn(SARAH, tools=["calendar", schema]))
    assert await told(rules) == [("send_email", SARAH)]


async def test_an_instruction_said_again_is_one_rule(hook, rules, clock):
    first = (await hook.after_turn(turn(SARAH, "send_email"))).rules[0]
    clock.advance(60)
    again = (await hook.after_turn(turn(SARAH.upper() + "!", "SEND_EMAIL"))).rules[0]
    assert (again.id, again.created_at, again.updated_at) == (first.id, first.created_at, clock.now())
    assert len(await told(rules)) == 1


async def test_30_sentences_of_noise_do_not_evict_an_older_critical_rule(hook, rules):
    await hook.after_turn(turn(SARAH, "send_email"))
    for n in range(30):
        await hook.after_turn(turn(f"Please send report {n} to team {n}, thanks a lot!", "send_email"))
    assert [rule.rule for rule in (await rules.rules_for_prompt()).rules] == [SARAH]


@pytest.mark.parametrize(
    "message",
    [
        "I don't know what the weather is",
        "Why don't you email Bob?",
        "Do you never sleep?",
        "You never emailed Bob, please do",
        "Never mind",
        "Don't worry about it",
        "I never received the item",
    ],
)
async def test_it_is_no_instruction(hook, rules, message):
    captured = await hook.after_turn(turn(message, "send_email"))
    assert (captured.rules, captured.session) == ([], [])


async def test_demands_on_this_task_alone_are_answered_and_not_stored(hook, rules):
    captured = await hook.after_turn(turn("don't send it yet", "send_email"))
    assert [(each.tool_name, each.rule) for each in captured.session] == [("send_email", "don't send it yet")]
    assert await told(rules) == []


async def test_a_sentence_too_long_for_a_rule_is_reported_and_not_cut(hook, rules, caplog):
    captured = await hook.after_turn(turn("Never email " + "anybody or " * 60 + "Sarah.", "send_email"))
    assert captured.too_long == 1
    assert await told(rules) == []
    assert "too long" in caplog.text
    assert "Sarah" not in caplog.text


LET_GO = {
    "deleted": lambda rules, rule: rules.delete_rule("send_email", rule.id),
    "lifted": lambda rules, rule: rules.withdraw(rule),
    "rejected": lambda rules, rule: rules.set_status(rule.id, "withdrawn"),
    "superseded": lambda rules, rule: rules.withdraw(rule, superseded_by="other"),
    "expired": lambda rules, rule: rules.put_rule(
        "send_email", rule.rule, expires_at=rules.clock.now() - timedelta(seconds=1)
    ),
}


@pytest.mark.parametrize("how", LET_GO)
async def test_a_turn_that_is_played_again_brings_back_no_rule_that_was_let_go(hook, rules, how):
    said = replace(turn(SARAH, "send_email"), session_id="s1", number=3)
    (rule,) = (await hook.after_turn(said)).rules
    await LET_GO[how](rules, rule)
    captured = await hook.after_turn(said)
    assert captured.rules == []
    assert [draft.rule for draft in captured.deleted] == [SARAH]


@pytest.mark.parametrize("how", LET_GO)
@pytest.mark.parametrize(("session", "number"), [("s1", 4), ("s2", 3), ("s2", None), ("s1", None), ("", None)])
async def test_a_rule_that_was_let_go_can_be_said_again(hook, rules, how, session, number):
    (rule,) = (await hook.after_turn(replace(turn(SARAH, "send_email"), session_id="s1", number=3))).rules
    await LET_GO[how](rules, rule)
    captured = await hook.after_turn(replace(turn(SARAH, "send_email"), session_id=session, number=number))
    assert [(each.rule, each.status, each.expires_at) for each in captured.rules] == [(SARAH, "active", None)]
    assert [each.rule for each in await rules.list_rules("send_email")] == [SARAH]


@pytest.mark.parametrize("how", LET_GO)
async def test_who_tells_no_session_says_it_anew_each_time(hook, rules, how):
    (rule,) = (await hook.after_turn(turn(SARAH, "send_email"))).rules
    await LET_GO[how](rules, rule)
    assert len((await hook.after_turn(turn(SARAH, "send_email"))).rules) == 1


async def test_a_reminder_of_failures_that_was_deleted_stays_so(hook, rules):
    (rule,) = (await hook.after_turn(failing("timed out", "Timeout after 30 s"))).rules
    await rules.delete_rule("fetch", rule.id)
    assert (await hook.after_turn(failing("timed out", "Timeout after 30 s"))).rules == []


# ---------------------------------------------------------------- repeated failures


async def test_repeated_failures_of_a_class_are_one_rule_that_is_refreshed(hook, rules, clock):
    (first,) = (await hook.after_turn(failing("timed out", "Timeout after 30 s"))).rules
    assert first.rule.startswith("Tool failed 2 times in one turn (timeout). ")
    assert (first.priority, first.source, first.tags) == ("normal", "post_turn", ["repeated-failure"])
    clock.advance(60)
    (again,) = (await hook.after_turn(failing("timeout", "timeout", "timeout"))).rules
    assert again.rule.startswith("Tool failed 3 times in one turn (timeout). ")
    assert (again.id, again.created_at) == (first.id, first.created_at)
    await hook.after_turn(failing("no such file", "file not found", tool="FETCH"))
    assert len(await rules.list_rules("fetch")) == 2


async def test_the_rule_of_a_class_counts_its_own_failures(hook):
    outputs = ("timed out", "timed out", "no such file", "timed out", "no such file", "boom")
    first, second = (await hook.after_turn(failing(*outputs))).rules
    assert first.rule.startswith("Tool failed 3 times in one turn (timeout). ")
    assert second.rule.startswith("Tool failed 2 times in one turn (not_found). ")


async def test_failures_of_different_classes_are_one_rule_that_names_them(hook, rules):
    for _ in range(2):
        (rule,) = (await hook.after_turn(failing("timed out", "no such file"))).rules
        assert rule.rule.startswith("Tool failed 2 times in one turn (timeout, not_found). Read the error")
    assert len(await rules.list_rules("fetch")) == 1


async def test_a_class_that_a_judge_gave_counts_before_the_words_of_the_output(hook):
    uses = tuple(ToolUse("sql", success=False, output_summary="timeout", error_class="unknown_table") for _ in range(2))
    (rule,) = (await hook.after_turn(Turn("go on", uses))).rules
    assert "(unknown_table). Check that what it is asked for exists" in rule.rule


async def test_one_failure_or_unknown_outcomes_are_no_rule(hook, rules):
    calls = (ToolUse("a", success=False), ToolUse("b", success=False), ToolUse("c"), ToolUse("c"))
    await hook.after_turn(Turn("go on", calls))
    assert await told(rules) == []


async def test_a_rule_on_failures_that_the_user_deleted_stays_away(hook, rules):
    (rule,) = (await hook.after_turn(failing("timeout", "timeout"))).rules
    await rules.delete_rule("fetch", rule.id)
    assert (await hook.after_turn(failing("timeout", "timeout", "timeout"))).rules == []


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("Request timed out after 30 s", "timeout"),
        ("504 Gateway Time-out", "timeout"),
        ("connection timed out", "timeout"),
        ("cat: x: No such file or directory", "not_found"),
        ("HTTP 404", "not_found"),
        ("文件不存在", "not_found"),
        ("Permission denied", "permission_denied"),
        ("403 Forbidden", "permission_denied"),
        ("Connection refused", "connection_error"),
        ("getaddrinfo ENOTFOUND api.example.com", "connection_error"),
        ("JSONDecodeError: Expecting value, cannot parse", "parse_error"),
        ("Unexpected token < in JSON", "parse_error"),
        ("Unknown tool: sendmail", "unknown_tool"),
        ("tool 'x' not found", "unknown_tool"),
        ("boom", "error"),
        ("", "error"),
    ],
)
def test_a_failure_has_one_class(output, expected):
    assert class_of(ToolUse("t", output_summary=output)) == expected


# ---------------------------------------------------------------- never breaks a turn


async def test_a_store_failure_is_logged_without_the_users_words(hook, store, monkeypatch, caplog):
    async def fail(*args, **named):
        raise StoreUnavailable("disk full")

    monkeypatch.setattr(store, "put", fail)
    with caplog.at_level(logging.DEBUG):
        captured = await hook.after_turn(turn(SARAH, "send_email"))
    assert captured.rules == []
    assert captured.failures == ["a rule for 'send_email' was not kept: StoreUnavailable"]
    assert f"{len(SARAH)} characters" in caplog.text
    assert "Sarah" not in caplog.text


async def test_a_tool_name_that_cannot_be_kept_does_not_break_the_turn(hook, rules):
    captured = await hook.after_turn(turn(SARAH, "x" * 300 + "_email"))
    assert captured.rules == []
    assert len(captured.failures) == 1


async def test_a_hook_that_is_off_does_nothing(rules):
    hook = ToolMemoryCaptureHook(rules, enabled=False)
    captured = await hook.after_turn(turn(SARAH, "send_email"))
    assert (captured.rules, captured.session, captured.too_long) == ([], [], 0)
    assert await told(rules) == []
    await rules.put_rule("send_email", SARAH, priority="critical")
    assert len((await rules.rules_for_prompt()).rules) == 1


@pytest.mark.parametrize("name", [SWITCH, SWITCH.replace("TOOLMEM", "OPENHUMAN")])
def test_the_environment_switches_the_hook(rules, monkeypatch, name):
    for word, on in [
        ("0", False),
        ("No", False),
        ("off", False),
        ("1", True),
        ("TRUE", True),
        ("on", True),
        ("", True),
    ]:
        monkeypatch.setenv(name, word)
        assert ToolMemoryCaptureHook(rules).enabled is on
    monkeypatch.setenv(name, "perhaps")
    with pytest.raises(ConfigError, match=name):
        ToolMemoryCaptureHook(rules)


# ---------------------------------------------------------------- turns


def test_a_turn_is_read_from_json():
    read = read_turn(
        {
            "user_message": "hi",
            "tool_calls": [
                {"name": " a ", "arguments": {"x": 1}, "success": False, "output_summary": "o", "duration_ms": 5}
            ],
            "session_id": "s",
            "tools": ["a", {"name": "b", "inputSchema": {}}],
            "label": "passed over",
        }
    )
    assert read.tool_calls == (ToolUse("a", {"x": 1}, False, "o", 5.0),)
    assert [tool if isinstance(tool, str) else tool.name for tool in read.tools] == ["a", "b"]
    assert extract(read).drafts == ()


def test_a_call_as_records_have_it_is_read_as_well():
    record = {"tool_name": "a", "input": {"x": 1}, "output": {"error": "no"}}
    read = read_turn({"tool_calls": [record, {**record, "output": None}, {**record, "output_summary": "short"}]})
    assert [use.output_summary for use in read.tool_calls] == ['{"error": "no"}', "", "short"]
    assert read.tool_calls[0].arguments == {"x": 1}


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ([], "turn"),
        ({}, "user_message"),
        ({"user_mesage": "x"}, "user_message"),
        ({"user_message": 1}, "user_message"),
        ({"user_message": "", "tool_calls": {}}, "tool_calls"),
        ({"tool_calls": ["a"]}, "tool_calls[0]"),
        ({"tool_calls": [{"name": " "}]}, "tool_calls[0].name"),
        ({"tool_calls": [{"name": "a"}, {"name": "b", "success": "no"}]}, "tool_calls[1]"),
        ({"tool_calls": [{"name": "a", "duration_ms": float("nan")}]}, "tool_calls[0]"),
        ({"user_message": "x", "tools": "a,b"}, "tools"),
        ({"user_message": "x", "tools": [{"no": 1}]}, "tools"),
    ],
)
def test_what_is_no_turn_is_refused_by_field(value, field):
    with pytest.raises(RequestError) as caught:
        read_turn(value)
    assert caught.value.field == field


def test_a_conversation_is_cut_into_turns_at_each_message_of_the_user():
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "never mind the system"},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "image_url"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
        "noise",
        {"role": "user", "content": "two"},
        {"role": "assistant", "function_call": {"name": "mail", "arguments": "{}"}},
        {"role": "function", "name": "mail", "content": "sent"},
    ]
    first, second = turns_of_messages(messages)
    assert (first.user_message, second.user_message) == ("one", "two")
    assert first.tool_calls == (ToolUse("search", "{}", None, "found"),)
    assert second.tool_calls == (ToolUse("mail", "{}", None, "sent"),)
    assert first.tools == second.tools == ("search", "mail")


async def test_calls_that_were_stopped_before_they_ran_make_no_rule(hook):
    captured = await hook.after_turn(failing(*["Error: toolmem: not run. The user said: never fetch pages."] * 3))
    assert captured.rules == []
