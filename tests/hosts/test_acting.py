"""What hooks do at events that only some agents tell of, and which stores they find."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.hook_agent import HookedAgent
from toolmem.engine import StoreFile
from toolmem.hosts.event_stores import open_stores, project_store, users_store


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HookedAgent:
    home, project = tmp_path / "home", tmp_path / "home" / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    return HookedAgent("claude-code", home, project)


def told(agent: HookedAgent, name: str, **more: Any) -> Mapping[str, Any]:
    session, cwd = agent.place
    return agent.send({"session_id": session, "cwd": cwd, "hook_event_name": name, **more})


def mail(agent: HookedAgent, name: str, tool: str, number: int, **more: Any) -> Mapping[str, Any]:
    given = {"tool_name": tool, "tool_input": {"to": "sarah@example.com"}, "tool_use_id": f"toolu_{number}"}
    return told(agent, name, **given, **more)


def test_a_call_that_the_user_interrupted_says_nothing(agent: HookedAgent) -> None:
    agent.asks("make test")
    failed = agent.speaks.failed(*agent.place, "make test", agent.number, "interrupted")
    agent.send({**failed, "is_interrupt": True})
    assert agent.calls() == []
    assert not agent.stopped(agent.asks("make test"))


def test_a_rule_on_a_servers_tool_binds_under_the_agents_name_for_it(agent: HookedAgent) -> None:
    mail(agent, "PreToolUse", "mcp__mail__send_email", 1)
    mail(agent, "PostToolUse", "mcp__mail__send_email", 1, tool_response=[{"type": "text", "text": "sent"}])
    (call,) = agent.calls()
    assert (call["tool_name"], call["metadata"]["mcp_server"], call["output"]) == ("send_email", "mail", "sent")
    agent.says("never email Sarah")
    assert "never email Sarah" in agent.stopped(mail(agent, "PreToolUse", "mcp__mail__send_email", 2))
    assert "never email Sarah" in agent.stopped(mail(agent, "PreToolUse", "mcp__post__send_email", 3))


def test_a_subagent_is_told_of_the_rules_and_bound_by_the_sessions_demands(agent: HookedAgent) -> None:
    agent.says("never push to main")
    agent.says("Don't touch setup.py in this session")
    context = agent.speaks.context(told(agent, "SubagentStart", agent_id="a1", agent_type="general-purpose"))
    assert "never push to main" in context
    assert "setup.py" in context
    below = {**agent.speaks.before(*agent.place, "rm setup.py", 50), "agent_id": "a1"}
    assert agent.stopped(agent.send(below))


def test_what_a_machine_sends_resets_nothing(agent: HookedAgent) -> None:
    agent.runs("make test", error="Exit code 2\nboom")
    payload = agent.speaks.prompt(*agent.place, "<task-notification>never push to main</task-notification>", 60)
    assert agent.send(payload) == {}
    assert agent.stopped(agent.asks("make test"))
    assert agent.rules() == []


def test_what_a_call_was_given_is_kept_cut(agent: HookedAgent) -> None:
    agent.runs(f"echo {'x' * 1_000_000}")
    (call,) = agent.calls()
    assert len(call["input"]["command"]) == 200_001


# ---------------------------------------------------------------- stores


def a_store(folder: Path) -> Path:
    path = folder / ".toolmem" / "memory.db"
    StoreFile(path).make().close()
    return path


def test_a_projects_store_is_found_upwards_to_its_repositorys_root_and_no_further(tmp_path: Path) -> None:
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "repository"
    (inner / "src" / "deep").mkdir(parents=True)
    a_store(outer)
    (inner / ".git").write_text("gitdir: elsewhere")  # as in a worktree
    home = str(tmp_path / "home")
    assert project_store(str(inner / "src" / "deep"), home) is None
    own = a_store(inner)
    assert project_store(str(inner / "src" / "deep"), home) == own
    assert project_store(str(inner), home) == own
    assert project_store("relative", home) is None


def test_the_users_own_store_is_no_projects(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    own = a_store(home)
    assert project_store(str(home / "work"), str(home)) is None
    assert project_store(str(home), str(home)) is None
    assert users_store(str(home)) == own
    stores = open_stores(str(home / "work"), home=str(home))
    assert [Path(str(each.location)) for each in stores.all] == [own]


def test_the_users_own_store_named_is_one_store(tmp_path: Path) -> None:
    own = a_store(tmp_path / "home")
    stores = open_stores("/", str(own), str(tmp_path / "home"))
    assert stores.further is None
    assert len(stores.all) == 1


def test_a_linked_store_is_not_followed(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    real = a_store(tmp_path / "elsewhere")
    (project / ".toolmem").mkdir(parents=True)
    (project / ".toolmem" / "memory.db").symlink_to(real)
    stores = open_stores(str(project), home=str(home))
    assert [Path(str(each.location)) for each in stores.all] == [home / ".toolmem" / "memory.db"]
    assert stores.trouble or stores.untrusted
