"""What a denial tells the agent: how its user lets the very call run once, where a message of theirs does that."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts.hook_agent import HookedAgent
from tests.hosts.host_payloads import PAYLOADS

PUSH = "git push origin main"
OFFERED = re.compile(r"The user's message “(.+)” lets it run once\.")


@pytest.fixture(params=sorted(PAYLOADS))
def agent(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HookedAgent:
    home, project = tmp_path / "home", tmp_path / "home" / "work" / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    for name in ("TOOLMEM_GUARD", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    return HookedAgent(request.param, home, project)


@pytest.mark.parametrize(
    ("rule", "word"), [("Never push to main.", "yes, this once"), ("永远不要推送到 main", "就这一次")]
)
def test_the_message_that_a_denial_names_lets_the_call_run_once(agent: HookedAgent, rule: str, word: str) -> None:
    agent.says(rule)
    told = OFFERED.search(agent.speaks.denial(agent.asks(PUSH)))
    assert told is not None
    assert told[1] == word
    agent.says(told[1])
    assert not agent.stopped(agent.asks(PUSH))
    assert agent.stopped(agent.asks(PUSH))


def test_a_call_that_waits_for_a_consent_names_it_only_where_the_agent_does_not_ask(agent: HookedAgent) -> None:
    agent.says("Ask me before you push to main.")
    answer = agent.asks(PUSH)
    denied, asked = agent.speaks.denial(answer), agent.speaks.question(answer)
    assert bool(denied) != bool(asked)
    assert bool(OFFERED.search(denied or asked)) is bool(denied)


def test_what_no_message_lets_through_names_none(agent: HookedAgent) -> None:
    agent.says("Hello")
    told = agent.stopped(agent.asks("rm -rf ~/.toolmem"))
    assert told
    assert not OFFERED.search(told)


def test_who_speaks_for_no_user_is_told_of_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A subagent, and an agent that another one started."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "project" / ".git").mkdir(parents=True)
    claude = HookedAgent("claude-code", tmp_path, tmp_path / "project")
    claude.says("Never push to main.")
    call = claude.speaks.before(*claude.place, PUSH, 7)
    assert not OFFERED.search(claude.speaks.denial(claude.send({**call, "agent_id": "a1", "agent_type": "general"})))
    script = "import subprocess, sys; sys.stdout.buffer.write(subprocess.check_output(sys.argv[1:]))"
    hook = [sys.executable, "-P", "-m", "toolmem.hosts", "claude-code"]
    for marks, offers in (({}, True), ({"CLAUDECODE": "1"}, False)):
        told = subprocess.run(
            [sys.executable, "-c", script, *hook],
            input=json.dumps({**call, "tool_use_id": f"toolu_{offers}"}).encode(),
            env={**os.environ, **marks},
            capture_output=True,
            check=True,
        ).stdout
        assert "never push to main" in told.decode().lower()
        assert bool(OFFERED.search(json.loads(told)["hookSpecificOutput"]["permissionDecisionReason"])) is offers
