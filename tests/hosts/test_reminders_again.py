"""The user's reminders come again with a call: after 30 calls without them, and after a compaction."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.test_loosened import Agent
from toolmem.engine import StoreFile
from toolmem.hosts.receipts import Receipts
from toolmem.providers.tokenizer import estimated_tokens
from toolmem.readers.weight import at_once
from toolmem.rules.reminding import MOST_TOKENS, reminder_of
from toolmem.rules.rule_store import RuleStore

TIDY = "Keep commit messages short and kind"


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Agent(tmp_path)


def put(agent: Agent, tool: str = "Bash", rule: str = TIDY, **further: Any) -> None:
    given = {"source": "user_explicit", "priority": "critical", "effect": "remind", **further}
    with StoreFile(agent.store) as store:
        at_once(RuleStore(store.protocol, clock=store.clock).put_rule(tool, rule, **given))


def call(agent: Agent, tool: str = "Bash", **given: Any) -> str:
    """What the model is told beside a call that has been let through."""
    arguments = given or {"command": "ls"}
    answer = agent.hook("PreToolUse", tool_name=tool, tool_input=arguments)
    assert "permissionDecision" not in answer.get("hookSpecificOutput", {})
    told = {"stdout": "done", "stderr": "", "interrupted": False}
    number = agent._number
    agent.hook("PostToolUse", tool_name=tool, tool_input=arguments, tool_use_id=f"toolu_{number}", tool_response=told)
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def test_a_reminder_comes_with_the_first_call_of_its_tool_after_thirty_without_it(agent: Agent) -> None:
    put(agent)
    agent.begins()
    assert [call(agent) for _ in range(20)] == [""] * 20
    assert [call(agent, "Read", file_path="x") for _ in range(15)] == [""] * 15
    assert TIDY in call(agent)
    assert [call(agent) for _ in range(30)] == [""] * 30
    assert TIDY in call(agent)


def test_a_reminder_comes_after_a_compaction_and_once(agent: Agent) -> None:
    put(agent)
    agent.begins()
    agent.hook("PreCompact", trigger="auto")
    assert TIDY in call(agent)
    assert call(agent) == ""


def test_what_the_session_start_shows_after_a_compaction_does_not_come_again_at_once(agent: Agent) -> None:
    put(agent)
    agent.begins()
    agent.hook("PreCompact", trigger="auto")
    assert TIDY in agent.hook("SessionStart", source="compact")["hookSpecificOutput"]["additionalContext"]
    assert call(agent) == ""


def test_what_the_user_has_just_said_does_not_come_at_once(agent: Agent) -> None:
    agent.begins()
    for _ in range(31):
        call(agent)
    agent.says("remember: commit messages are short and kind")
    assert call(agent) == ""


@pytest.mark.parametrize(
    "further",
    [{"source": "programmatic"}, {"status": "withdrawn"}, {"expires_at": "2020-01-01T00:00:00Z"}],
    ids=["a program's", "withdrawn", "expired"],
)
def test_what_is_no_reminder_of_the_users_that_holds_never_comes(agent: Agent, further: dict[str, Any]) -> None:
    put(agent, **further)
    agent.begins()
    agent.hook("PreCompact", trigger="auto")
    assert call(agent) == ""


def test_a_reminder_of_another_tool_does_not_come(agent: Agent) -> None:
    put(agent, tool="Read")
    agent.begins()
    agent.hook("PreCompact", trigger="auto")
    assert call(agent) == ""
    assert TIDY in call(agent, "Read", file_path="x")


def test_a_call_that_is_stopped_carries_none_and_the_next_one_does(agent: Agent) -> None:
    put(agent)
    agent.begins()
    agent.says("Never push to main.")
    agent.hook("PreCompact", trigger="auto")
    assert agent.push() == "deny"
    assert TIDY in call(agent)


def test_where_no_reminder_is_on_the_tool_nothing_more_is_loaded_or_asked(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.begins()
    agent.hook("PreCompact", trigger="auto")
    monkeypatch.delitem(sys.modules, "toolmem.hosts.reminders_again", raising=False)
    asked: list[str] = []
    monkeypatch.setattr(Receipts, "shown", lambda *_: asked.append("shown"))
    monkeypatch.setattr(Receipts, "call_before", lambda *_: asked.append("call_before"))
    call(agent)
    assert "toolmem.hosts.reminders_again" not in sys.modules
    assert asked == []


@pytest.mark.parametrize("sentence", ["be kind and " * 200, "提交信息要简短友善，" * 50, "x" * 3000, "a"])
@pytest.mark.parametrize("many", [1, 40])
def test_it_is_sixty_tokens_at_most_and_never_nothing(sentence: str, many: int) -> None:
    text, told = reminder_of([sentence] * many, estimated_tokens)
    assert estimated_tokens(text) <= MOST_TOKENS
    assert 1 <= told <= many
    assert sentence[:1] in text


def test_those_that_do_not_fit_come_with_the_next_calls(agent: Agent) -> None:
    sentences = [f"In matters of kind {each} be brief, be kind and be sure of what you say to others" for each in "abc"]
    for sentence in sentences:
        put(agent, rule=sentence)
    agent.begins()
    agent.hook("PreCompact", trigger="auto")
    told = [call(agent) for _ in range(4)]
    assert sorted(each for each in sentences for text in told if each in text) == sentences
    assert told[-1] == ""
