"""Installing leaves every other byte of an agent's settings, and uninstalling brings them back."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from toolmem.cli.main import commands
from toolmem.errors import ToolMemError
from toolmem.hooks.agents import AGENTS
from toolmem.hooks.doctor import examine
from toolmem.hooks.install_notes import installed
from toolmem.hooks.installs import apply_install, files_of, is_ours, plan_install
from toolmem.hooks.json_text import with_entries, without_entries, without_spans

ENTRIES = {
    "PreToolUse": {"hooks": [{"type": "command", "command": "x -m toolmem.hooks claude-code"}]},
    "SessionEnd": {"hooks": [{"type": "command", "command": "x -m toolmem.hooks claude-code"}]},
}


@pytest.fixture
def toolmem(project, monkeypatch):
    monkeypatch.chdir(project)

    def run(*arguments):
        done = CliRunner().invoke(commands, ["hook", *arguments])
        if isinstance(done.exception, ToolMemError):
            return str(done.exception)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.output

    return run


def settings_file(project):
    (path,) = files_of(AGENTS["claude-code"], str(project), {})
    return path


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".toolmem" not in path.parts and ".local" not in path.parts
    }


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("scope", ["--project", "--user"])
def test_what_an_install_made_is_gone_afterwards(name, scope, toolmem, project, own_home):
    where = [] if scope == "--project" else ["--user"]
    shown = toolmem("install", name, *where, "--dry-run")
    assert "would install" in shown and "toolmem" in shown
    assert files(project) == files(own_home) == {}
    assert "installed" in toolmem("install", name, *where)
    place = project if scope == "--project" else own_home
    assert any(b"toolmem.hooks" in data for data in files(place).values())
    assert "problem" not in toolmem("doctor", name, *where)
    assert name in toolmem("status")
    assert "uninstalled" in toolmem("uninstall", name, *where)
    assert files(project) == files(own_home) == {}
    kept = {".git", ".toolmem"} if scope == "--project" else {".local", ".toolmem"}
    assert {each.name for each in place.iterdir()} <= kept
    assert "nothing is installed" in toolmem("uninstall", name, *where)


TEXTS = {
    "CRLF": b'{\r\n\t"a": 1,\r\n\t"hooks": {\r\n\t}\r\n}\r\n',
    "BOM": b'\xef\xbb\xbf{"a": [1, 2]}',
    "comments": b'{\n  // mine\n  "a": 1,\n  "hooks": {"PreToolUse": [ /* none */ ],},\n}',
    "empty": b"",
    "blank": b" \n",
    "others": b'{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": "other"}]}]}}',
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_bytes_of_a_settings_file_come_back(name, toolmem, project, tmp_path):
    path = settings_file(project)
    path.parent.mkdir()
    real = tmp_path / "real.json"
    real.write_bytes(TEXTS[name])
    real.chmod(0o640)
    path.symlink_to(real)
    toolmem("install", "claude-code")
    assert path.is_symlink()
    assert b"toolmem.hooks" in real.read_bytes()
    assert real.stat().st_mode & 0o777 == 0o640
    assert b"other" not in TEXTS[name] or b"other" in real.read_bytes()
    toolmem("uninstall", "claude-code")
    assert real.read_bytes() == TEXTS[name]
    assert path.is_symlink()


def test_what_somebody_changed_since_stays(toolmem, project):
    toolmem("install", "claude-code")
    path = settings_file(project)
    held = json.loads(path.read_bytes())
    held["hooks"]["PreToolUse"].insert(0, {"hooks": [{"type": "command", "command": "mine"}]})
    path.write_text(json.dumps({"theme": "dark", **held}))
    toolmem("uninstall", "claude-code")
    mine = {"PreToolUse": [{"hooks": [{"type": "command", "command": "mine"}]}]}
    assert json.loads(path.read_bytes()) == {"theme": "dark", "hooks": mine}


def test_an_own_file_that_somebody_changed_is_left_and_told(toolmem, project):
    toolmem("install", "opencode")
    plugin = project / ".opencode" / "plugin" / "toolmem.js"
    plugin.write_text("// mine now")
    assert "was changed since" in toolmem("uninstall", "opencode")
    assert plugin.read_text() == "// mine now"
    assert "is there, and is not this toolmem's" in toolmem("install", "opencode")


@pytest.mark.parametrize("text", ["{", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', "[1]"])
def test_settings_that_are_not_as_the_agent_lays_them_out_are_refused(text, toolmem, project):
    path = settings_file(project)
    path.parent.mkdir()
    path.write_text(text)
    told = toolmem("install", "claude-code")
    assert "Nothing was changed" in told and path.name in told
    assert path.read_text() == text
    assert installed() == []


def test_settings_that_change_between_plan_and_write_are_refused(project):
    agent = AGENTS["claude-code"]
    command = [sys.executable, "-m", "toolmem.hooks", "claude-code"]
    changes = plan_install(agent, str(project), command, {})
    path = settings_file(project)
    path.parent.mkdir()
    path.write_text('{"new": 1}')
    with pytest.raises(ToolMemError, match="changed meanwhile"):
        apply_install(agent, str(project), command, changes)
    assert path.read_text() == '{"new": 1}'


def test_a_second_install_is_refused_unless_it_is_forced(toolmem):
    toolmem("install", "claude-code")
    assert "holds toolmem's hook already" in toolmem("install", "claude-code")
    assert "--force" in toolmem("install", "claude-code", "--user")
    assert "installed" in toolmem("install", "claude-code", "--user", "--force")


def test_a_hook_that_came_with_a_renamed_project_can_be_installed_again(toolmem, project):
    toolmem("install", "claude-code")
    path = settings_file(project)
    text = path.read_text()
    toolmem("uninstall", "claude-code")
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)  # as after a move, or where the state folder was lost
    (told,) = examine(AGENTS["claude-code"], str(project))
    assert told.level == "problem" and str(path) in told.text
    for told_text in (told.text, toolmem("install", "claude-code")):
        assert "toolmem hook uninstall claude-code" in told_text
    toolmem("uninstall", "claude-code")
    assert "installed" in toolmem("install", "claude-code")


def test_a_store_or_settings_that_hooks_cannot_use_are_refused(toolmem, project, tmp_path):
    assert "store file" in toolmem("install", "claude-code", "--store", "http://localhost:9200/x")
    (project / "c.yaml").write_text("guard: {ruls: off}")
    install = ("install", "claude-code", "--config", "c.yaml", "--store", str(tmp_path / "own.db"))
    assert "guard.ruls: unknown" in toolmem(*install) and installed() == []
    (project / "c.yaml").write_text("guard: {rules: off}")
    toolmem(*install)
    assert "answered" in toolmem("doctor", "claude-code")
    (project / "c.yaml").write_text("guard: {ruls: off}")
    assert "problem  guard.ruls: unknown" in toolmem("doctor", "claude-code")
    assert (tmp_path / "own.db").exists()
    assert not (project / ".toolmem").exists()


def test_an_interpreter_that_is_thrown_away_and_the_home_folder_are_refused(
    toolmem, own_home, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/home/x/.cache/uv/archive-v0/abc/bin/python")
        assert "thrown away" in toolmem("install", "claude-code")
    monkeypatch.chdir(own_home)
    assert "--user" in toolmem("install", "claude-code")  # it is no project
    assert "exclude" in toolmem("install", "claude-code", "--user", "--project", str(own_home))
    assert installed() == []


def test_closed_makes_the_agent_stop_calls_too(toolmem, project):
    toolmem("install", "claude-code", "--on-error", "closed")
    held = json.loads(settings_file(project).read_bytes())
    (entry,) = held["hooks"]["PreToolUse"]
    assert entry["hooks"][0]["onFailure"] == "block"
    (entry,) = held["hooks"]["PostToolUse"]
    assert "onFailure" not in entry["hooks"][0]


def test_doctor_starts_no_line_of_somebody_elses(toolmem, project):
    path = settings_file(project)
    path.parent.mkdir()
    ran = project / "ran"
    command = f"touch {ran}; python -m toolmem.hooks claude-code"
    hook = {"hooks": [{"type": "command", "command": command}]}
    path.write_text(json.dumps({"hooks": {"PreToolUse": [hook]}}))
    assert "no hook is installed" in toolmem("doctor", "claude-code")
    assert not ran.exists()


def test_doctor_tells_of_a_hook_that_is_gone_or_switched_off(toolmem, project):
    toolmem("install", "claude-code")
    path = settings_file(project)
    path.write_text(path.read_text().replace("{", '{"disableAllHooks": true,', 1))
    assert "disableAllHooks" in toolmem("doctor", "claude-code")
    path.unlink()
    assert "the hook is gone" in toolmem("doctor", "claude-code")


def test_the_installed_line_answers_where_the_environment_is_empty(toolmem, project):
    toolmem("install", "claude-code")
    (install,) = installed()
    event = {"hook_event_name": "SessionStart", "session_id": "s", "cwd": "/"}
    ran = subprocess.run(
        install.command,
        input=json.dumps(event).encode(),
        capture_output=True,
        cwd="/",
        env={"HOME": os.environ["HOME"]},
        check=True,
    )
    assert b"toolmem note" in ran.stdout
    assert (project / ".toolmem" / "memory.db").exists()  # the project stands in the line
    assert "memory.db stays guarded: only you" in toolmem("uninstall", "claude-code")


OTHERS = {"hooks": [{"command": "o"}]}
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda each: (
        st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=4), each, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.text(max_size=5).filter(lambda key: key != "hooks"), VALUES, max_size=4),
    st.sampled_from([None, {}, *({"PreToolUse": each} for each in ([], [OTHERS]))]),
    st.sampled_from([None, 0, 2, "\t"]),
)
def test_any_settings_come_back_cut_or_taken_out(value, hooks, indent):
    held = value if hooks is None else {**value, "hooks": hooks}
    text = json.dumps(held, indent=indent, ensure_ascii=False)
    after, spans = with_entries(text, ENTRIES)
    wanted = json.loads(after)
    assert all(is_ours(wanted["hooks"][event][0]) for event in ENTRIES)
    assert without_spans(after, spans) == text
    rest = json.loads(without_entries(after, is_ours))
    empty = {name: each for name, each in (hooks or {}).items() if each}
    assert rest == ({**value, "hooks": empty} if empty else value)
