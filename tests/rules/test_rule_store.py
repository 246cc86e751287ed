"""Putting, reading and deleting rules."""

from __future__ import annotations

import json
import logging
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import apsw
import pytest

from toolmem.errors import RequestError, StoreError
from toolmem.light_models import Said
from toolmem.models import ToolMemoryRule
from toolmem.rules.drafts import RuleDraft
from toolmem.rules.identity import UNSCOPED

LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)


def capture_of(text: str, tool: str = "send_email", priority: str = "critical") -> RuleDraft:
    return RuleDraft(tool, text, priority=priority, source="user_explicit", tags=["user-edict"])


def damage(store, key: str, value: str) -> None:
    db = apsw.Connection(store.location)
    db.execute("UPDATE records SET value = ? WHERE key = ?", (value, key))
    assert db.changes() == 1
    db.close()


# ---------------------------------------------------------------- what a rule is


async def test_a_new_rule_is_normal_and_programmatic(rules, clock):
    rule = await rules.put_rule("send_email", "be brief")
    assert (rule.priority, rule.source, rule.tags) == ("normal", "programmatic", [])
    assert rule.created_at == rule.updated_at == clock.now()
    assert uuid.UUID(rule.id)


def test_critical_and_high_rules_are_eager():
    made = {p: rule_of(priority=p).eager for p in ("critical", "high", "normal")}
    assert made == {"critical": True, "high": True, "normal": False}


def test_a_rule_survives_json():
    rule = rule_of(rule='never "quote" \\ 绝不', tags=["a", "b"])
    assert ToolMemoryRule.model_validate_json(rule.model_dump_json()) == rule
    assert set(rule.model_dump(mode="json")) == {
        *("id", "tool_name", "rule", "priority", "source", "tags", "created_at", "updated_at", "status", "said"),
        *("effect", "when", "unchecked", "expires_at", "superseded_by"),
    }


@pytest.mark.parametrize("field", ["priority", "source"])
def test_unknown_values_are_no_rule(field):
    with pytest.raises(ValueError):
        rule_of(**{field: "urgent"})


def rule_of(**fields) -> ToolMemoryRule:
    made = {"id": "1", "tool_name": "t", "rule": "r", "created_at": LONG_AGO, "updated_at": LONG_AGO}
    return ToolMemoryRule.model_validate({**made, **fields})


async def test_ids_are_unique_over_tools_and_texts(rules):
    put = [await rules.put_rule(tool, text) for tool in ("a", "b") for text in ("one", "two", "three")]
    assert len({rule.id for rule in put}) == 6


def test_both_halves_mean_the_same_by_no_tool():
    assert UNSCOPED == "__unscoped__"


async def test_a_rule_lies_where_the_layout_says(rules, store):
    rule = await rules.put_rule("Send_Email", "never email Sarah", priority="critical")
    record = await store.get("team", "tool-send_email", f"rule/{rule.id}")
    assert record.value == rule.model_dump(mode="json")


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("given", "field", "says"),
    [
        ({"tool_name": " "}, "tool_name", "tool_name is required"),
        ({"tool_name": "\u200b\u202e"}, "tool_name", "tool_name is required"),
        ({"rule": " \n"}, "rule", "rule is required"),
        ({"rule": "\u200d\u200d"}, "rule", "rule is required"),
        ({"rule": "x" * 2001}, "rule", "the limit is 2,000"),
        ({"rule": "x" * 1_000_000}, "rule", "the limit is 2,000"),
        ({"rule": None}, "rule", "expected text"),
        ({"priority": "critcal"}, "priority", "did you mean 'critical'"),
        ({"priority": 1}, "priority", "expected one of"),
        ({"source": "user"}, "source", "user_explicit"),
        ({"tags": "user-edict"}, "tags", "list of strings"),
        ({"tags": [1]}, "tags", "expected text"),
        ({"tags": [str(n) for n in range(33)]}, "tags", "at most 32"),
        ({"id": "x" * 129}, "id", "the limit is 128"),
        ({"id": "a\x00b"}, "id", "control"),
    ],
)
async def test_what_cannot_be_a_rule_is_refused_by_field(rules, store, given, field, says):
    with pytest.raises(RequestError, match=says) as caught:
        await rules.put_rule(**{"tool_name": "send_email", "rule": "be brief", **given})
    assert caught.value.field == field
    assert await store.namespaces("team") == []


async def test_a_rule_of_2000_characters_is_kept_whole(rules):
    text = "x" * 1999 + "y"
    assert (await rules.put_rule("t", f"  {text} ")).rule == text


# ---------------------------------------------------------------- upsert


