"""`toolmem hook`: hooks come into an agent's settings, are looked after, and go again."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.hosts.hook_agent import HookedAgent
from toolmem.engine import StoreFile
from toolmem.hosts import installing, settings_files
from toolmem.hosts.receipts import Receipts
from toolmem.providers.tokenizer import estimated_tokens

SETTINGS = ".claude/settings.local.json"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder beside an empty home, the working directory."""
    home, folder = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(folder)
    return folder


def test_an_install_is_shown_written_noted_and_undone(project: Path, run_command) -> None:
    shown = run_command("hook", "install", "claude-code", "--dry-run")
    assert shown.code == 0
    assert "+++" in shown.out
    assert list(project.iterdir()) == []

    ran = run_command("hook", "install", "claude-code")
    assert ran.code == 0
    assert shown.out in ran.out
    hook = json.loads((project / SETTINGS).read_text())["hooks"]["PreToolUse"][0]["hooks"][0]
    assert hook["command"] == sys.executable
    assert hook["args"][-3:] == ["-m", "toolmem.hosts", "claude-code"]
    assert "-P" in hook["args"]
    assert (project / ".toolmem" / ".gitignore").read_text() == "*\n"
    (noted,) = Receipts().installs("claude-code")
    assert (noted.scope, noted.place) == ("project", str(project))
    assert list(noted.command) == [hook["command"], *hook["args"]]
    assert str(project / SETTINGS) in noted.files

    written = (project / SETTINGS).read_bytes()
    again = run_command("hook", "install", "claude-code")
    assert (again.code, "has these hooks already" in again.out) == (0, True)
    assert (project / SETTINGS).read_bytes() == written

    assert run_command("hook", "uninstall", "claude-code", "--dry-run").code == 0
    assert (project / SETTINGS).read_bytes() == written
    assert run_command("hook", "uninstall", "claude-code").code == 0
    assert [each.name for each in project.iterdir()] == [".toolmem"]
    assert Receipts().installs("claude-code") == []
    assert run_command("hook", "uninstall", "claude-code").code == 0


def test_other_settings_stay_as_they_are_written(project: Path, run_command) -> None:
    path = project / SETTINGS
    path.parent.mkdir()
    text = '{\r\n\t"permissions" : {"deny": [ "Read(./.env)" ]},\r\n\t"hooks": {"PreToolUse": [\r\n\t]}\r\n}'
    path.write_bytes(text.encode())
    assert run_command("hook", "install", "claude-code").code == 0
    assert path.read_bytes().startswith(text[:60].encode())
    assert run_command("hook", "uninstall", "claude-code").code == 0
    assert path.read_bytes() == text.encode()


def test_options_reach_the_installed_line_as_absolute_paths(project: Path, run_command) -> None:
    ran = run_command("hook", "install", "claude-code", "--store", "own.db", "--on-error", "closed")
    assert ran.code == 0
    hook = json.loads((project / SETTINGS).read_text())["hooks"]["PreToolUse"][0]["hooks"][0]
    assert hook["args"][-4:] == ["--store", str(project / "own.db"), "--on-error", "closed"]
    assert (project / "own.db").is_file()
    assert not (project / ".toolmem").exists()


