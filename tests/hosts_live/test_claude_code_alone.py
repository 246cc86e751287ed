"""What only Claude Code can: ask its user before a call, and start subagents that are told and held to the rules."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.hosts_live.claude_code_driver import ClaudeCodeDriver
from tests.hosts_live.editions import editions
from tests.hosts_live.test_whole_path import RULE, asked, started, stopped
from toolmem.testing.agent_server import AskedCall

pytestmark = pytest.mark.hosts
USER = [sys.executable, str(Path(__file__).with_name("mail_server.py"))]


@pytest.fixture(params=editions(ClaudeCodeDriver), ids=lambda edition: edition.name)
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ClaudeCodeDriver]:
    for driver in started(request.param, tmp_path):
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


def test_hooks_that_cannot_start_stop_the_call_for_those_who_chose_closed(agent: ClaudeCodeDriver) -> None:
    """From version 2.1.295 on; before it the call runs whatever was chosen."""
    agent.toolmem("hook", "install", agent.host, "--on-error", "closed")
    agent.settings.write_text(agent.settings.read_text().replace(sys.executable, "/nowhere/python"))
    asked(agent, "Go.", agent.shell("touch ran.txt"))
    stops = tuple(map(int, agent.version().split("."))) >= (2, 1, 295)
    assert (agent.project / "ran.txt").exists() is not stops


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


def test_a_note_of_the_model_runs_without_a_question_and_holds(agent: ClaudeCodeDriver) -> None:
    """In the default mode, where a command of the shell else needs somebody's yes."""
    said = "Skipping hooks with --no-verify is cheating"
    note = {
        "quote": said,
        "effect": "deny",
        "lasting": "always",
        "tools": ["Bash"],
        "when": [{"command": "^git (commit|push)\\b", "word": "--no-verify"}],
        "stops": [{"tool": "Bash", "arguments": {"command": "git commit --no-verify -m x"}}],
        "passes": [{"tool": "Bash", "arguments": {"command": "git commit -m wip"}}],
    }
    server = agent.server
    begun = len(server.turns)
    server.then("Understood.")
    session = agent.run("-p", "Hello.", "--session-id", str(uuid4()), "--output-format", "json").stdout
    line = next(each for each in server.turns[begun].text.splitlines() if each.endswith(" note <<'TOOLMEM'"))
    server.then(agent.shell(f"{line}\n{json.dumps(note)}\nTOOLMEM"), "Noted.")
    agent.run("-p", f"{said}.", "--resume", json.loads(session)["session_id"])
    (result,) = server.turns[-1].answers
    assert not result.failed, result.text
    assert json.loads(result.text)["told"].startswith(f"Kept: “{said}”")
    (denied,) = asked(agent, "Commit it.", agent.shell("git commit --no-verify -m wip"))
    stopped(denied, said.lower())


def test_a_subagent_is_told_of_the_rules_and_held_to_them(agent: ClaudeCodeDriver) -> None:
    agent.server.then("Understood.")
    agent.prompt("Never push to main.")
    helper = {"description": "publish", "prompt": "Publish it.", "subagent_type": "general-purpose"}
    waited_for = {**helper, "run_in_background": False}  # newer versions else go on beside it
    push = agent.shell("git push origin main")
    agent.server.then(AskedCall("Agent", waited_for), push, "I could not.", "It was not published.")
    before = len(agent.server.turns)
    agent.prompt("Let a helper publish it.")
    _, first, second, _ = agent.server.turns[before:]
    assert RULE in first.text.lower()
    stopped(second.answers[0], RULE)


@pytest.mark.parametrize(("answer", "holds"), [("", False), ("\x1b", True)], ids=["yes", "no"])
def test_at_the_keys_the_user_is_asked_whether_a_rule_is_lifted(
    agent: ClaudeCodeDriver, answer: str, holds: bool
) -> None:
    server = agent.server
    begun = len(server.turns)
    server.then("Understood.")
    with agent.terminal("--permission-mode", "default") as terminal:
        terminal.type("Never push to main.")
        terminal.wait_for("Understood.")
        line = next(each for each in server.turns[begun].text.splitlines() if each.endswith(" note <<'TOOLMEM'"))
        note = json.dumps({"quote": "I have changed my mind about main", "lifted": "never push to main"})
        lift = line.replace(" note <<", " note --lift <<")
        server.then(agent.shell("git push origin main"), "Stopped.", agent.shell(f"{lift}\n{note}\nTOOLMEM"), "Well.")
        terminal.type("Publish it.")
        terminal.wait_for("Stopped.")
        stopped(server.turns[-1].answers[0], RULE)
        terminal.type("I have changed my mind about main.")
        terminal.wait_for("Do you want to proceed?")
        shown = "".join(terminal.seen.split())
        assert "“Neverpushtomain”(said" in shown
        assert "wouldletrunagain:`gitpushoriginmain`" in shown
        terminal.type(answer, enter=not answer)
        terminal.wait_for("Interrupted" if holds else "Lifted, as you answered yes")
        terminal.settle()
        server.drop_turns()
        server.then(agent.shell("git push origin main"), "That was it.")
        terminal.type("Publish it now.")
        terminal.wait_for("That was it.")
        assert ("toolmem" in server.turns[-1].answers[-1].text) is holds


def test_at_the_keys_words_at_a_rejected_call_are_proposed_and_calls_that_a_note_came_after_are_told(
    agent: ClaudeCodeDriver,
) -> None:
    server = agent.server
    begun = len(server.turns)
    said = "Skipping hooks with --no-verify is cheating"
    commit = "git commit --no-verify --allow-empty -m x"
    note = {
        "effect": "deny",
        "lasting": "always",
        "tools": ["Bash"],
        "when": [{"command": "^git (commit|push)\\b", "word": "--no-verify"}],
        "stops": [{"tool": "Bash", "arguments": {"command": "git commit --no-verify -m x"}}],
        "passes": [{"tool": "Bash", "arguments": {"command": "git commit -m wip"}}],
    }

    def noted(quote: str) -> AskedCall:
        return agent.shell(f"{line}\n{json.dumps({'quote': quote, **note})}\nTOOLMEM")

    server.then("Understood.")
    with agent.terminal("--permission-mode", "default") as terminal:
        terminal.type("Hello.")
        terminal.wait_for("Understood.")
        line = next(each for each in server.turns[begun].text.splitlines() if each.endswith(" note <<'TOOLMEM'"))
        server.then(AskedCall("Write", {"file_path": str(agent.project / "a.txt"), "content": "x"}), "Well.")
        terminal.type("Write it.")
        terminal.wait_for("Do you want to")
        for key in ("\x1b[B", "\x1b[B", "\t", said, "\r"):  # no, and what to do instead
            terminal.type(key, enter=False)
        terminal.wait_for("Well.")
        server.then(noted(said), "Noted.")
        terminal.type("Go on.")
        terminal.wait_for("Noted.")
        assert json.loads(server.turns[-1].answers[-1].text.removeprefix("Exit code 1\n"))["outcome"] == "proposed"
        server.then([agent.shell(commit), noted(said)], "Kept.")
        terminal.type(f"{said}.")
        terminal.wait_for("Kept.")
    told = f"let through before this was kept, in the same reply: `{commit}`"
    assert told in server.turns[-1].text
