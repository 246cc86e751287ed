"""At a turn's end the model is asked once to note what no call is checked against; the status line tells of both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.test_loosened import Agent
from toolmem.engine import StoreFile
from toolmem.hosts.host import host_of
from toolmem.readers.weight import at_once
from toolmem.rules.noted_demands import DemandContext, note_demand
from toolmem.rules.rule_store import RuleStore

UNCHECKED = "always: use the staging account when you call the billing service."
NOTE = {
    "quote": "use the staging account when you call the billing service",
    "effect": "deny",
    "lasting": "always",
    "tools": ["Bash"],
    "when": [{"command": "billing.*--prod"}],
    "stops": [{"tool": "Bash", "arguments": {"command": "billing --prod"}}],
    "passes": [{"tool": "Bash", "arguments": {"command": "billing --staging"}}],
}
# Agents whose event at a turn's end was recorded from the program, and how each is asked to go on.
RECORDED = Path(__file__).parent / "recorded"
ENDS = {
    ("claude-code", "claude-code-2.1.330/29-Stop.json"): "block",
    ("codex", "codex-0.169.0/15-Stop.json"): "block",
    ("copilot", "copilot-1.0.102/29-Stop.json"): "block",
    ("gemini", "gemini-0.61.0/33-AfterAgent.json"): "deny",
}


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = Agent(tmp_path)
    made.begins()
    return made


def stops(agent: Agent, **payload: Any) -> dict[str, Any]:
    return agent.hook("Stop", stop_hook_active=False, **payload)


def noted(agent: Agent, turn: int) -> None:
    with StoreFile(agent.store) as store:
        rules = RuleStore(store.protocol, clock=store.clock).as_told_by(None)
        context = DemandContext([UNCHECKED], ["Bash"], agent.session, turn, "model")
        assert at_once(note_demand(rules, NOTE, context)).outcome == "kept"


def test_a_demand_that_no_call_is_checked_against_is_asked_about_once(agent: Agent) -> None:
    assert "a reminder" in agent.says(UNCHECKED)
    asked = stops(agent)
    assert asked["decision"] == "block"
    assert "staging account" in asked["reason"]
    assert stops(agent) == {}
    assert stops(agent, prompt_id="p1") == {}
    agent.says("Go on.")
    assert stops(agent) == {}


def test_a_turn_that_a_hook_keeps_going_is_never_asked(agent: Agent) -> None:
    agent.says(UNCHECKED)
    assert agent.hook("Stop", stop_hook_active=True) == {}
    assert agent.hook("Stop", stop_hook_active=False, agent_id="a1") == {}


def test_so_is_a_plain_sentence_that_the_reader_keeps_as_a_reminder(agent: Agent) -> None:
    assert "a reminder" in agent.says("Never use curl, and then fix foo.py.")
    assert "use curl" in stops(agent)["reason"]


def test_where_a_note_came_nothing_is_asked(agent: Agent) -> None:
    agent.says(UNCHECKED)
    noted(agent, 1)
    assert stops(agent) == {}


@pytest.mark.parametrize(
    "message",
    [
        "Never push to main.",
        "Run the tests.",
        "remember: the key is in the vault",
        "Do not push in this session.",
        "undo",
    ],
)
def test_what_is_checked_or_demands_nothing_is_not_asked_about(agent: Agent, message: str) -> None:
    agent.says(message)
    assert stops(agent) == {}


def test_a_guard_that_is_off_asks_nothing(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolmem.hosts import hook_process

    agent.says(UNCHECKED)
    monkeypatch.setattr(hook_process, "_guard_on", lambda _: False)
    assert stops(agent) == {}


@pytest.mark.parametrize(("host", "file"), ENDS)
def test_each_agent_is_asked_in_its_own_form(host: str, file: str) -> None:
    from toolmem.hosts.events import SILENT, HookAnswer

    told = json.loads((RECORDED / file).read_text())
    one = host_of(host)
    event = one.read(told["payload"], told["environment"])
    assert event is not None
    assert event.kind == "turn_end"
    asked = one.write(event, HookAnswer(action="ask", reason="Note it."))
    assert asked == {"decision": ENDS[host, file], "reason": "Note it."}
    assert one.write(event, SILENT) == {}
    assert one.read({**told["payload"], "stop_hook_active": True}, told["environment"]) is None


def test_a_subagents_end_is_none_of_the_turns() -> None:
    told = json.loads((RECORDED / "copilot-1.0.102/47-Stop.json").read_text())
    assert host_of("copilot").read(told["payload"], told["environment"]) is None


# ---------------------------------------------------------------- the status line


def line(agent: Agent) -> str:
    told = json.dumps({"session_id": agent.session, "cwd": str(agent.repo)})
    ran = subprocess.run(
        [sys.executable, "-m", "toolmem", "hook", "status", "claude-code", "--line"],
        input=told,
        cwd=agent.repo,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return ran.stdout.strip()


def test_the_status_line_says_what_was_kept_in_this_session(agent: Agent) -> None:
    agent.says("Hello.")
    assert "kept" not in line(agent)
    agent.says("Never push to main.")
    agent.says("Do not use curl in this session.")
    assert " · kept 2" in line(agent)
    agent.says("undo")
    assert " · kept 1" in line(agent)
    agent.session = "s2"
    assert "kept" not in line(agent)


def test_the_status_line_says_what_was_heard_and_not_kept(agent: Agent) -> None:
    agent.says(f"remember: {'a long story of what we do ' * 40}")
    assert "heard, not kept" in line(agent)
    agent.says("Hello.")
    assert "not kept" not in line(agent)
