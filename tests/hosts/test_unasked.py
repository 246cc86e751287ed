"""Where nobody can be asked, a call that a rule wants asked about does not run, says so, and is counted as asked."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.hook_agent import HookedAgent
from toolmem import AgentSession, AsyncToolMem, CallRecorder, ToolMem

ASK = "Ask me before you push to main."
PUSH = "git push origin main"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "work").mkdir()
    return tmp_path


def logged(home: Path) -> list[tuple[str, str]]:
    with ToolMem(str(home / ".toolmem" / "memory.db")) as memory:
        return [(each.action, each.outcome) for each in memory.decisions()]


@pytest.mark.parametrize("host", ["codex", "gemini", "cursor", "claude-code"])
def test_an_agent_that_cannot_ask_says_so_on_standard_error_and_its_log_counts_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")  # `claude -p`
    agent = HookedAgent(host, home, home / "work")
    agent.says(ASK)
    assert agent.stopped(agent.asks(PUSH))
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("toolmem: nobody can be asked here about ")
    assert "push to main" in told
    assert logged(home) == [("ask", "not_run")]


def test_an_agent_at_a_terminal_asks_and_says_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "cli")
    agent = HookedAgent("claude-code", home, home / "work")
    agent.says(ASK)
    assert agent.speaks.question(agent.asks(PUSH))
    assert capsys.readouterr().err == ""
    assert logged(home) == [("ask", "")]


def test_a_call_that_somebody_let_run_all_the_same_is_told_as_it_ended(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    agent = HookedAgent("claude-code", home, home / "work")
    agent.says(ASK)
    agent.runs(PUSH)
    assert logged(home) == [("ask", "worked")]


async def with_rule() -> AsyncToolMem:
    memory = AsyncToolMem(":memory:")
    await memory.rules.put("push", "ask me before you push", effect="ask", when=True)
    return memory


async def test_a_session_without_on_ask_says_so_and_its_log_counts_it(caplog: pytest.LogCaptureFixture) -> None:
    memory = await with_rule()
    session = await AgentSession.start(memory, tools=["push"], on_denied="return")

    @session.tool
    def push(branch: str) -> str:
        raise AssertionError("it ran")

    assert "ask the user first" in await asyncio.to_thread(push, "main")
    assert "nobody can be asked here (no on_ask)" in caplog.text
    assert "ask me before you push" in caplog.text
    assert [(each.action, each.outcome) for each in await memory.decisions()] == [("ask", "not_run")]
    await session.close()
    await memory.close()


async def test_where_a_session_can_ask_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    memory = await with_rule()
    recorder = CallRecorder(memory, on_ask=lambda decision: True)

    @recorder.tool
    async def push(branch: str) -> str:
        return "pushed"

    with caplog.at_level(logging.WARNING, logger="toolmem"):
        assert await push("main") == "pushed"
    assert caplog.text == ""
    await memory.close()


def test_the_command_that_checks_a_call_says_the_reason_beside_its_json(
    home: Path, run_command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home / "work")
    with ToolMem(str(home / "work" / ".toolmem" / "memory.db")) as memory:
        memory.rules.put("push", "ask me before you push", effect="ask", when=True)
    ran = run_command("guard", "check", "--tool", "push", "--input", '{"branch": "main"}', "--json")
    assert (ran.code, json.loads(ran.out)["action"]) == (5, "ask")
    assert "ask me before you push" in ran.err
