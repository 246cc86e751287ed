"""What only Claude Code can: ask its user before a call, and start subagents that are told and held to the rules."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts_live.claude_code_driver import ClaudeCodeDriver
from tests.hosts_live.test_whole_path import RULE, asked, started, stopped
from toolmem.testing.agent_server import AskedCall

pytestmark = pytest.mark.hosts
USER = [sys.executable, str(Path(__file__).with_name("mail_server.py"))]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[ClaudeCodeDriver]:
    for driver in started(ClaudeCodeDriver, tmp_path):
        assert isinstance(driver, ClaudeCodeDriver)
        driver.toolmem("hook", "install", driver.host)
        yield driver


@pytest.mark.parametrize(("answer", "runs"), [("allow", True), ("deny", False)])
def test_the_user_is_asked_before_a_call_and_what_they_say_holds(
    agent: ClaudeCodeDriver, answer: str, runs: bool
) -> None:
    agent.add_server("user", [*USER, answer])
    agent.server.then("Understood.")
    agent.prompt("Ask me before you delete files.")
    (agent.project / "a.txt").touch()
    agent.server.then(agent.shell("rm a.txt"), "Done with it.")
    asks = ["--mcp-config", str(agent.project / ".mcp.json"), "--permission-prompt-tool", "mcp__user__approve"]
    agent.run("-p", "Tidy up.", *asks, "--allowedTools", "Bash")
    assert (agent.project / "a.txt").exists() is not runs
    (result,) = agent.server.turns[-1].answers
    assert result.failed is not runs


def test_without_anybody_to_ask_a_call_that_needs_consent_does_not_run(agent: ClaudeCodeDriver) -> None:
    agent.server.then("Understood.")
    agent.prompt("Ask me before you delete files.")
    (agent.project / "a.txt").touch()
    (result,) = asked(agent, "Tidy up.", agent.shell("rm a.txt"))
    stopped(result, "ask me before you delete files")
    assert (agent.project / "a.txt").exists()


def test_at_the_keys_rules_outlive_clear_and_the_user_is_asked(agent: ClaudeCodeDriver) -> None:
    (agent.project / "a.txt").touch()
    (agent.project / "b.txt").touch()
    server = agent.server
    server.then("Understood.", agent.shell("git push origin main"), "It was not published.")
    server.then(agent.shell("rm a.txt"), "It is gone.", agent.shell("rm b.txt"))
    with agent.terminal() as terminal:
        terminal.type("Never push to main. Ask me before you delete files.")
        terminal.wait_for("Understood.")
        terminal.type("/clear")
        terminal.type("Publish it.")
        terminal.wait_for("It was not published.")
        stopped(server.turns[-1].answers[0], RULE)
        terminal.type("Tidy up.")
        terminal.wait_for("Do you want to proceed?")
        assert (agent.project / "a.txt").exists()
        terminal.type("")  # the first answer is yes
        terminal.wait_for("It is gone.")
        assert not (agent.project / "a.txt").exists()
        terminal.type("Go on.")
        terminal.wait_for("Do you want to proceed?")
        terminal.type("\x1b", enter=False)
        terminal.wait_for("Interrupted")
    assert (agent.project / "b.txt").exists()


def test_a_subagent_is_told_of_the_rules_and_held_to_them(agent: ClaudeCodeDriver) -> None:
    agent.server.then("Understood.")
    agent.prompt("Never push to main.")
    helper = {"description": "publish", "prompt": "Publish it.", "subagent_type": "general-purpose"}
    push = agent.shell("git push origin main")
    agent.server.then(AskedCall("Agent", helper), push, "I could not.", "It was not published.")
    before = len(agent.server.turns)
    agent.prompt("Let a helper publish it.")
    _, first, second, _ = agent.server.turns[before:]
    assert RULE in first.text.lower()
    stopped(second.answers[0], RULE)
