"""Which processes a hook or a command was started by, in real process trees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processor_time import takes_less_than
from toolmem.hosts.ancestry import Process, mark_in
from toolmem.hosts.receipts import Receipts

TELL = (
    "from toolmem.hosts.ancestry import agent_of_hook, started_by_agent\n"
    "agent = agent_of_hook()\n"
    "print(agent.process.pid, agent.process.name, [each.pid for each in agent.above], started_by_agent(agent.process))"
)


def told(*command: str, **environment: str) -> str:
    plain = {"PATH": os.environ["PATH"], **environment}
    return subprocess.run(command, env=plain, capture_output=True, text=True, check=True).stdout.strip()


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")


@needs_proc
def test_the_agent_of_a_hook_is_the_nearest_that_is_no_shell() -> None:
    for command in ([sys.executable, "-c", TELL], ["sh", "-c", f"exec {sys.executable} -c '{TELL}'; true"]):
        pid, _, rest = told(*command).partition(" ")
        assert int(pid) == os.getpid()
        assert str(os.getppid()) in rest
        assert rest.endswith("False")
    shells = f"bash -c \"sh -c '{sys.executable} /dev/stdin; true'; true\"; true"
    ran = subprocess.run(["bash", "-c", shells], input=TELL, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith(f"{os.getpid()} ")


@needs_proc
def test_an_agent_that_was_started_with_an_agents_mark_is_below_one() -> None:
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {TELL!r}])"
    assert told(sys.executable, "-c", script).endswith("False")
    assert told(sys.executable, "-c", script, CLAUDECODE="1").endswith("True")
    assert told(sys.executable, "-c", script, CODEX_HOME="/x", GEMINI_CLI_NO_RELAUNCH="1").endswith("False")


@pytest.mark.parametrize(
    ("environment", "mark"),
    [
        ({"CLAUDECODE": "1"}, "CLAUDECODE"),
        ({"GEMINI_CLI": "1"}, "GEMINI_CLI"),
        ({"OPENCODE": "1"}, "OPENCODE"),
        ({"CURSOR_AGENT": "1"}, "CURSOR_AGENT"),
        ({"CODEX_SANDBOX_NETWORK_DISABLED": "1"}, "CODEX_SANDBOX_NETWORK_DISABLED"),
        ({"CLAUDE_CODE_ENTRYPOINT": "claude-vscode"}, ""),
        ({"CLAUDECODE": ""}, ""),
        ({"AGENT": "of-mine"}, ""),
        ({}, ""),
    ],
)
def test_marks_are_what_agents_put_into_what_they_start(environment: dict[str, str], mark: str) -> None:
    assert mark_in(environment) == mark


def test_a_process_is_told_from_a_later_one_with_its_id(tmp_path: Path) -> None:
    receipts = Receipts(tmp_path / "hooks.db")
    receipts.note_agent("s1", 100, "a")
    assert receipts.is_agent(100, "a")
    assert not receipts.is_agent(100, "b")
    assert Process(100, "a", "x") != Process(100, "b", "x")


# ---------------------------------------------------------------- calls under way


def begun(receipts: Receipts, key: str, action: str = "allow", session: str = "s1") -> None:
    receipts.begin("claude-code", session, "before_call", key)
    receipts.end(session, "before_call", key, action=action)


def told_end(receipts: Receipts, key: str, kind: str = "after_call") -> None:
    receipts.begin("claude-code", "s1", kind, key)
    receipts.end("s1", kind, key)


def test_a_call_is_under_way_until_its_end_is_told(tmp_path: Path) -> None:
    receipts = Receipts(tmp_path / "hooks.db")
    assert not receipts.call_under_way("s1")
    begun(receipts, "a")
    begun(receipts, "b")
    told_end(receipts, "b")
    assert receipts.call_under_way("s1")
    assert not receipts.call_under_way("s2")
    told_end(receipts, "a")
    assert not receipts.call_under_way("s1")


@pytest.mark.parametrize("action", ["deny", "ask"])
def test_a_call_that_was_stopped_or_asked_about_is_not_under_way(tmp_path: Path, action: str) -> None:
    receipts = Receipts(tmp_path / "hooks.db")
    begun(receipts, "a", action)
    assert not receipts.call_under_way("s1")


def test_a_call_whose_end_nobody_tells_is_over_with_the_next_message(tmp_path: Path) -> None:
    receipts = Receipts(tmp_path / "hooks.db")
    begun(receipts, "a")
    receipts.begin("claude-code", "s1", "prompt", "p1")
    assert receipts.call_under_way("s1")
    receipts.end("s1", "prompt", "p1")
    assert not receipts.call_under_way("s1")


def test_a_call_of_another_session_of_the_same_agent_counts(tmp_path: Path) -> None:
    receipts = Receipts(tmp_path / "hooks.db")
    receipts.note_agent("s1", 100, "a")
    begun(receipts, "x")
    assert receipts.call_under_way("made up", 100, "a")
    assert not receipts.call_under_way("made up", 101, "a")


def test_where_calls_have_no_names_any_later_end_is_theirs(tmp_path: Path) -> None:
    receipts = Receipts(tmp_path / "hooks.db")
    begun(receipts, "a")
    told_end(receipts, "z")
    assert receipts.call_under_way("s1")
    assert not receipts.call_under_way("s1", named=False)


def test_looking_takes_no_time(tmp_path: Path) -> None:
    receipts = Receipts(tmp_path / "hooks.db")
    for number in range(300):
        begun(receipts, f"a{number}")
        told_end(receipts, f"a{number}")
    assert takes_less_than(0.02, lambda: receipts.call_under_way("s1", 1, "x"))
