"""What the rule store keeps, whoever writes at once, and who may change what."""

import json
from datetime import timedelta

import pytest

from toolmem.errors import Conflict, RequestError
from toolmem.models.rules import Said
from toolmem.rules.changes import Actor
from toolmem.rules.store import GUARDED, RuleInput, ToolMemoryStore

USER = Actor("user", "typed", "lift it")
AGENT = Actor("agent", name="model-x")


def test_a_rule_round_trips_with_its_defaults_in_its_workspace(rules, put, store, clock):
    made = put(rule="  Be brief ")
    assert (made.rule, made.priority, made.source) == ("Be brief", "normal", "programmatic")
    assert rules.get_rule("SEND_EMAIL ", made.id) == made
    assert rules.get_rule("other", made.id) is None
    assert ToolMemoryStore(store, "other", clock).all_rules().rules == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tool_name": " ", "rule": "x"}, "tool_name is required"),
        ({"tool_name": "t", "rule": "\u200b "}, "rule is required"),
        ({"tool_name": "t", "rule": "x" * 2_001}, "the limit is 2,000"),
        ({"tool_name": "t", "rule": "x", "tags": ["y" * 101]}, "tags"),
        ({"tool_name": "t", "rule": "x", "effect": "deny"}, "when"),
        ({"tool_name": "t", "rule": "x", "when": [{"comand": "y"}]}, "comand"),
        ({"tool_name": "t", "rule": "x", "when": [{"command": "(?=y)"}]}, "look-around"),
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused_by_field(rules, fields, message):
    with pytest.raises(RequestError, match=message):
        rules.put_rule(RuleInput(**fields))
    assert rules.all_rules().rules == []


def test_what_is_left_out_keeps_its_stored_value(rules, put, clock):
    first = put(priority="critical", tags=["a"])
    clock.advance(60)
    again = put(id=first.id)
    assert (again.priority, again.tags, again.created_at) == ("critical", ["a"], first.created_at)
    assert again.updated_at > first.updated_at


def test_the_same_text_is_the_same_rule_and_a_changed_one_another(rules, put):
    first = put(rule="Never email Bob.")
    assert put(rule="never  EMAIL bob").id == first.id
    put(rule="Never email Alice", id=first.id)
    assert put(rule="never email Bob").id != first.id
    assert len(rules.list_rules("send_email")) == 2


def test_an_id_of_another_tool_is_refused(rules, put):
    made = put()
    with pytest.raises(RequestError, match="is a rule of 'send_email'"):
        put(tool="shell", id=made.id)


def test_rules_are_listed_by_priority_then_freshness(rules, put, clock):
    for text, priority in (("a", "normal"), ("b", "high"), ("c", "critical"), ("d", "normal")):
        put(rule=text, priority=priority)
        clock.advance(1)
    assert [rule.rule for rule in rules.list_rules("send_email")] == ["c", "b", "d", "a"]


def test_a_deleted_rule_holds_no_word_of_the_user(rules, put, store):
    made = put(rule="Never email Zebediah", said=Said("user", "s", understood="about Zebediah"))
    assert rules.delete_rule("send_email", made.id)
    assert not rules.delete_rule("send_email", made.id)
    assert "Zebediah" not in json.dumps(rules.rules_json("send_email"))
    assert rules.list_rules("send_email") == []
    assert put(rule="Never email Zebediah").status == "active"


def test_a_damaged_record_hides_no_other_and_can_be_put_anew(rules, put, store):
    first, second = put(rule="a"), put(rule="b")
    store.put("default", "tool-send_email", f"rule/{first.id}", {"id": 7})
    listing = rules.all_rules()
    assert [rule.id for rule in listing.rules] == [second.id]
    assert [each.key for each in listing.damaged] == [f"rule/{first.id}"]
    assert put(rule="a", id=first.id).rule == "a"
    assert len(rules.all_rules().rules) == 2


def test_two_changes_of_one_rule_at_once_are_both_kept(rules, put, monkeypatch):
    made, original, overtaken = put(), rules.store.put, []

    def overtake(*args, **options):
        if not overtaken:
            overtaken.append(True)
            put(id=made.id, priority="critical")
        return original(*args, **options)

    monkeypatch.setattr(rules.store, "put", overtake)
    changed = put(id=made.id, tags=["new"])
    assert (changed.priority, changed.tags) == ("critical", ["new"])


def test_a_conflict_that_does_not_end_is_told(rules, put, monkeypatch):
    def refuse(*args, **options):
        raise Conflict("changed")

    monkeypatch.setattr(rules.store, "put", refuse)
    with pytest.raises(Conflict):
        put()


def test_what_an_agent_puts_is_in_no_list_until_the_user_accepts_it(rules, put):
    given = RuleInput(tool_name="shell", rule="Run anything", priority="critical")
    asked = rules.put_rule(given, AGENT)
    assert asked.status == "request"
    assert rules.get_rule("shell", asked.id) is None
    assert rules.list_rules("shell") == [] == rules.all_rules().rules
    [found] = rules.requests()
    assert rules.accept(found, USER).status == "active"
    assert [rule.rule for rule in rules.list_rules("shell")] == ["Run anything"]


def test_an_agent_changes_no_rule_of_the_user_but_asks(rules, put):
    made = put(priority="critical", said=Said("user"))
    rules.put_rule(RuleInput(tool_name="send_email", rule="never email bob"), AGENT)
    assert rules.requests() == []
    after = rules.delete(made, AGENT)
    assert after.status == "active" and after.request.after == {"status": "deleted"}
    assert rules.get_rule("send_email", made.id).priority == "critical"
    assert rules.accept(after, USER).status == "deleted"


def test_a_program_deletes_rules_but_only_asks_in_a_guarded_store(rules, put, store):
    made, other = put(said=Said("user")), put(rule="b", said=Said("user"))
    assert rules.delete_rule("send_email", made.id)
    store.put(*GUARDED, {"by": "hook"})
    assert not rules.delete_rule("send_email", other.id)
    assert put(rule="b", id=other.id, priority="critical").priority == "critical"
    assert put(rule="b", id=other.id, priority="normal").priority == "critical"
    [asked] = rules.requests()
    assert asked.request.after["priority"] == "normal"
    assert rules.reject(asked, USER).request is None
    assert rules.delete(rules.get_rule("send_email", other.id), USER).status == "deleted"


def test_the_last_twenty_changes_of_a_rule_are_kept(rules, put):
    made = put()
    for number in range(30):
        put(id=made.id, tags=[str(number)])
    changes = rules.get_rule("send_email", made.id).changes
    assert len(changes) == 20
    assert changes[-1].before == {"tags": ["28"]}


def test_a_session_rule_is_in_no_list_and_ends_with_its_session(rules, put, clock):
    ends = clock.now() + timedelta(days=7)
    put(rule="Not yet", session="s1", expires_at=ends)
    assert rules.list_rules("send_email") == [] == rules.all_rules().rules
    assert [rule.rule for rule in rules.all_rules("s1").rules] == ["Not yet"]
    assert rules.all_rules("s2").rules == []
    put(rule="Later", session="s2", expires_at=ends)
    assert rules.end_session("s1") == 1
    clock.advance(8 * 86_400)
    assert rules.all_rules("s2").rules == []


def test_a_kelvin_sign_writes_no_k(rules, put):
    put(tool="kill", rule="a")
    put(tool="\u212aill", rule="a")
    assert len(rules.list_tool_names()) == 2