async def test_an_upsert_keeps_created_at_even_where_the_caller_forges_it(rules, clock):
    first = await rules.put_rule("send_email", "be brief", priority="high")
    clock.advance(60)
    forged = first.model_copy(update={"rule": "be very brief", "created_at": LONG_AGO, "updated_at": LONG_AGO})
    again = await rules.put_whole(forged)
    assert (again.created_at, again.updated_at) == (first.created_at, clock.now())
    assert (again.id, again.rule) == (first.id, "be very brief")
    assert await rules.get_rule("send_email", first.id) == again


async def test_what_is_left_out_keeps_its_stored_value(rules):
    first = await rules.put_rule("t", "be brief", priority="critical", source="user_explicit", tags=["a"])
    again = await rules.put_rule("T", "be very brief", id=first.id)
    assert (again.priority, again.source, again.tags) == ("critical", "user_explicit", ["a"])
    assert (await rules.put_rule("t", "be very brief", id=first.id, tags=[])).tags == []


async def test_an_id_of_another_tool_is_refused(rules):
    own = await rules.put_rule("send_email", "be brief", id="mine")
    made = await rules.put_rule("send_email", "be polite")
    for rule_id in (own.id, made.id):
        with pytest.raises(RequestError, match="belongs to tool 'send_email'") as caught:
            await rules.put_rule("slack", "be brief", id=rule_id)
        assert caught.value.field == "id"
    assert await rules.list_rules("slack") == []
    assert len(await rules.list_rules("send_email")) == 2


async def test_the_same_text_is_the_same_rule(rules, clock):
    first = await rules.put_rule("t", "Never email Sarah", priority="critical")
    clock.advance(1)
    again = await rules.put_rule("T", "  never  EMAIL Sarah。", priority="high")
    assert (again.id, again.priority, again.created_at) == (first.id, "high", first.created_at)
    assert again.updated_at == clock.now()
    assert len(await rules.list_rules("t")) == 1
    with_id = await rules.put_rule("t", "never email sarah!", id="other")
    assert with_id.id == first.id


async def test_a_change_that_repeats_another_rule_leaves_one(rules):
    first = await rules.put_rule("t", "be brief", priority="critical")
    second = await rules.put_rule("t", "be polite")
    await rules.put_rule("t", "be brief.", id=second.id)
    (left,) = await rules.list_rules("t")
    assert (left.id, left.priority) == (first.id, "critical")


async def test_a_text_put_again_after_its_rule_was_changed_is_a_new_rule(rules):
    first = await rules.put_rule("t", "be brief")
    await rules.put_rule("t", "be polite", id=first.id)
    second = await rules.put_rule("t", "be brief")
    assert second.id != first.id
    assert {rule.rule for rule in await rules.list_rules("t")} == {"be brief", "be polite"}


async def test_tools_are_told_apart_without_case_and_shown_as_first_written(rules):
    await rules.put_rule(" Send_Email ", "one")
    await rules.put_rule("SEND_EMAIL", "two")
    assert [rule.tool_name for rule in await rules.list_rules("send_email")] == ["Send_Email", "Send_Email"]
    assert await rules.list_tool_names() == ["Send_Email"]


async def test_lone_surrogates_are_replaced(rules):
    assert (await rules.put_rule("t", "never \ud800 send")).rule == "never \ufffd send"


# ---------------------------------------------------------------- reading


async def test_rules_are_listed_by_priority_and_freshness_as_times(rules, clock):
    for text, priority in (("n", "normal"), ("c1", "critical"), ("h", "high"), ("c2", "critical")):
        clock.advance(0.5)  # times with and without a fraction: as texts they would sort wrongly
        await rules.put_rule("t", text, priority=priority)
    assert [rule.rule for rule in await rules.list_rules("t")] == ["c2", "c1", "h", "n"]


async def test_a_delete_takes_only_its_target(rules):
    one, two = await rules.put_rule("t", "one"), await rules.put_rule("t", "two")
    await rules.put_rule("other", "one")
    assert await rules.delete_rule("T", one.id) is True
    assert await rules.delete_rule("t", one.id) is False
    assert await rules.get_rule("t", one.id) is None
    assert [rule.id for rule in await rules.list_rules("t")] == [two.id]
    assert len(await rules.list_rules("other")) == 1


async def test_two_workspaces_never_see_each_other(rules, store, clock):
    other = type(rules)(store, "other", clock=clock)
    mine = await rules.put_rule("t", "one", priority="critical")
    assert await other.list_rules("t") == []
    assert not (await other.rules_for_prompt()).rules
    assert (await other.put_rule("u", "two", id=mine.id)).tool_name == "u"
    assert await other.delete_rule("t", mine.id) is False
    assert len(await rules.list_rules("t")) == 1


