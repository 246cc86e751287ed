"""A sentence of the user lets a rule hold no longer, or puts a newer one in its place; in doubt nothing changes."""

from __future__ import annotations

import pytest

from toolmem.errors import RequestError, StoreUnavailable
from toolmem.rules.capture.hook import SessionRule, ToolMemoryCaptureHook
from toolmem.rules.speakers import speaking_as
from toolmem.rules.turns import ToolUse, Turn

TOOLS = ("send_email", "shell")
SARAH = "never email Sarah"


@pytest.fixture
def hook(rules):
    return ToolMemoryCaptureHook(rules, enabled=True)


def turn(message: str, number: int | None = None, session: str = "s", tools=TOOLS) -> Turn:
    return Turn(message, tuple(ToolUse(name) for name in tools[:1]), session, tuple(tools), number)


async def hold(rules) -> list[str]:
    return sorted({rule.rule for rule in (await rules.all_rules())[0]})


async def status_of(rules, text: str) -> set[tuple[str, str]]:
    every = (await rules.all_rules(inactive=True))[0]
    return {(rule.tool_name, rule.status) for rule in every if rule.rule == text}


@pytest.mark.parametrize(
    ("said", "taken_back"),
    [
        (SARAH, "You may email Sarah again."),
        ("永远不要给 Sarah 发邮件", "以后可以给 Sarah 发邮件了"),
        ("never email Sarah at sarah@example.com", "I take back what I said about emailing Sarah."),
        (SARAH, "以后可以给 Sarah 发邮件了"),
    ],
)
async def test_the_rule_that_is_meant_is_withdrawn_and_the_user_is_told(hook, rules, said, taken_back):
    await hook.after_turn(turn(said, 1))
    captured = await hook.after_turn(turn(taken_back, 2))
    (gone,) = captured.withdrawn
    assert (gone.rule, gone.status, captured.rules) == (said, "withdrawn", [])
    assert len(captured.notes) == 1
    assert said in captured.notes[0]
    assert gone.id[:8] in captured.notes[0]
    assert await hold(rules) == []
    assert (await rules.rules_for_prompt(["send_email"])).rules == ()


async def test_rules_of_several_tools_that_came_of_one_sentence_are_one(hook, rules):
    tools = ("send_email", "gmail_send_email")
    await hook.after_turn(turn(SARAH, 1, tools=tools))
    assert len((await rules.all_rules())[0]) == 2
    captured = await hook.after_turn(turn("you can email Sarah again", 2, tools=tools))
    assert {rule.tool_name for rule in captured.withdrawn} == set(tools)
    assert len(captured.notes) == 1
    assert await hold(rules) == []


async def test_where_several_rules_may_be_meant_none_is_withdrawn_and_each_is_named(hook, rules):
    await hook.after_turn(turn(f"{SARAH}. Never email Bob.", 1))
    captured = await hook.after_turn(turn("You can email people again.", 2))
    assert captured.withdrawn == []
    (note,) = captured.notes
    assert "Sarah" in note
    assert "Bob" in note
    assert "toolmem rules reject" in note
    assert await hold(rules) == ["Never email Bob", SARAH]


@pytest.mark.parametrize(
    "message",
    [
        "can you email Sarah again?",
        "Please email Sarah again.",
        "Bob says you can email Sarah again.",
        'The mail says "you can email Sarah again".',
        "You can use the browser again.",
        "> you may email Sarah again",
    ],
)
async def test_what_takes_nothing_back_changes_nothing_and_tells_nothing(hook, rules, message):
    await hook.after_turn(turn(SARAH, 1))
    captured = await hook.after_turn(turn(message, 2))
    assert (captured.withdrawn, captured.notes) == ([], [])
    assert await hold(rules) == [SARAH]


