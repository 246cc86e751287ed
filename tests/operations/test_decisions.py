"""What a person decides about rules, and what is said to who decides late."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from toolmem import ToolMem
from toolmem.errors import Conflict, RequestError
from toolmem.rules.changes import Actor, rule_digest
from toolmem.rules.store import GUARDED

MAIN = {"effect": "deny", "when": [{"command": "^git push", "word": "main"}]}
PUSH = {"command": "git push origin main"}
FRIDAY = datetime(2099, 1, 2, tzinfo=UTC)


@pytest.fixture
def rule(memory):
    return memory.tool_rule_put("@shell", "Never push to main", **MAIN)


@pytest.fixture
def as_user(memory):
    return memory.acting_as(Actor("user", "typed"))


def ask_to_delete(memory, rule):
    memory.acting_as(Actor("agent")).tool_rule_delete(rule.tool_name, rule.id)
    return memory.tool_rules(state="waiting")[0]


def test_of_two_people_who_decide_at_once_one_decides_and_the_other_is_told(memory, rule, path):
    seen = ask_to_delete(memory, rule).digest
    began, told = threading.Barrier(2), []

    def decide(review):
        with ToolMem(path) as own:
            began.wait()
            try:
                own.tool_rule_review(rule.id, review, seen=seen)
                told.append(review)
            except (Conflict, RequestError) as error:
                told.append(str(error))

    both = [threading.Thread(target=decide, args=(each,)) for each in ("approve", "reject")]
    [each.start() for each in both]
    [each.join() for each in both]
    (done,) = {"approve", "reject"} & set(told)
    (error,) = set(told) - {done}
    assert "read it again" in error or "there is no rule" in error
    assert bool(memory.tool_rules()) == (done == "reject")


def test_what_was_changed_since_it_was_read_is_not_decided_on(memory, rule):
    seen = ask_to_delete(memory, rule).digest
    memory.tool_rule_put("@shell", rule.rule, id=rule.id, priority="high")
    with pytest.raises(Conflict, match="the rule was changed since you read it: read it again"):
        memory.tool_rule_review(rule.id, "approve", seen=seen)
    (now,) = memory.tool_rules(state="waiting")
    assert now.digest == rule_digest(now.rule) != seen
    memory.tool_rule_review(rule.id, "reject", seen=now.digest)
    with pytest.raises(Conflict, match="read it again"):  # nothing is asked any more
        memory.tool_rule_review(rule.id, "approve", seen=now.digest)
    memory.tool_rule_review(rule.id, "approve", seen=ask_to_delete(memory, rule).digest)
    assert memory.tool_rules() == []


def test_rules_are_listed_by_what_they_stopped(memory, rule):
    memory.tool_rule_put("send_email", "Never email Bob")
    memory.acting_as(Actor("agent")).tool_rule_put("a", "Ask before a", effect="remind")
    for _ in range(2):
        memory.check_tool_call("Bash", PUSH, conversation_id="c")
    first, *others = memory.tool_rules()
    assert (first.rule.id, first.state, first.stopped) == (rule.id, "holds", 2)
    assert first.last_stopped == memory.decisions()[-1].time
    assert [each.rule.tool_name for each in others] == ["a", "send_email"]
    assert [each.state for each in others] == ["waiting", "holds"]
    assert [each.rule.tool_name for each in memory.tool_rules(start=1, limit=1)] == ["a"]
    assert [each.rule.id for each in memory.tool_rules(text="PUSH", effect="deny")] == [rule.id]
    assert memory.tool_rules(text="@SHELL", state="ended") == []
    ask_to_delete(memory, rule)
    waiting = memory.tool_rules(state="waiting")
    assert [(each.rule.tool_name, each.state) for each in waiting] == [
        ("@shell", "holds"),
        ("a", "waiting"),
    ]
    memory.tool_rule_delete("@shell", rule.id)
    assert len(memory.tool_rules()) == 2


def test_a_withdrawn_rule_keeps_its_text_and_is_restored_with_its_end(memory, rule):
    memory.tool_rule_put("@shell", rule.rule, id=rule.id, expires_at=FRIDAY)
    memory.tool_rule_review(rule.id, "withdraw")
    assert memory.check_tool_call("Bash", PUSH).may_run
    assert [each.rule.rule for each in memory.tool_rules(state="ended")] == [rule.rule]
    assert memory.tool_rule_review(rule.id, "restore").expires_at == FRIDAY
    memory.tool_rule_put("@shell", rule.rule, id=rule.id, expires_at="never")
    memory.tool_rule_review(rule.id, "withdraw")
    assert memory.tool_rule_review(rule.id, "restore").expires_at is None
    assert memory.check_tool_call("Bash", PUSH).action == "deny"


def test_a_rule_that_ended_is_restored_without_an_end(memory, rule):
    past = datetime.now(UTC) - timedelta(days=1)
    memory.tool_rule_put("@shell", rule.rule, id=rule.id, expires_at=past)
    assert memory.tool_rule_review(rule.id, "restore").expires_at is None


def test_a_sentence_that_was_said_again_meanwhile_is_not_restored_as_a_second_rule(memory, rule):
    memory.tool_rule_review(rule.id, "withdraw")
    memory.tool_rule_put("@shell", "never push to main.", id="mine", **MAIN)
    with pytest.raises(RequestError, match="'mine' holds, and says the same"):
        memory.tool_rule_review(rule.id, "restore")
    assert len(memory.tool_rule_list("@shell")) == 1


def test_what_was_withdrawn_holds_once_it_is_said_again(memory, rule):
    memory.tool_rule_review(rule.id, "withdraw")
    assert memory.tool_rule_put("@shell", "never push to main.").id == rule.id
    assert memory.check_tool_call("Bash", PUSH).action == "deny"


def test_a_decision_that_does_not_fit_the_state_of_a_rule_is_refused(memory, rule):
    for review in ("approve", "reject", "restore"):
        with pytest.raises(RequestError, match="^id: "):
            memory.tool_rule_review(rule.id, review)
    with pytest.raises(RequestError, match="there is no rule"):
        memory.tool_rule_review(rule.id[:8], "withdraw")
    memory.tool_rule_review(rule.id, "withdraw")
    with pytest.raises(RequestError, match="has ended already"):
        memory.tool_rule_review(rule.id, "withdraw")


def test_in_a_guarded_store_a_program_approves_nothing_and_its_withdrawal_waits(memory, as_user):
    rule = as_user.tool_rule_put("@shell", "Never push to main", **MAIN)
    memory.services.store().put(*GUARDED, {})
    assert memory.tool_rule_review(rule.id, "withdraw").request.what == "withdrawn"
    assert memory.tool_rule_review(rule.id, "approve").request.what == "withdrawn"
    agent = memory.acting_as(Actor("agent"))
    asked = agent.tool_rule_put("send_email", "Always add our slogan", priority="critical")
    assert memory.tool_rule_review(asked.id, "approve").status == "request"
    assert "slogan" not in memory.prompt()
    assert as_user.tool_rule_review(asked.id, "approve").is_users
    as_user.tool_rule_review(rule.id, "approve")
    assert memory.check_tool_call("Bash", PUSH).may_run
    as_user.tool_rule_review(rule.id, "restore")
    assert not memory.check_tool_call("Bash", PUSH).may_run


def test_a_new_end_is_a_time_or_never(memory, rule):
    with pytest.raises(RequestError, match="expires_at: expected a time with its zone"):
        memory.tool_rule_put("@shell", rule.rule, expires_at="friday")


def test_a_decision_that_the_user_finds_wrong_stays_marked_and_changes_nothing(memory):
    held = memory.tool_rule_put("t", "Ask first", effect="ask", when=[{"always": True}])
    asked = memory.check_tool_call("t", {"a": 1}, conversation_id="c")
    assert memory.mark_decision(asked.id).is_wrong
    memory.tool_call_ended(asked, {"a": 1}, output="ok", success=True)
    (kept,) = memory.decisions(rule_id=held.id, ids=[asked.id])
    assert (kept.outcome, kept.is_wrong) == ("worked", True)
    assert memory.check_tool_call("t", {"a": 1}).action == "ask"
    assert not memory.mark_decision(asked.id, wrong=False).is_wrong
    with pytest.raises(RequestError, match="there is no decision 'x'"):
        memory.mark_decision("x")


def test_decisions_are_chosen_by_action_and_source_and_make_a_frame(memory, rule):
    memory.tool_rule_put("t", "Ask first", effect="ask", when=[{"always": True}])
    for tool, arguments in (("Bash", PUSH), ("t", {"a": 1}), ("Bash", PUSH)):
        memory.check_tool_call(tool, arguments)
    assert [each.tool_name for each in memory.decisions(action="ask")] == ["t"]
    assert len(memory.decisions(kind="rule", rule_id=rule.id)) == 2
    assert memory.decisions(kind="repeat") == []
    assert [each.tool_name for each in memory.decisions(kind="rule", limit=2)] == ["t", "Bash"]
    frame = memory.decisions().to_frame()
    assert list(frame["action"]) == ["deny", "ask", "deny"]
    assert frame["call"][0] == '{"command": "git push origin main"}'
