"""What becomes of which calls: a rule says it in fields of its own, read off its sentence or given by its caller."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.agent_over_rules import agent_over
from toolmem.errors import RequestError
from toolmem.guard.decision import against_rules
from toolmem.guard.view import view_of
from toolmem.light_models import Said
from toolmem.rules.checked_rules import checked_rules
from toolmem.rules.drafts import RuleDraft
from toolmem.rules.general_memory import GeneralMemory
from toolmem.rules.identity import UNSCOPED
from toolmem.rules.rule_store import RuleStore

SARAH = "never email Sarah at sarah@example.com"
TO_BOB = {
    "type": "object",
    "required": ["targets"],
    "properties": {"targets": {"type": "array", "contains": {"const": "bob@example.com"}}},
}


async def decided(rules: RuleStore, tool: str, arguments: dict) -> list[str]:
    """The actions of the rules against a call."""
    known, _ = await rules.all_rules()
    checked = checked_rules(known, rules.clock.now())
    bound = [*checked.get(tool.casefold(), ()), *checked.get("", ())]
    return [each.action for each in against_rules(bound, view_of(tool, arguments), "enforce")]


# ---------------------------------------------------------------- what is put


async def test_a_sentence_that_is_put_becomes_a_condition_on_calls(rules):
    rule = await rules.put_rule("send_email", SARAH)
    assert (rule.effect, rule.checked, rule.unchecked) == ("deny", True, "")
    assert await decided(rules, "send_email", {"to": "sarah@example.com"}) == ["deny"]
    assert await decided(rules, "send_email", {"to": "bob@example.com", "body": "Sarah says hello"}) == []
    assert await rules.get_rule("send_email", rule.id) == rule


async def test_a_sentence_that_cannot_be_checked_only_reminds_and_says_why(rules):
    rule = await rules.put_rule("send_email", "never email Sarah on weekends")
    assert (rule.effect, rule.when, rule.checked) == ("remind", None, False)
    assert "weekends" in rule.unchecked


async def test_what_is_given_is_kept_and_no_sentence_is_read(rules):
    rule = await rules.put_rule("send_email", SARAH, effect="ask", when=TO_BOB)
    assert (rule.effect, rule.when, rule.unchecked) == ("ask", TO_BOB, "")
    assert (await rules.put_rule("send_email", "be kind", effect="remind")).when is None
    assert (await rules.put_rule("send_email", "no mail at all today", when=True)).effect == "deny"
    assert await decided(rules, "send_email", {"to": "bob@example.com"}) == ["ask", "deny"]


async def test_a_caller_changes_nothing_of_the_condition_that_it_gave(rules):
    given = {**TO_BOB, "properties": {"targets": {"type": "array", "contains": {"const": "bob@example.com"}}}}
    rule = await rules.put_rule("send_email", "not Bob", effect="deny", when=given)
    given["properties"].clear()
    rule.when["properties"].clear()
    for _ in range(3):  # also where it was read before
        (stored,) = await rules.list_rules("send_email")
        assert stored.when == TO_BOB
        stored.when["properties"].clear()


async def test_a_new_text_is_read_anew_and_another_change_keeps_the_condition(rules):
    rule = await rules.put_rule("send_email", SARAH)
    high = await rules.put_rule("send_email", SARAH, id=rule.id, priority="high")
    assert (high.effect, high.when) == (rule.effect, rule.when)
    changed = await rules.put_rule("send_email", "ask me before you email Bob", id=rule.id)
    assert (changed.id, changed.effect) == (rule.id, "ask")
    reminder = await rules.put_rule("send_email", "be polite", id=rule.id)
    assert (reminder.effect, reminder.when) == ("remind", None)


@pytest.mark.parametrize(
    ("said", "effect"),
    [("not Bob", "deny"), ("ask me before you email Bob", "ask"), ("给 Bob 发邮件之前必须先问我", "ask")],
)
async def test_a_condition_without_an_effect_asks_where_the_sentence_does_and_forbids_else(rules, said, effect):
    rule = await rules.put_rule("send_email", said, when=TO_BOB)
    assert (rule.effect, rule.when) == (effect, TO_BOB)
    changed = await rules.put_rule("send_email", said, effect="ask")
    assert (await rules.put_rule("send_email", said, when=True)).effect == changed.effect == "ask"


async def test_the_effect_of_a_condition_may_change_alone(rules):
    rule = await rules.put_rule("send_email", SARAH)
    assert (await rules.put_rule("send_email", SARAH, id=rule.id, effect="ask")).when == rule.when
    off = await rules.put_rule("send_email", SARAH, id=rule.id, effect="remind")
    assert (off.effect, off.when) == ("remind", None)
    assert (await rules.put_rule("send_email", SARAH, id=rule.id, priority="high")).effect == "remind"


async def test_a_rule_that_was_listed_is_put_back_as_it_was(rules, clock):
    later = clock.now() + timedelta(days=1)
    rule = await rules.put_rule("send_email", SARAH, effect="ask", when=TO_BOB, expires_at=later)
    reminder = await rules.put_rule("send_email", "never email Ann on weekends")
    for each in (rule, reminder):
        await rules.delete_rule("send_email", each.id)
        again = await rules.put_whole(each)
        assert again.model_dump() == each.model_dump()


async def test_a_rule_of_no_tool_reminds_unless_a_condition_is_given(rules):
    rule = await rules.put_rule(UNSCOPED, SARAH)
    assert (rule.effect, bool(rule.unchecked)) == ("remind", True)
    await rules.put_rule(UNSCOPED, "nothing goes to Bob", effect="deny", when=TO_BOB)
    assert await decided(rules, "share_file", {"to": "bob@example.com"}) == ["deny"]
    assert await decided(rules, "share_file", {"to": "sarah@example.com"}) == []


async def test_a_rule_binds_its_tool_in_whatever_case_its_name_is_written(rules):
    await rules.put_rule("Send_Email", SARAH)
    assert await decided(rules, "send_EMAIL", {"to": "sarah@example.com"}) == ["deny"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"effect": "block"}, "effect: expected one of"),
        ({"effect": "deny"}, "effect: deny needs `when`"),
        ({"effect": "ask"}, "leave `effect` out"),
        ({"effect": "remind", "when": TO_BOB}, "leave `when` out"),
        ({"when": "to == bob"}, "expected alternatives of tests, a JSON Schema"),
        ({"when": False}, "expected alternatives of tests, a JSON Schema"),
        ({"when": {"properties": {"to": {}}}}, "`when.properties`"),
        ({"when": {"pattern": "bob"}}, "`when.pattern`"),
        ({"when": {"$ref": "#/x"}}, "`when.$ref`"),
        ({"when": {"type": "object", "required": ["to"], "$schema": "http://x"}}, "`when.$schema`"),
        ({"when": {"type": "object"}}, "a call without arguments"),
        ({"when": {"type": "nothing"}}, "not a JSON Schema"),
        ({"when": {"type": "object", "required": ["to"]}}, "`when.required`: 'to' is not in a call's view"),
        ({"when": {"anyOf": [{"type": "object", "required": ["target"]}]}}, "`when.anyOf.0.required`: 'target'"),
        ({"when": {"type": "object", "required": ["targets", "to"]}}, "inside `arguments`"),
        ({"when": {1: 2, "type": "object"}}, "names that are text"),
        ({"when": {"type": "string", "pattern": "(?=x)y"}}, "linear time"),
        ({"when": {"type": "string", "const": "x" * 9000}}, "8192 bytes"),
        ({"expires_at": "tomorrow"}, "expires_at: expected a time"),
        ({"expires_at": "2030-01-01T00:00:00"}, "with a zone"),
    ],
)
async def test_what_cannot_be_checked_is_refused_before_anything_is_written(rules, store, fields, told):
    with pytest.raises(RequestError) as refused:
        await rules.put_rule("send_email", SARAH, **fields)
    assert told in str(refused.value)
    assert refused.value.field in fields
    assert await store.list_raw("team", None, prefix="", key_prefix="") == []


# ---------------------------------------------------------------- what an agent puts


async def test_what_an_agent_would_have_stopped_waits_for_a_person_and_binds_once_approved(rules):
    agent = rules.for_agent()
    put = await agent.put_rule("send_email", "not Bob", effect="deny", when=TO_BOB)
    assert put.status == "proposed"
    assert await decided(rules, "send_email", {"to": "bob@example.com"}) == []
    await rules.set_status(put.id, "active")
    assert await decided(rules, "send_email", {"to": "bob@example.com"}) == ["deny"]
    for change in ({"effect": "remind"}, {"when": True, "effect": "deny"}, {"priority": "high"}):
        with pytest.raises(RequestError):
            await agent.put_rule("send_email", "not Bob", **change)
    with pytest.raises(RequestError):
        await agent.delete_rule("send_email", put.id)


async def test_what_an_agent_notes_is_not_read_for_conditions(rules):
    put = await rules.for_agent().put_rule("send_email", SARAH, priority="high")
    assert (put.status, put.effect, put.when) == ("active", "remind", None)
    assert (await agent_put(rules, SARAH))["effect"] == "remind"


async def test_an_agents_own_tool_offers_what_would_be_stopped_and_it_waits(rules):
    given = {"tool_name": "send_email", "rule": "not Bob", "effect": "deny", "when": TO_BOB}
    put = await agent_over(rules).call("memory_tools_put", given)
    assert (put["status"], put["effect"], put["when"]) == ("proposed", "deny", TO_BOB)


async def agent_put(rules, text: str) -> dict:
    return await agent_over(rules).call("memory_tools_put", {"tool_name": "send_email", "rule": text})


async def test_an_agent_changes_no_condition_of_a_users_rule(rules, clock):
    rule = await rules.put_rule("send_email", SARAH, source="user_explicit")
    agent = rules.for_agent()
    for change in ({"effect": "remind"}, {"effect": "deny", "when": TO_BOB}, {"expires_at": clock.now()}):
        with pytest.raises(RequestError, match="an agent cannot change"):
            await agent.put_rule("send_email", SARAH, **change)
    assert await rules.list_rules("send_email") == [rule]


async def test_an_agent_who_rewrites_its_proposal_takes_the_condition_of_the_former_text_along_no_further(rules):
    agent = rules.for_agent()
    put = await agent.put_rule("send_email", "not Bob", effect="deny", when=TO_BOB)
    changed = await agent.put_rule("send_email", "prefer plain text", id=put.id)
    assert (changed.effect, changed.when) == ("remind", None)


# ---------------------------------------------------------------- said anew


async def test_a_sentence_said_anew_makes_a_withdrawn_reminder_active_and_checked(rules):
    rule = await rules.put_rule("send_email", SARAH, effect="remind")
    await rules.set_status(rule.id, "withdrawn")
    said = Said(by="user", sentence=SARAH, session="s2", turn=1)
    draft = RuleDraft("send_email", SARAH, priority="critical", source="user_explicit", said=said)
    again = await rules.capture_rule(draft)
    assert again is not None
    assert (again.id, again.status, again.effect) == (rule.id, "active", "deny")


async def test_what_is_captured_again_leaves_a_condition_as_somebody_changed_it(rules):
    rule = await rules.put_rule("send_email", SARAH, effect="ask", when=TO_BOB)
    said = Said(by="user", sentence=SARAH, session="s2", turn=1)
    again = await rules.capture_rule(RuleDraft("send_email", SARAH, source="user_explicit", said=said))
    assert again is not None
    assert (again.id, again.effect, again.when) == (rule.id, "ask", TO_BOB)


# ---------------------------------------------------------------- expiry


@pytest.mark.parametrize("priority", ["critical", "high", "normal"])
async def test_a_rule_that_has_expired_holds_nowhere(rules, store, clock, priority):
    later = clock.now() + timedelta(hours=1)
    rule = await rules.put_rule("send_email", SARAH, priority=priority, expires_at=later)
    memory = GeneralMemory(store, "team", clock=clock)
    assert await holding(rules, memory) == {"get", "list", "json", "names", "guard", "recalled"} | (
        {"prompt"} if priority != "normal" else set()
    )
    clock.advance(3600)
    assert await holding(rules, memory) == set()
    (kept,), _ = await rules.all_rules(inactive=True)
    assert kept == rule
    longer = await rules.put_rule("send_email", SARAH, expires_at=clock.now() + timedelta(hours=1))
    assert longer.id == rule.id
    assert "get" in await holding(rules, memory)


async def holding(rules: RuleStore, memory: GeneralMemory) -> set[str]:
    """Where the one rule holds."""
    (rule,), _ = await rules.all_rules(inactive=True)
    found = {
        "get": await rules.get_rule("send_email", rule.id),
        "list": await rules.list_rules("send_email"),
        "json": await rules.rules_json("send_email"),
        "names": await rules.list_tool_names(),
        "prompt": (await rules.rules_for_prompt()).rules,
        "guard": checked_rules([rule], rules.clock.now()),
        "recalled": await memory.recall(SARAH, namespace="tool-send_email"),
    }
    return {where for where, each in found.items() if each}


# ---------------------------------------------------------------- what is stored


async def test_a_rule_stored_before_it_could_be_checked_reminds(rules, store):
    rule = await rules.put_rule("send_email", SARAH, priority="critical")
    value = rule.model_dump(mode="json", exclude={"effect", "when", "unchecked", "expires_at", "superseded_by"})
    await store.put("team", "tool-send_email", f"rule/{rule.id}", value)
    (stored,) = await rules.list_rules("send_email")
    assert (stored.effect, stored.when, stored.unchecked, stored.expires_at) == ("remind", None, "", None)
    assert (await rules.rules_for_prompt()).rules == (stored,)


async def test_a_damaged_condition_makes_a_rule_a_reminder_and_hides_nothing_of_it(rules, store, caplog):
    rule = await rules.put_rule("send_email", SARAH, priority="critical")
    for damage in ({"when": "all"}, {"when": 3}, {"effect": "block"}, {"unchecked": 4}, {"when": {"$ref": "#"}}):
        value = {**rule.model_dump(mode="json"), **damage}
        await store.put("team", "tool-send_email", f"rule/{rule.id}", value)
        (stored,) = (await rules.rules_for_prompt()).rules
        assert stored.rule == SARAH
        assert await decided(rules, "send_email", {"to": "sarah@example.com"}) == []
        assert "is damaged: it only reminds" in caplog.text
        caplog.clear()


@pytest.mark.parametrize("field", [("priority", "normal"), ("status", "withdrawn"), ("deleted", True), ("by", "agent")])
async def test_nothing_in_a_condition_is_taken_for_a_field_of_the_rule(rules, store, field):
    name, value = field
    holds = {"type": "object", "required": ["targets"], "properties": {"targets": {"const": [{name: value}]}}}
    rule = await rules.put_rule("send_email", "be careful", priority="critical", effect="deny", when=holds)
    high = await rules.put_rule("send_email", "be brief", priority="high", effect="deny", when=holds)
    assert (await rules.rules_for_prompt()).rules == (rule, high)
    first = {"when": holds, **rule.model_dump(mode="json", exclude={"when"})}
    await store.put("team", "tool-send_email", f"rule/{rule.id}", first)
    assert rule in (await rules.rules_for_prompt()).rules
