"""A conversation under guard: what is stopped, what a force lets through, and when a source stops trusting itself."""

from __future__ import annotations

from typing import Any

import pytest

from toolmem.guard.conversation import ConversationGuard, Watch
from toolmem.guard.decision import CheckedRule
from toolmem.guard.known_names import KnownNames
from toolmem.light_models import ToolSchema

ENFORCE: Any = {"rules": "enforce", "repeats": "enforce", "names": "enforce", "schema": "enforce"}
NO_MAIL = {"send_email": [CheckedRule("r", "never email Sarah", "deny", True)]}


def run(guard: ConversationGuard, command: str, *, failed: bool = True, force: bool | None = False) -> str:
    checked = guard.before("bash", {"command": command}, force=force)
    if not checked.stops:
        guard.after(checked, failed=failed, output="Error: no such file" if failed else "ok", call_id="c")
    return checked.decision.action


def test_a_rule_stops_the_call_and_says_which_sentence_did() -> None:
    decision = ConversationGuard(NO_MAIL).before("send_email", {"to": "sarah@example.com"}).decision
    assert decision.action == "deny"
    assert decision.reason.startswith("toolmem: not run. The user said: never email Sarah.")
    assert [source.rule_id for source in decision.sources] == ["r"]


def test_repeats_advise_until_a_mode_makes_them_stop_calls() -> None:
    guard = ConversationGuard()
    assert [run(guard, "cat x") for _ in range(2)] == ["allow", "advise"]
    guard = ConversationGuard(modes=ENFORCE)
    assert [run(guard, "cat x") for _ in range(3)] == ["allow", "deny", "deny"]
    run(guard, "touch x", failed=False)
    assert run(guard, "cat x") == "allow"


def test_a_forced_repeat_runs_and_a_rule_is_never_forced() -> None:
    guard = ConversationGuard(NO_MAIL, modes=ENFORCE)
    run(guard, "cat x")
    assert run(guard, "cat x", force=True) == "allow"
    assert guard.before("send_email", {}, force=True).stops


def test_where_a_host_cannot_say_force_the_unchanged_repeat_of_a_denied_call_runs_once() -> None:
    guard = ConversationGuard(modes=ENFORCE)
    assert [run(guard, "cat x", force=None) for _ in range(5)] == ["allow", "deny", "allow", "deny", "deny"]
    run(guard, "touch x", failed=False)
    assert [run(guard, "cat x", force=None) for _ in range(3)] == ["allow", "deny", "allow"]


def test_a_source_whose_forced_flags_worked_too_often_only_advises() -> None:
    watch = Watch()
    for n in range(5):
        guard = ConversationGuard(modes=ENFORCE, watch=watch)
        run(guard, f"cat {n}")
        run(guard, f"cat {n}", failed=n > 0, force=True)
    guard = ConversationGuard(modes=ENFORCE, watch=watch)
    run(guard, "cat x")
    assert run(guard, "cat x") == "advise"


def test_four_forced_flags_are_too_few_to_doubt_a_source() -> None:
    watch = Watch()
    watch.forced["repeat"], watch.worked["repeat"] = 4, 4
    assert not watch.doubts("repeat")
    watch.forced["repeat"], watch.worked["repeat"] = 100, 5
    assert not watch.doubts("repeat")


@pytest.mark.parametrize("mode", ["off", "shadow"])
def test_what_is_switched_off_or_only_watched_stops_nothing(mode: Any) -> None:
    guard = ConversationGuard(NO_MAIL, modes={"rules": mode, "repeats": mode})
    decision = guard.before("send_email", {}).decision
    assert (decision.action, decision.reason) == ("allow", "")
    assert bool(decision.sources) is (mode == "shadow")


def test_names_and_schemas_are_sources_of_their_own() -> None:
    names = KnownNames()
    names.learn("SELECT * FROM t", "no such table: t", failed=True)
    tool = ToolSchema(name="sql", parameters={"type": "object"})
    guard = ConversationGuard(tools=[tool], names=names, problems=lambda given, schema: ["max_rows: no such parameter"])
    decision = guard.before("sql", {"query": "SELECT a FROM t"}).decision
    assert decision.action == "advise"
    assert {source.kind for source in decision.sources} == {"known_name", "schema"}


def test_a_message_of_the_user_lets_the_repeat_through_and_an_unknown_end_teaches_nothing() -> None:
    guard = ConversationGuard(modes=ENFORCE)
    run(guard, "cat x")
    guard.user_spoke()
    assert run(guard, "cat x") == "allow"
    other = ConversationGuard(modes=ENFORCE)
    other.after(other.before("bash", {"command": "cat x"}), failed=None, output="Error")
    assert run(other, "cat x") == "allow"


def test_an_agent_that_polls_and_a_user_who_edits_between_turns_are_never_denied() -> None:
    guard = ConversationGuard(modes=ENFORCE)
    polls = ["curl -s http://127.0.0.1:8000/health", "gh pr checks 12", "docker ps", "ps aux | grep server"]
    assert "deny" not in {run(guard, command) for command in polls for _ in range(6)}
    for _ in range(6):
        assert run(guard, "pytest -q") == "allow"
        guard.user_spoke()


def test_arguments_that_are_no_object_are_checked_too() -> None:
    guard = ConversationGuard({"": [CheckedRule("r", "never", "deny", True)]})
    for arguments in ("text", ["list"], None, 3):
        assert guard.before("any", arguments).stops


def test_a_call_that_did_not_run_is_no_failure_to_repeat() -> None:
    guard = ConversationGuard(modes=ENFORCE)
    checked = guard.before("bash", {"command": "cat x"})
    guard.after(checked, failed=True, output="Command blocked by PreToolUse hook: toolmem: not run. No.")
    assert run(guard, "cat x") == "allow"
