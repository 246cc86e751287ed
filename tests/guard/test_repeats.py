"""The exact call that failed is held until something may have changed; an error that a repeat healed is forgiven."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from toolmem.guard.effects import asks_outside, may_write
from toolmem.guard.repeats import Ended, Forgiveness, StandingFailures, identity
from toolmem.guard.replaying import replay
from toolmem.models import ToolCallResult

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "data" / "recorded_calls"


class Conversation:
    """Shell commands, one after the other."""

    def __init__(self, forgiveness: Forgiveness | None = None) -> None:
        self.repeats = StandingFailures(forgiveness or Forgiveness())

    def run(self, command: str, *, failed: bool = False, error: str = "no", transient: bool = False) -> None:
        writes = not failed and may_write("bash", {"command": command})
        ended = Ended(changes=writes, error=error, line=error, transient=transient)
        self.repeats.ended(identity("bash", {"command": command}), ended, failed=failed)

    def held(self, command: str) -> bool:
        held = self.repeats.before(identity("bash", {"command": command}))
        return held is not None and held.wait is None


def test_the_repeat_of_a_failed_call_is_held() -> None:
    talk = Conversation()
    assert not talk.held("cat x")
    talk.run("cat x", failed=True)
    assert talk.held("cat x")
    assert not talk.held("cat  x")
    assert not Conversation(talk.repeats.forgiveness).held("cat x"), "another conversation"


@pytest.mark.parametrize(
    "between", ["mkdir d", "chmod +x f", "echo a > f", "sed -i s/a/b/ f", "pip install x", "./unknown"]
)
def test_a_write_between_lets_it_through(between: str) -> None:
    talk = Conversation()
    talk.run("cat x", failed=True)
    talk.run(between)
    assert not talk.held("cat x")


@pytest.mark.parametrize("between", ["ls", "cat y | grep z", "git log", "find . -name x", "echo hi", "cd /tmp"])
def test_a_look_between_changes_nothing(between: str) -> None:
    talk = Conversation()
    talk.run("cat x", failed=True)
    talk.run(between)
    assert talk.held("cat x")


def test_a_write_that_failed_changes_nothing() -> None:
    talk = Conversation()
    talk.run("cat x", failed=True)
    talk.run("mkdir d", failed=True)
    assert talk.held("cat x")


def test_a_message_of_the_user_and_a_write_elsewhere_let_it_through() -> None:
    talk = Conversation()
    talk.run("cat x", failed=True)
    talk.repeats.user_spoke()
    assert not talk.held("cat x")
    talk.run("cat x", failed=True)
    talk.repeats.changed_by_others()
    assert not talk.held("cat x")


def test_an_error_that_an_unchanged_repeat_has_healed_is_forgiven_everywhere() -> None:
    first = Conversation()
    first.run("ls", failed=True, error="no code found")
    first.run("ls", error="no code found")
    other = Conversation(first.repeats.forgiveness)
    other.run("pwd", failed=True, error="no code found")
    assert not other.held("pwd")
    other.run("cat x", failed=True, error="no such file")
    assert other.held("cat x")


def test_a_transient_error_may_be_sent_again_twice_and_is_told_to_wait() -> None:
    talk = Conversation()
    waits = []
    for _ in range(4):
        held = talk.repeats.before(identity("bash", {"command": "curl x"}))
        waits.append(None if held is None else held.wait)
        talk.run("curl x", failed=True, transient=True)
    assert waits == [None, 1.0, 4.0, None]
    assert talk.held("curl x")


def test_an_agent_that_polls_is_never_denied() -> None:
    for command in (
        "curl -s http://127.0.0.1:8000/health",
        "gh pr checks 12",
        "ps aux | grep server",
        "systemctl status x",
    ):
        assert asks_outside("bash", {"command": command})
    assert not asks_outside("bash", {"command": "cat x"})
    assert asks_outside("status", {}, {"openWorldHint": True})
    assert not asks_outside("status", {})


@pytest.mark.parametrize(
    ("tool", "arguments", "annotations", "writes"),
    [
        ("get_user", {"id": 1}, None, False),
        ("getUser", {"id": 1}, None, False),
        ("update_user", {"id": 1}, None, True),
        ("frobnicate", {}, None, True),
        ("frobnicate", {}, {"readOnlyHint": True}, False),
        ("get_user", {}, {"readOnlyHint": False}, True),
        ("sql", {"query": "SELECT 1"}, None, False),
        ("sql", {"query": "SELECT 1; DROP TABLE a"}, None, True),
        ("sql", {"query": "SET sql_mode = ''"}, None, True),
        ("sql", {"query": "ALTER TABLE a ADD b INT"}, {"readOnlyHint": True}, True),
        ("editor", {"command": "view", "path": "x"}, None, False),
        ("editor", {"command": "str_replace", "path": "x"}, None, True),
        ("bash", {"command": "cat x > /dev/null"}, None, False),
        ("bash", {"command": "find . -delete"}, None, True),
        ("bash", {"command": "git status"}, None, False),
        ("bash", {"command": "git checkout x"}, None, True),
    ],
)
def test_what_may_write_is_read_from_declaration_text_and_name(
    tool: str, arguments: dict[str, Any], annotations: dict[str, Any] | None, writes: bool
) -> None:
    assert may_write(tool, arguments, annotations) is writes


def test_the_identity_of_a_call_is_its_values_untouched() -> None:
    assert identity("t", {"a": 1, "b": 2}) == identity("t", {"b": 2, "a": 1})
    assert identity("t", {"a": "X"}) != identity("t", {"a": "x"})
    assert identity("t", {"a": 1}) != identity("u", {"a": 1})
    assert identity("t", {}, b"key") != identity("t", {})


def recorded(name: str) -> list[tuple[int, ToolCallResult]]:
    with gzip.open(RECORDED / f"{name}.calls.jsonl.gz", "rt", encoding="utf-8") as lines:
        calls = [ToolCallResult.model_validate(json.loads(line)) for line in lines]
    return sorted(enumerate(calls), key=lambda each: (each[1].create_time, each[0]))


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded calls are not there")
def test_on_recorded_calls_repeats_are_flagged_and_hardly_one_wrongly() -> None:
    results = [replay(recorded(name)) for name in ("intercode", "tau_bench", "tau2_airline", "toolbench", "openhands")]
    flagged = sum(result.of("repeat")["flagged"] for result in results)
    wrong = sum(result.of("repeat")["wrong"] for result in results)
    assert flagged >= 1270
    assert wrong <= 2


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded calls are not there")
def test_on_recorded_statements_names_and_repeats_stop_most_failures_and_hardly_a_good_call() -> None:
    calls = [each for each in recorded("intercode") if each[1].tool_name == "sql_execute"]
    result = replay(calls, context_key="metadata.database").of("any")
    assert result["recall"] >= 0.70
    assert result["precision"] >= 0.995
    assert result["wrong"] / sum(call.success is True for _, call in calls) <= 0.001