def test_for_a_user_the_settings_of_the_home_folder_are_meant(project: Path, run_command) -> None:
    assert run_command("hook", "install", "claude-code", "--user").code == 0
    home = Path(os.environ["HOME"])
    assert (home / ".claude" / "settings.json").is_file()
    assert (home / ".toolmem" / "memory.db").is_file()
    assert list(project.iterdir()) == []
    assert run_command("hook", "uninstall", "claude-code", "--user").code == 0
    assert not (home / ".claude").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("install", "claude-cod"), "there are claude-code"),
        (("install", "claude-code", "--user", "--project", "."), "exclude each other"),
        (("install", "claude-code", "--project", "nowhere"), "is no folder"),
        (("install", "claude-code", "--project", "~home"), "home folder"),
        (("install", "claude-code", "--on-error", "maybe"), "open or closed"),
        (("install", "claude-code", "--config", "none.yaml"), "none.yaml"),
        (("status", "vim"), "no agent is called"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(
    project: Path, run_command, arguments: tuple[str, ...], told: str
) -> None:
    ran = run_command("hook", *(os.environ["HOME"] if each == "~home" else each for each in arguments))
    assert ran.code == 2
    assert told in ran.err
    assert list(project.iterdir()) == []
    assert list(Path(os.environ["HOME"]).iterdir()) == []


def test_settings_that_cannot_be_parsed_are_refused_with_line_and_column(project: Path, run_command) -> None:
    path = project / SETTINGS
    path.parent.mkdir()
    path.write_text('{\n  "model": "x",\n  // mine\n}\n')
    ran = run_command("hook", "install", "claude-code")
    assert ran.code == 2
    assert "line 3, column 3" in ran.err
    assert path.read_text() == '{\n  "model": "x",\n  // mine\n}\n'
    assert not (project / ".toolmem").exists()


def test_an_interpreter_that_is_thrown_away_is_refused(
    project: Path, run_command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    passing = tmp_path / ".cache" / "uv" / "archive-v0" / "x" / "bin" / "python"
    passing.parent.mkdir(parents=True)
    passing.symlink_to(sys.executable)
    monkeypatch.setattr(installing.sys, "executable", str(passing))
    ran = run_command("hook", "install", "claude-code")
    assert ran.code == 2
    assert "`uv tool install .`" in ran.err
    assert list(project.iterdir()) == []


def test_a_store_that_came_with_a_folder_is_named_and_not_believed(project: Path, run_command, monkeypatch) -> None:
    with monkeypatch.context() as other:
        other.setenv("XDG_STATE_HOME", os.environ["HOME"] + "/other")
        assert run_command("rules", "add", "Bash", "never push to main").code == 0
    ran = run_command("hook", "install", "claude-code")
    assert ran.code == 0
    assert "was made by somebody else" in ran.err
    with StoreFile(project / ".toolmem" / "memory.db") as store:
        assert not store.is_known()
    told = json.loads(run_command("hook", "status", "claude-code", "--json").out)
    assert (told["rules"], told["stores"]) == (0, [])


def test_status_tells_installs_rules_and_answers(project: Path, run_command) -> None:
    assert run_command("hook", "install", "claude-code").code == 0
    assert run_command("rules", "add", "Bash", "never push to main").code == 0
    receipts = Receipts()
    for number, action in enumerate(["allow", "advise", "advise", "deny"]):
        receipts.begin("claude-code", "s1", "before_call", str(number))
        receipts.end("s1", "before_call", str(number), action=action)
    receipts.close()
    told = json.loads(run_command("hook", "status", "claude-code", "--json").out)
    assert (told["rules"], told["calls"], told["advised"], told["stopped"]) == (1, 4, 2, 1)
    assert told["installs"][0]["state"] == "in place"
    assert "rules: 1 active" in run_command("hook", "status", "claude-code").out
    (project / SETTINGS).write_text("{}")
    told = json.loads(run_command("hook", "status", "claude-code", "--json").out)
    assert told["installs"][0]["state"] == "taken out by hand"


def test_status_tells_what_toolmem_added_to_the_models_context(project: Path, run_command) -> None:
    assert "added to the model's context: nothing" in run_command("hook", "status", "claude-code").out
    agent = HookedAgent("claude-code", Path(os.environ["HOME"]), project)
    agent.says("what is the time?")  # adds nothing
    added = [agent.says("never push to main"), agent.start(), agent.start("resume")]
    contexts = [agent.speaks.context(each) for each in added]
    tokens = [estimated_tokens(each) for each in contexts]
    assert min(tokens) > 10
    told = json.loads(run_command("hook", "status", "claude-code", "--json").out)["context"]
    assert told == {
        "prompt": {"times": 1, "tokens": tokens[0]},
        "session_start": {"times": 2, "tokens": tokens[1] + tokens[2]},
    }
    shown = run_command("hook", "status", "claude-code").out
    assert f"about {sum(tokens):,} tokens ({tokens[1] + tokens[2]:,} at 2 × session's start, " in shown
    other = json.loads(run_command("hook", "status", "codex", "--json").out)
    assert other["context"] == {}


def test_where_the_agents_folder_is_a_link_what_changes_is_named(project: Path, run_command, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (project / ".claude").symlink_to(tmp_path / "dotfiles")
    ran = run_command("hook", "install", "claude-code")
    assert ran.code == 0
    assert str(tmp_path / "dotfiles" / "settings.local.json") in ran.err
    assert run_command("hook", "uninstall", "claude-code").code == 0
    assert list((tmp_path / "dotfiles").iterdir()) == []


def test_an_install_that_cannot_be_written_leaves_nothing_behind(
    project: Path, run_command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(settings_files, "_replace", full)
    ran = run_command("hook", "install", "claude-code")
    monkeypatch.undo()
    assert ran.code == 1
    assert "No space left on device" in ran.err
    assert not (project / SETTINGS).exists()
    assert Receipts().installs() == []
