"""What a user says becomes rules that say which calls they stop, for each tool that the turn has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.guard.conftest import CALLS, TOOLS
from toolmem.guard.call_conditions import check_condition
from toolmem.guard.decision import against_rules
from toolmem.guard.view import view_of
from toolmem.light_models import ToolMemoryRule, ToolSchema
from toolmem.rules.capture.hook import ToolMemoryCaptureHook, extract
from toolmem.rules.checked_rules import checked_rules
from toolmem.rules.identity import UNSCOPED
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.turns import Turn

AGENTDOJO = Path(__file__).resolve().parents[3] / "shared" / "data" / "guard" / "agentdojo.json"


async def captured(rules: RuleStore, message: str, tools: Any = TOOLS, **turn: Any) -> list[ToolMemoryRule]:
    return (
        await ToolMemoryCaptureHook(rules, enabled=True).after_turn(Turn(message, tools=tuple(tools), **turn))
    ).rules


async def stopped(rules: RuleStore) -> dict[str, str]:
    """Label of a call -> deny or ask, of those that the stored rules stop."""
    known, _ = await rules.all_rules()
    checked = checked_rules(known, rules.clock.now())
    declared = {tool.name: tool.parameters for tool in TOOLS}
    found = {}
    for label, (tool, arguments) in CALLS.items():
        bound = [*checked.get(tool, ()), *checked.get("", ())]
        for each in against_rules(bound, view_of(tool, arguments, declared[tool]), "enforce"):
            found[label] = each.action
    return found


@pytest.mark.parametrize(
    ("said", "effect", "labels"),
    [
        ("Never email Sarah at sarah@example.com.", "deny", {"mail sarah", "copy sarah"}),
        ("永远不要给 sarah@example.com 的 Sarah 发邮件", "deny", {"mail sarah", "copy sarah"}),
        ("Only email addresses at acme.com.", "deny", {"mail sarah", "copy sarah", "mail sarahs"}),
        ("Never put the code 463820 into an email.", "deny", {"mail code"}),
        ("Never pay more than $5,000.", "deny", {"pay 6000"}),
        ("Never push to main.", "deny", {"push main", "push head to main", "push main in sh", "push by tool"}),
        ("Ask me before you delete a file.", "ask", {"sudo rm", "rm", "delete app"}),
    ],
)
async def test_a_sentence_that_is_captured_stops_what_it_forbids_on_every_tool_and_nothing_else(
    rules, said, effect, labels
):
    kept = await captured(rules, said)
    assert {rule.effect for rule in kept if rule.checked} == {effect}
    assert await stopped(rules) == dict.fromkeys(labels, effect)
    assert all(rule.said and rule.said.sentence == rule.rule for rule in kept)


@pytest.mark.parametrize("said", ["Never email Sarah on weekends.", "Always run the tests before you push."])
async def test_what_is_not_understood_is_kept_as_a_reminder_with_the_reason(rules, said):
    kept = await captured(rules, said)
    assert kept
    assert {(rule.effect, rule.when, bool(rule.unchecked)) for rule in kept} == {("remind", None, True)}
    assert await stopped(rules) == {}


async def test_run_the_tests_before_you_commit_binds_the_commit(rules):
    kept = await captured(rules, "Always run the tests before you commit", ["run_tests", "git_commit", "send_email"])
    assert [(rule.tool_name, rule.effect) for rule in kept] == [("git_commit", "remind")]


async def test_a_sentence_that_names_no_tool_binds_those_that_do_what_it_forbids(rules):
    (rule,) = await captured(rules, "Never open scam.example.com.", [_fetching()])
    assert (rule.tool_name, rule.effect) == ("get_webpage", "deny")


def _fetching() -> ToolSchema:
    parameters = {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}
    return ToolSchema(name="get_webpage", description="Returns the content of the webpage.", parameters=parameters)


async def test_a_demand_of_no_tool_reminds_and_binds_none(rules):
    (rule,) = await captured(rules, "Never email Sarah.", [])
    assert (rule.tool_name, rule.effect, bool(rule.unchecked)) == (UNSCOPED, "remind", True)


async def test_a_tool_that_ran_is_known_by_its_declaration_in_whatever_case(rules):
    declared = TOOLS[-1]
    turn = Turn("Never email Sarah.", tools=(declared,))
    (draft,) = extract(turn).drafts
    (named,) = extract(Turn("Never email Sarah.", tools=("SEND_EMAIL", declared))).drafts
    assert (draft.effect, named.effect) == ("deny", "deny")
    assert draft.when == named.when


async def test_always_keeps_what_was_said_for_the_session_and_reads_it_for_a_condition(rules):
    hook = ToolMemoryCaptureHook(rules, enabled=True)
    first = await hook.after_turn(Turn("For now, don't email Sarah.", session_id="s", tools=tuple(TOOLS)))
    assert first.session
    assert not first.rules
    kept = (await hook.after_turn(Turn("always", session_id="s", tools=tuple(TOOLS)))).rules
    assert [rule.tool_name for rule in kept] == [each.tool_name for each in first.session]


async def test_said_anew_a_rejected_rule_holds_again_and_is_checked(rules):
    for session in ("s1", "s2"):
        (rule,) = await captured(rules, "Never email Sarah.", session_id=session)
        assert (rule.status, rule.effect) == ("active", "deny")
        if session == "s1":
            await rules.put_rule("send_email", rule.rule, effect="remind")
            await rules.set_status(rule.id, "withdrawn")
    assert await stopped(rules) == {"mail sarah": "deny", "copy sarah": "deny"}


@pytest.mark.skipif(not AGENTDOJO.exists(), reason="the labelled calls are not there")
def test_every_condition_that_a_sentence_becomes_is_one_that_could_be_put():
    for suite in json.loads(AGENTDOJO.read_text(encoding="utf-8")).values():
        tools = tuple(ToolSchema.read(tool) for tool in suite["tools"])
        for case in suite["cases"]:
            drafts = extract(Turn(case["said"], tools=tools)).drafts
            assert {draft.effect for draft in drafts if draft.effect != "remind"} == {case["effect"]}
            for draft in drafts:
                assert draft.when is None or check_condition(draft.when) == draft.when