async def test_memories_beside_the_rules_are_no_rules(rules, store):
    await store.put("team", "tool-t", "memory/1", {"content": "x"})
    assert await rules.list_tool_names() == []
    assert (await rules.all_rules()) == ([], [])
    rule = await rules.put_rule("t", "one")
    assert await rules.list_rules("t") == [rule]


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize(
    "value",
    ['{"torn', "[]", "7", "{}", '{"id": "x"}', '{"priority": {"a": 1}}', '{"rule": "a", "priority": "critical"}'],
)
async def test_a_damaged_row_never_hides_the_others_and_is_reported(rules, store, caplog, value):
    good = await rules.put_rule("t", "good", priority="critical")
    bad = await rules.put_rule("t", "bad", priority="critical")
    damage(store, f"rule/{bad.id}", value)
    with caplog.at_level(logging.WARNING, "toolmem.rules"):
        assert await rules.list_rules("t") == [good]
    assert bad.id in caplog.text
    pinned = await rules.rules_for_prompt()
    assert pinned.rules == (good,)
    assert [each.key for each in pinned.damaged] == [f"rule/{bad.id}"]
    with pytest.raises(StoreError, match=r"put or delete it|damaged"):
        await rules.get_rule("t", bad.id)
    assert len(await rules.rules_json("t")) == 2


@pytest.mark.parametrize("value", ['{"torn', "{}"])
async def test_a_damaged_row_can_be_put_anew_or_deleted(rules, store, value):
    for text in ("one", "two"):
        await rules.put_rule("t", text, id=text)
        damage(store, f"rule/{text}", value)
    assert (await rules.put_rule("t", "whole", id="one")).id == "one"
    assert await rules.delete_rule("t", "two") is True
    assert [rule.rule for rule in await rules.list_rules("t")] == ["whole"]


async def test_the_raw_list_is_what_is_stored(rules, store):
    rule = await rules.put_rule("t", "one", tags=["x"])
    await store.put("team", "tool-t", "rule/extra", {"anything": [1]})
    assert await rules.rules_json("T") == sorted(
        [rule.model_dump(mode="json"), {"anything": [1]}], key=lambda value: value.get("id", "extra")
    )
    assert json.dumps(await rules.rules_json("t"))


# ---------------------------------------------------------------- capture and tombstones


async def test_capture_raises_a_priority_and_never_lowers_it(rules):
    rule = await rules.put_rule("send_email", "never email Sarah")
    raised = await rules.capture_rule(capture_of("Never email Sarah."))
    assert (raised.id, raised.priority, raised.source) == (rule.id, "critical", "user_explicit")
    kept = await rules.capture_rule(capture_of("never email Sarah", priority="normal"))
    assert (kept.id, kept.priority) == (rule.id, "critical")


async def test_what_the_user_deleted_is_not_captured_again_from_the_same_turn(rules):
    said = Said(by="user", session="s1", turn=2)
    rule = await rules.capture_rule(replace(capture_of("never email Sarah"), said=said))
    await rules.delete_rule("send_email", rule.id)
    assert await rules.capture_rule(replace(capture_of("Never  email Sarah!"), said=said)) is None
    assert await rules.list_rules("send_email") == []
    assert await rules.capture_rule(replace(capture_of("never email Sarah", tool="slack"), said=said)) is not None
    assert await rules.capture_rule(replace(capture_of("never email Bob"), said=said)) is not None


async def test_an_explicit_put_clears_the_tombstone(rules):
    rule = await rules.capture_rule(capture_of("never email Sarah"))
    await rules.delete_rule("send_email", rule.id)
    again = await rules.put_rule("send_email", "never email Sarah", priority="critical")
    assert (await rules.capture_rule(capture_of("never email Sarah"))).id == again.id


async def test_a_rule_with_an_id_of_its_own_is_buried_by_its_text(rules):
    said = Said(by="user", session="s1", turn=2)
    await rules.put_rule("send_email", "never email Sarah", id="mine", said=said)
    await rules.delete_rule("send_email", "mine")
    assert await rules.capture_rule(replace(capture_of("never email Sarah"), said=said)) is None


async def test_tombstones_hold_no_words_of_the_user(rules, store):
    rule = await rules.capture_rule(capture_of("never email Sarah"))
    await rules.delete_rule("send_email", rule.id)
    for namespace in await store.namespaces("team"):
        for record in await store.list("team", namespace):
            assert "Sarah" not in json.dumps(record.value)


# ---------------------------------------------------------------- an embedder that fails


async def test_a_rule_is_kept_where_the_embedder_fails(rules, embedder, caplog, monkeypatch):
    from toolmem.errors import ModelError

    async def fail(texts):
        raise ModelError("no answer", temporary=True)

    monkeypatch.setattr(embedder, "embed", fail)
    rule = await rules.put_rule("t", "never email Sarah", priority="critical")
    assert (await rules.rules_for_prompt()).rules == (rule,)
    assert "no vector" in caplog.text
    assert "Sarah" not in caplog.text


async def test_a_clock_that_goes_back_does_not_turn_times_around(rules, clock):
    rule = await rules.put_rule("t", "one")
    clock._start -= timedelta(days=1)
    again = await rules.put_rule("t", "one")
    assert again.updated_at >= again.created_at == rule.created_at