@pytest.mark.parametrize(
    "message",
    [
        "You may email Sarah this once.",
        "You can email Sarah just today.",
        "You can email Sarah if she writes first.",
        "You may email Sarah about the invoice.",
        "这次可以给 Sarah 发邮件",
    ],
)
async def test_a_limited_permission_withdraws_nothing_and_says_so(hook, rules, message):
    await hook.after_turn(turn(SARAH, 1))
    captured = await hook.after_turn(turn(message, 2))
    assert captured.withdrawn == []
    (note,) = captured.notes
    assert SARAH in note
    assert await hold(rules) == [SARAH]


async def test_what_a_program_put_no_sentence_of_the_user_withdraws(hook, rules):
    put = await rules.put_rule("send_email", SARAH, priority="critical")
    captured = await hook.after_turn(turn("you may email Sarah again", 1))
    assert captured.withdrawn == []
    assert f"`toolmem rules reject {put.id[:8]}`" in captured.notes[0]
    assert await hold(rules) == [SARAH]


async def test_what_the_user_said_in_person_a_message_by_a_program_does_not_withdraw(hook, rules):
    await hook.after_turn(turn(SARAH, 1))
    with speaking_as("program"):
        captured = await ToolMemoryCaptureHook(rules, enabled=True).after_turn(turn("you may email Sarah again", 2))
    assert captured.withdrawn == []
    assert await hold(rules) == [SARAH]


async def test_an_agent_withdraws_nothing(hook, rules):
    await hook.after_turn(turn(SARAH, 1))
    agents = ToolMemoryCaptureHook(rules.for_agent(), enabled=True)
    captured = await agents.after_turn(turn("you may email Sarah again", 2))
    assert (captured.withdrawn, captured.notes) == ([], [])
    (rule,) = (await rules.all_rules())[0]
    with pytest.raises(RequestError, match="agent"):
        await rules.for_agent().withdraw(rule)


async def test_a_message_is_read_in_order(hook, rules):
    captured = await hook.after_turn(turn(f"{SARAH}. Actually, you may.", 1))
    assert captured.rules == []
    assert [rule.rule for rule in captured.withdrawn] == [SARAH]
    again = await hook.after_turn(turn("You may email Sarah. On second thought: never email Sarah.", 2))
    assert [rule.rule for rule in again.rules] == ["On second thought: never email Sarah"] or await hold(rules) != []


async def test_that_is_taken_back_in_the_next_turn_and_not_later(hook, rules):
    await hook.after_turn(turn(SARAH, 1))
    assert (await hook.after_turn(turn("I take that back.", 3))).withdrawn == []
    assert (await hook.after_turn(turn("I take that back.", 2))).withdrawn != []


# ---------------------------------------------------------------- newer instructions


async def test_a_newer_instruction_on_the_same_target_supersedes_the_older(hook, rules):
    (old,) = (await hook.after_turn(turn(SARAH, 1))).rules
    captured = await hook.after_turn(turn("Always ask me before you email Sarah.", 2))
    (new,) = captured.rules
    (gone,) = captured.superseded
    assert (gone.id, gone.status, gone.superseded_by) == (old.id, "superseded", new.id)
    assert SARAH in captured.notes[0]
    assert await hold(rules) == ["Always ask me before you email Sarah"]


async def test_an_instruction_on_another_target_supersedes_nothing(hook, rules):
    await hook.after_turn(turn(SARAH, 1))
    captured = await hook.after_turn(turn("Never email Bob.", 2))
    assert (captured.superseded, captured.notes) == ([], [])
    assert await hold(rules) == ["Never email Bob", SARAH]


async def test_a_permission_with_a_bound_replaces_the_ban(hook, rules):
    await hook.after_turn(turn(SARAH, 1))
    captured = await hook.after_turn(turn("You may email Sarah again, but always ask me first.", 2))
    assert [rule.rule for rule in captured.superseded] == [SARAH]
    assert len(await hold(rules)) == 1


