"""Each real program: install, demand, a call stopped in a later session, note, lift, uninstall."""

from __future__ import annotations

import json
import runpy
import subprocess
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw
import pytest
from hooks.conftest import NOTE

from hosts_live.model import Model
from hosts_live.programs import EVERY, PROGRAMS, ClaudeCode, Codex
from hosts_live.terminal import ENTER, ESCAPE, Terminal
from toolmem import ToolMem
from toolmem.hooks.notes import note_command

pytestmark = pytest.mark.hosts
GENERATE = str(Path(__file__).parents[2] / "docs" / "generate.py")
FORMATS = {  # of the transcripts
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini": "gemini_cli",
    "opencode": "opencode",
}
RULE = "Never push to main."


@pytest.fixture
def model():
    server = Model()
    yield server
    server.close()


@pytest.fixture(params=EVERY, ids=lambda each: each.agent)
def agent(request, model, tmp_path):
    if not (PROGRAMS / ".bin" / request.param.program).exists():
        pytest.skip("`make test-hosts` installs it")
    return request.param(model, tmp_path)


def repository(agent):
    """`main`, pushed to a bare remote beside it, one commit ahead."""

    def git(*arguments):
        return agent.start(["git", *arguments]).strip()

    git("init", "-q", "-b", "main")
    git("config", "user.name", "Tester")
    git("config", "user.email", "tester@example.com")
    git("init", "-q", "--bare", "-b", "main", "../remote.git")
    git("remote", "add", "origin", "../remote.git")
    (agent.project / ".gitignore").write_text("*\n!.gitignore\n")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    git("push", "-q", "origin", "main")
    git("commit", "-q", "--allow-empty", "-m", "second")
    return lambda: (
        git("ls-remote", "origin", "refs/heads/main")
        == (git("rev-parse", "main") + "\trefs/heads/main")
    )


def hostile(agent):
    """Modules in the project that Python would load, were they looked for there."""
    text = f"open({str(agent.project / 'imported')!r}, 'a').write(__name__)\n"
    for name in ("json", "apsw", "msgspec", "sitecustomize"):
        (agent.project / f"{name}.py").write_text(text)
    (agent.project / "toolmem").mkdir()
    (agent.project / "toolmem" / "__init__.py").write_text(text)


def asked(agent, prompt, command):
    """What the model reads as the result of a command that it asks for."""
    agent.model.then(agent.shell(command), "That is all.")
    agent.say(prompt)
    call = next(each for each in reversed(agent.model.requests) if each.calls)
    return agent.model.requests[-1].results[call.calls[0]]


def test_what_the_user_says_binds_in_the_real_program(agent, record_property):
    version = agent.version()
    print(f"\n{agent.agent} {version}")
    record_property("version", version)
    is_pushed = repository(agent)
    before = agent.settings().read_bytes() if agent.settings() else None
    agent.toolmem("hook", "install", agent.agent)
    agent.after_install()
    hostile(agent)

    agent.model.then("Understood.")
    agent.say(RULE)
    assert RULE.rstrip(".") in agent.toolmem("rules", "list")

    answer = asked(agent, "Publish it.", "git push origin main")
    assert "Never push to main" in answer and "toolmem: not run" in answer
    assert not is_pushed()
    first = agent.model.requests[-2]
    told = [text for text in first.texts if "Never push to main" in text]
    assert told or agent.agent == "goose"

    note = f"{note_command()} <<'TOOLMEM'\n{json.dumps(NOTE)}\nTOOLMEM"
    answer = asked(agent, "Clean up, but leave the vendor folder alone.", note)
    assert "toolmem: kept" in answer
    answer = asked(agent, "Go on.", "rm vendor/a")
    assert "leave the vendor folder alone" in answer

    agent.model.then("All right.")
    rule = json.loads(agent.toolmem("rules", "list", "--json"))
    push = next(each for each in rule if each["rule"].startswith("Never push"))
    agent.say(f"lift {push['id'][:6]}")
    asked(agent, "Publish it now.", "git push origin main")
    assert is_pushed()

    assert not (agent.project / "imported").exists()
    agent.toolmem("hook", "doctor", agent.agent)
    agent.toolmem("hook", "uninstall", agent.agent)
    if before is not None:
        assert agent.settings().read_bytes() == before
    left = subprocess.run(
        ["grep", "-rl", "toolmem.hooks", "--include=*.js*", "."],
        cwd=agent.project,
        capture_output=True,
        check=False,
    )
    assert left.stdout == b""


