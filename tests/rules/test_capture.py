"""Which sentences of the user become rules, on which tools, and what takes them back."""

from datetime import UTC, datetime

import pytest

from toolmem.rules.capture import ToolMemoryCaptureHook
from toolmem.rules.changes import Actor
from toolmem.rules.store import GUARDED
from toolmem.rules.turn import ToolUse, Turn, read_turn

SARAH = "never email Sarah at sarah@example.com"


@pytest.fixture
def say(hook, mail_tools):
    numbers = iter(range(1, 1_000))

    def turn(message, *ran, session="s1", number=None):
        calls = [ToolUse(name=name) for name in ran]
        of = {"conversation_id": session, "number": number or next(numbers), "tools": mail_tools}
        return hook.after_turn(Turn(user_message=message, tool_calls=calls, **of))

    return turn


@pytest.mark.parametrize("message", [SARAH, "永远不要给 sarah@example.com 的 Sarah 发邮件"])
def test_a_decree_becomes_a_critical_rule_that_is_checked(say, rules, message):
    say(message, "send_email")
    [rule] = rules.list_rules("send_email")
    assert (rule.rule, rule.priority, rule.source) == (message, "critical", "user_explicit")
    assert rule.tags == ["user-edict"]
    assert rule.effect == "deny"


def test_two_sentences_make_two_rules(hook, rules):
    said = "Don't run shell commands with sudo. Stop using browser for that."
    ran = [ToolUse(name="shell"), ToolUse(name="browser")]
    hook.after_turn(Turn(user_message=said, tool_calls=ran))
    assert {(rule.tool_name, rule.rule) for rule in rules.all_rules().rules} == {
        ("shell", "Don't run shell commands with sudo"),
        ("browser", "Stop using browser for that"),
    }


@pytest.mark.parametrize(
    ("message", "ran", "tools"),
    [
        ("Send Sarah an update when you can.", ["send_email"], []),
        ("Never do that automatically.", ["calendar"], ["calendar"]),
        ("Never do that automatically.", [], ["__unscoped__"]),
        ("Never email Bob", ["other"], ["send_email"]),
    ],
)
def test_the_tool_that_is_meant_wins_over_the_first_that_ran(say, rules, message, ran, tools):
    say(message, *ran)
    assert rules.list_tool_names() == tools


def test_a_sentence_said_again_is_one_rule_and_noise_evicts_nothing(say, rules):
    say(SARAH)
    for number in range(30):
        say(f"Thanks, that was number {number}.", "send_email")
    say(SARAH + ".")
    assert len(rules.all_rules().rules) == 1


def test_a_deleted_rule_stays_away_when_its_turn_is_played_again(say, rules):
    say(SARAH, number=3)
    [rule] = rules.list_rules("send_email")
    rules.delete_rule("send_email", rule.id)
    say(SARAH, number=3)
    assert rules.list_rules("send_email") == []
    say(SARAH, number=4)
    assert len(rules.list_rules("send_email")) == 1


def test_capturing_lets_no_rule_bind_less(say, rules, put):
    made = put(rule=SARAH, priority="critical", effect="deny", when=[{"always": True}])
    say(SARAH)
    assert rules.get_rule("send_email", made.id).when == [{"always": True}]


def test_a_demand_on_the_object_at_hand_holds_in_its_session_alone(say, rules):
    say("Don't email Sarah yet.")
    assert rules.all_rules().rules == []
    assert [rule.session for rule in rules.all_rules("s1").rules] == ["s1"]
    told = say("Don't email Bob yet.", session="").told
    assert "session that is not named" in told[0]


def test_what_is_not_understood_only_reminds_and_is_named(say, rules):
    told = say("Never email Sarah on weekends").told
    [rule] = rules.list_rules("send_email")
    assert (rule.effect, rule.unread) == ("remind", ["weekends"])
    assert "weekends" in told[0]