async def test_no_longer_being_asked_is_no_instruction_where_it_takes_one_back(hook, rules):
    await hook.after_turn(turn("Always ask me before you send an email.", 1))
    captured = await hook.after_turn(turn("Stop asking me before you send an email.", 2))
    assert [rule.status for rule in captured.withdrawn] == ["withdrawn"]
    assert await hold(rules) == []


async def test_the_older_one_said_anew_holds_again_in_place_of_the_newer(hook, rules):
    ask = "Ask me before you email Sarah"
    await hook.after_turn(turn(SARAH, 1))
    await hook.after_turn(turn(ask, 2))
    captured = await hook.after_turn(turn(SARAH, 3))
    assert [(rule.rule, rule.status, rule.superseded_by) for rule in captured.rules] == [(SARAH, "active", "")]
    assert [rule.rule for rule in captured.superseded] == [ask]
    assert await hold(rules) == [SARAH]


# ---------------------------------------------------------------- played again


async def test_turns_played_again_end_where_they_ended(hook, rules):
    told = [SARAH, "You may email Sarah again.", "Never use sudo in the shell.", "Ask me before you use sudo."]
    for _ in range(3):
        for number, message in enumerate(told, 1):
            await hook.after_turn(turn(message, number))
        assert await hold(rules) == ["Ask me before you use sudo"]


async def test_said_anew_it_is_a_new_instruction(hook, rules):
    for number, message in enumerate([SARAH, "You may email Sarah again.", SARAH], 1):
        await hook.after_turn(turn(message, number))
    assert await hold(rules) == [SARAH]
    await hook.after_turn(turn("You may email Sarah again.", 2))
    assert await hold(rules) == [SARAH], "the turn that took it back was before"


async def test_a_withdrawn_rule_can_be_restored_and_withdrawn_again(hook, rules):
    await hook.after_turn(turn(SARAH, 1))
    (gone,) = (await hook.after_turn(turn("You may email Sarah again.", 2))).withdrawn
    restored = await rules.set_status(gone.id, "active")
    assert (restored.status, await hold(rules)) == ("active", [SARAH])
    assert (await hook.after_turn(turn("You may email Sarah again.", 4))).withdrawn != []


async def test_a_superseded_rule_that_is_restored_names_no_newer_one(hook, rules):
    await hook.after_turn(turn(SARAH, 1))
    (gone,) = (await hook.after_turn(turn("Ask me before you email Sarah.", 2))).superseded
    assert (await rules.set_status(gone.id, "active")).superseded_by == ""


# ---------------------------------------------------------------- demands of the session, and faults


@pytest.mark.parametrize("message", ["OK, you can send it now.", "You may send it again."])
async def test_a_demand_of_the_session_is_lifted(hook, message):
    held = [SessionRule("send_email", "don't send it yet")]
    captured = await hook.after_turn(turn(message, 2), holding=held)
    assert captured.lifted == held


async def test_a_demand_of_the_session_on_something_else_stays(hook):
    held = [SessionRule("send_email", "don't cancel order W123")]
    assert (await hook.after_turn(turn("You can use sudo now.", 2), holding=held)).lifted == []


async def test_a_store_that_fails_costs_the_withdrawal_never_the_turn(hook, rules, monkeypatch):
    await hook.after_turn(turn(SARAH, 1))

    async def fail(*_, **__):
        raise StoreUnavailable("gone")

    monkeypatch.setattr(rules.store, "put", fail)
    captured = await hook.after_turn(turn("You may email Sarah again.", 2))
    assert captured.withdrawn == []
    assert captured.failures != []
    assert "Sarah" not in captured.failures[0]
    monkeypatch.undo()
    assert await hold(rules) == [SARAH]


async def test_a_store_that_cannot_be_read_keeps_what_is_demanded_now_as_failure(hook, rules, monkeypatch):
    async def fail(*_, **__):
        raise StoreUnavailable("gone")

    monkeypatch.setattr(rules, "all_rules", fail)
    captured = await hook.after_turn(turn("You may email Sarah again.", 2))
    assert captured.failures != []