@pytest.mark.parametrize(
    "agent",
    [each for each in EVERY if each.agent in FORMATS],
    ids=lambda each: each.agent,
    indirect=True,
)
def test_a_transcript_of_the_real_program_holds_the_calls_that_its_hook_recorded(agent):
    verified = runpy.run_path(GENERATE)["notes_on_formats"]()[FORMATS[agent.agent]]["Verified"]
    print(f"\n{agent.agent} {agent.version()}; the page of its format says {verified}")
    agent.toolmem("hook", "install", agent.agent)
    agent.after_install()
    for word in ("one", "two"):
        failing = agent.shell(f"cat {word}")  # a hook does not let it run twice
        agent.model.then(agent.shell(f"echo {word}"), failing, failing, "That is all.")
        agent.say(f"Look for {word}.")
    told = ["import", "--from-agents", "--yes", "--store", "imported.db", "--into-shared"]
    assert agent.toolmem(*told).startswith("4 new calls")
    assert agent.toolmem(*told, "--again").startswith("0 new calls; 4 were there already")
    hooked = recorded(agent.project / ".toolmem" / "memory.db")
    assert [outcome for *_, outcome in hooked] == ["one", "failed", "two", "failed"]
    assert recorded(agent.project / "imported.db") == hooked


def recorded(path):
    """The calls of a store; OpenCode quotes what it is told in a command line."""
    with ToolMem(path) as memory:
        calls = memory.calls()
    return [
        (c.tool_name, c.input, c.context.strip('"'), "failed" if c.failed else c.output.strip())
        for c in calls
    ]


@contextmanager
def locked(path):
    """Another process holds the write lock."""
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def full(path):
    """The store lies on a disk without a free byte."""
    files = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    mount = ["mount", "-t", "tmpfs", "-o", f"size={2 * sum(map(len, files.values()))}", "none"]
    if subprocess.run([*mount, str(path.parent)], capture_output=True, check=False).returncode:
        pytest.skip("only root mounts a disk")
    try:
        for name, data in files.items():
            (path.parent / name).write_bytes(data)
        with suppress(OSError), open(path.parent / "fill", "wb", 0) as file:
            while True:
                file.write(b"x" * 4096)
        yield
    finally:
        subprocess.run(["umount", "-l", str(path.parent)], check=True)


@pytest.mark.parametrize("fault", [locked, full])
@pytest.mark.parametrize("agent", [ClaudeCode, Codex], ids=lambda each: each.agent, indirect=True)
def test_a_ban_holds_in_the_real_program_while_nothing_can_be_written(agent, fault):
    is_pushed = repository(agent)
    agent.toolmem("hook", "install", agent.agent)
    agent.after_install()
    agent.model.then("Understood.")
    agent.say(RULE)
    with fault(agent.project / ".toolmem" / "memory.db"):
        answer = asked(agent, "Publish it.", "git push origin main")
        assert "Never push to main" in answer and "toolmem: not run" in answer
        assert "a.txt" in asked(agent, "Look around.", "echo a.txt")
    assert not is_pushed()


BACK = "The thing with main is settled."


@pytest.fixture
def claude(model, tmp_path):
    """The real program in a terminal, with the hook, after its first screens."""
    if not (PROGRAMS / ".bin" / ClaudeCode.program).exists():
        pytest.skip("`make test-hosts` installs it")
    found = ClaudeCode(model, tmp_path)
    found.toolmem("hook", "install", found.agent)
    known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
        "projects": {str(found.project): known},
    }
    (found.home / ".claude.json").write_text(json.dumps(state))
    return found


def terminal(claude, mode):
    command = [claude.executable, "--permission-mode", mode]
    return Terminal(command, str(claude.project), claude.environment())


@pytest.mark.parametrize("mode", ["default", "acceptEdits"])
@pytest.mark.parametrize("answer", ["yes", "no"])
def test_a_question_and_its_answer_are_understood_in_the_real_program(claude, model, mode, answer):
    is_pushed = repository(claude)
    push = claude.shell("git push origin main")
    with terminal(claude, mode) as screen:
        assert screen.sees("for shortcuts") or screen.sees("accept edits on"), screen.drawn
        model.then("Understood.")
        screen.say(RULE)
        assert screen.sees("Kept: “Never push to main”"), screen.drawn
        assert screen.sees("Understood."), screen.drawn
        model.then("All right.")
        screen.say(BACK)
        assert screen.sees("still holds"), screen.drawn
        assert screen.sees("All right."), screen.drawn
        model.then(push, "That is all.")
        screen.say("Publish it.")
        assert screen.sees("Do you want to proceed?"), screen.drawn
        assert screen.sees("Yes lifts the rule for good."), screen.drawn
        if answer == "yes":
            screen.press(ENTER)
            assert screen.sees("Lifted, as you agreed"), screen.drawn
            assert screen.sees("That is all."), screen.drawn
            assert is_pushed()
            screen.say("undo")
            assert screen.sees("Restored, it holds again"), screen.drawn
        else:
            screen.press(ESCAPE)
            assert screen.sees("Interrupted") or screen.sees("What should Claude do"), screen.drawn
            model.then(push, "That is all.")
            screen.say("Publish it now.")
            assert screen.sees("That is all."), screen.drawn
            assert "say which rule forbids it" in str(model.requests[-1].results)
            assert not is_pushed()
    assert "Never push to main" in claude.toolmem("rules", "list")
