"""A demand on order holds in an agent whose hooks are installed: each event is a process of its own."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from toolmem.engine import StoreFile
from toolmem.hosts.hook_process import answered
from toolmem.readers.weight import at_once
from toolmem.rules.rule_store import RuleStore

ORDER: dict[str, Any] = {
    "when": [{"command": "^git commit"}],
    "unless": [{"earlier": {"command": "^pytest", "worked": True, "since": {"writes": True}}}],
}


class Agent:
    """Claude Code, as far as hooks see it."""

    def __init__(self, folder: Path) -> None:
        self.repo = folder / "repo"
        self._number = 0
        (self.repo / ".git").mkdir(parents=True)
        self.store = self.repo / ".toolmem" / "memory.db"

    def put(self, tool: str, rule: str, when: Any) -> None:
        with StoreFile(self.store) as store:
            at_once(RuleStore(store.protocol, clock=store.clock).put_rule(tool, rule, effect="deny", when=when))

    def hook(self, event: str, **payload: Any) -> dict[str, Any]:
        given = {"hook_event_name": event, "session_id": "s1", "cwd": str(self.repo), **payload}
        answer = answered(
            ["claude-code"], io.BytesIO(json.dumps(given).encode()), {"CLAUDE_PROJECT_DIR": str(self.repo)}
        )
        read: dict[str, Any] = json.loads(answer) if answer else {}
        return read.get("hookSpecificOutput", {})

    def uses(self, tool: str, *, ends: str = "PostToolUse", **given: Any) -> str:
        """The reason why it may not; "" where it ran."""
        self._number += 1
        call = {"tool_name": tool, "tool_input": given, "tool_use_id": f"toolu_{self._number}"}
        decided = self.hook("PreToolUse", **call)
        if decided.get("permissionDecision", "allow") != "allow":
            return str(decided["permissionDecisionReason"])
        if ends == "PostToolUse":
            self.hook(ends, **call, tool_response={"stdout": "done", "stderr": "", "interrupted": False})
        elif ends:
            self.hook(ends, **call, error="Exit code 1\n1 failed")
        return ""

    def runs(self, command: str, **more: Any) -> str:
        return self.uses("Bash", command=command, **more)


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Agent(tmp_path)


def test_a_commit_is_stopped_until_tests_have_worked_after_the_last_edit(agent: Agent) -> None:
    agent.put("@shell", "always run the tests before you commit", ORDER)
    assert "First run `pytest` (it must work after your last edit)." in agent.runs("git commit -m x")
    assert not agent.runs("pytest -q", ends="PostToolUseFailure")
    assert agent.runs("git commit -m x")
    assert not agent.runs("pytest -q", ends="")
    assert agent.runs("git commit -m x")
    assert not agent.runs("pytest || true")
    assert agent.runs("git commit -m x")
    assert not agent.runs("cd app && pytest -q")
    assert not agent.runs("git add -A && git commit -m x")
    assert not agent.uses("Edit", file_path=str(agent.repo / "a.py"), old_string="a", new_string="b")
    assert agent.runs("git commit -am y")
    assert not agent.runs("pytest && git commit -am y")


def test_after_the_inbox_was_read_no_mail_leaves(agent: Agent) -> None:
    when = [{"target": ".", "earlier": {"tool": "read_inbox"}}]
    agent.put("send_email", "after reading the inbox, send nothing", when)
    assert not agent.uses("mcp__mail__send_email", to="bob@x.com", body="x")
    assert not agent.uses("mcp__mail__read_inbox", limit=3)
    assert "after reading the inbox" in agent.uses("mcp__mail__send_email", to="bob@x.com", body="x")


def test_at_most_two_mails_a_day(agent: Agent) -> None:
    agent.put("@mail", "at most 2 mails a day", [{"always": True, "more_than": {"calls": 2, "per": "day"}}])
    mails = [agent.uses("mcp__mail__send_email", to="bob@x.com", body=str(number)) for number in range(3)]
    assert [bool(each) for each in mails] == [False, False, True]
    assert "This call is beyond 2 such calls a day." in mails[2]