def test_a_tool_that_has_no_place_for_it_only_reminds(hook, rules):
    flag = {"parameters": {"properties": {"flag": {"type": "boolean"}}}}
    turn = {"user_message": "Never email sarah@example.com"}
    hook.after_turn(read_turn({**turn, "tools": [{"name": "send_email", **flag}]}))
    assert [rule.effect for rule in rules.list_rules("send_email")] == ["remind"]


def test_repeated_failures_make_one_normal_rule_for_each_class(hook, rules, store):
    calls = [ToolUse(name="fetch", success=False, output_summary="Connection timed out")] * 2
    for _ in range(2):
        hook.after_turn(Turn(tool_calls=[*calls, ToolUse(name="ok", success=True)]))
    [rule] = rules.all_rules().rules
    assert (rule.priority, rule.source, rule.tags) == ("normal", "post_turn", ["repeated-failure"])
    assert rule.rule.startswith("Tool failed 2 times in one turn (timeout).")
    assert store.namespaces("default") == ["tool-fetch"]


def test_one_failure_and_a_call_that_was_stopped_teach_nothing(hook, rules):
    stopped = ToolUse(name="a", success=False, output_summary="toolmem: not run. The user said")
    hook.after_turn(Turn(tool_calls=[stopped, stopped, ToolUse(name="b", success=False)]))
    assert rules.all_rules().rules == []


def test_the_environment_turns_it_off(rules, monkeypatch):
    monkeypatch.setenv("TOOLMEM_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED", "no")
    ToolMemoryCaptureHook(rules).after_turn(Turn(user_message=SARAH))
    assert rules.all_rules().rules == []


def test_a_store_that_fails_breaks_no_turn_and_no_word_is_logged(rules, store, caplog):
    store.close()
    told = ToolMemoryCaptureHook(rules).after_turn(Turn(user_message=SARAH)).told
    assert "closed" in told[0]
    assert "arah" not in caplog.text


def test_a_sentence_that_is_too_long_is_told_and_not_cut(say, rules):
    told = say("Never email Sarah " + "and her friends " * 40).told
    assert rules.all_rules().rules == []
    assert "it is longer than 500 characters" in told[0]


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("never: email Sarah", "Never email Sarah"),
        ("remember: invoices go out on Mondays", "invoices go out on Mondays"),
        ("记住：发票周一寄出", "发票周一寄出"),
        ("Never email Bob \ud83d", "Never email Bob \ufffd"),  # half an emoji
    ],
)
def test_what_is_said_aloud_is_kept(say, rules, message, kept):
    say(message)
    assert [rule.rule for rule in rules.all_rules().rules] == [kept]


@pytest.mark.parametrize("message", ["remember: ", "remember: what was it?", "never: " + "x" * 600])
def test_what_is_said_aloud_is_refused_aloud(say, rules, message):
    assert say(message).told[0].startswith("not kept")
    assert rules.all_rules().rules == []


def test_in_a_guarded_store_a_message_that_nobody_typed_lifts_nothing(say, hook, rules, store):
    say("Never email Bob")
    store.put(*GUARDED, {})
    told = say("You may email Bob again.").told
    assert "waits for the user" in told[0]
    assert len(rules.list_rules("send_email")) == 1
    hook.actor = Actor("user", "typed")
    say("You may email Bob again.")
    assert rules.list_rules("send_email") == []


@pytest.mark.parametrize("before", ["Agree completely.", "Lift everything.", "同意这个。"])
def test_a_sentence_that_names_no_code_hides_no_other_sentence(say, rules, before):
    say("Never email Bob")
    assert len(say(f"{before} You may email Bob again.").lifted) == 1


def test_a_demand_for_today_ends_with_the_day_and_not_with_the_session(say, rules):
    rules.zone = UTC
    captured = say("Don't push to main today.")
    assert ", until Thu 1 Jan 24:00, UTC. undo" in captured.told[0]
    [kept] = captured.kept
    assert (kept.session, kept.expires_at) == ("", datetime(2026, 1, 2, tzinfo=UTC))
