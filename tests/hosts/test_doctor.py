"""`doctor` sees from outside what is wrong with an agent's hooks, and says what to do."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.claude_session import ClaudeSession
from toolmem.engine import StoreFile
from toolmem.hosts import installing
from toolmem.hosts.doctor import examine
from toolmem.hosts.host import HOSTS, host_of
from toolmem.hosts.installing import hook_command
from toolmem.hosts.receipts import Receipts
from toolmem.hosts.settings_files import HookPlace, plan_install, write_all

PRESENT = [name for name, module in HOSTS.items() if importlib.util.find_spec(module)]
SETTINGS = ".claude/settings.local.json"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_command) -> Path:
    """A folder with the hooks of Claude Code, the working directory."""
    home, folder = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    for name in ("CLAUDE_CONFIG_DIR", "TOOLMEM_GUARD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder)
    assert run_command("hook", "install", "claude-code").code == 0
    return folder


@pytest.fixture
def examined(project: Path, run_command) -> Callable[..., tuple[int, list[dict[str, Any]]]]:
    def examine(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
        ran = run_command("hook", "doctor", "claude-code", "--json", *arguments)
        return ran.code, json.loads(ran.out)

    return examine


def wrong(found: list[dict[str, Any]]) -> list[str]:
    assert all(each["remedy"] for each in found if each["level"] == "wrong")
    return [each["check"] for each in found if each["level"] == "wrong"]


def edit(project: Path, change: Callable[[dict[str, Any]], None]) -> None:
    value = json.loads((project / SETTINGS).read_text())
    change(value)
    (project / SETTINGS).write_text(json.dumps(value))


def note(project: Path) -> None:
    """The line that stands there is the one that was installed."""
    hook = json.loads((project / SETTINGS).read_text())["hooks"]["PreToolUse"][0]["hooks"][0]
    command = [hook["command"], *hook["args"]] if "args" in hook else hook["command"].split()
    receipts = Receipts()
    receipts.install_added("claude-code", "project", str(project), command=command, files=[str(project / SETTINGS)])
    receipts.close()


@pytest.mark.parametrize(
    "hook",
    [
        {"command": "MARK", "args": ["toolmem.hosts"]},
        {"command": "MARK toolmem-hook claude-code"},
        {"command": sys.executable, "args": ["-c", "MARK", "-m", "toolmem.hosts", "claude-code"]},
        {"command": f"{sys.executable} -P -m toolmem.hosts claude-code; MARK"},
        {"command": f"{sys.executable} -P -m toolmem.hosts claude-code\nMARK"},
        {"command": f'{sys.executable} -P -m toolmem.hosts claude-code "$(MARK)"'},
    ],
)
def test_a_line_that_came_with_a_folder_is_not_run(project: Path, examined, hook: dict[str, Any]) -> None:
    mark = project.parent / "ran"
    program = project / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    code = f"open({str(mark)!r}, 'w')" if "-c" in hook.get("args", ()) else str(program)
    put = json.loads(json.dumps({"type": "command", **hook}).replace("MARK", code))
    (project / SETTINGS).write_text(json.dumps({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [put]}]}}))
    ended, found = examined()
    assert ended == 1
    assert "line" in wrong(found)
    assert not mark.exists()


def test_a_fresh_install_is_in_order(examined) -> None:
    code, found = examined()
    assert (code, wrong(found)) == (0, [])
    assert Receipts().counts() == {}  # what was made up is no event
    assert Receipts().sessions() == []
    assert {"settings", "interpreter", "trial", "store"} <= {each["check"] for each in found if each["level"] == "ok"}


@pytest.mark.parametrize("agent", PRESENT)
def test_blanks_quotes_and_signs_of_a_shell_in_paths_are_no_trouble_with_any_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    odd = tmp_path / "a 'b\" $x; ü"
    (odd / "project").mkdir(parents=True)
    (odd / "environment").symlink_to(sys.prefix)
    monkeypatch.setattr(installing.sys, "executable", str(odd / "environment" / "bin" / "python"))
    monkeypatch.setenv("HOME", str(odd))
    monkeypatch.setenv("XDG_STATE_HOME", str(odd / "state"))
    place = HookPlace(host_of(agent), "project", odd / "project", odd, {})
    command = hook_command(agent, store=odd / "my store.db", on_error="open", config=None)
    write_all(place.host, plan_install(place, command), installs=True)
    found = examine(place)
    assert [each for each in found if each.level == "wrong"] == []
    assert [each.level for each in found if each.check == "trial"] == ["ok"]
    assert (odd / "my store.db").is_file()


def test_without_an_install_the_remedy_is_the_command(project: Path, run_command) -> None:
    assert run_command("hook", "uninstall", "claude-code").code == 0
    ran = run_command("hook", "doctor", "claude-code")
    assert ran.code == 1
    assert f"toolmem hook install claude-code --project {project}" in ran.out


def _each_hook(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def on_all(value: dict[str, Any]) -> None:
        for entries in value["hooks"].values():
            for entry in entries:
                for hook in entry["hooks"]:
                    change(hook)

    return on_all


@pytest.mark.parametrize(
    ("change", "expected", "told"),
    [
        (_each_hook(lambda hook: hook.update(command="/nowhere/python")), "interpreter", "/nowhere/python"),
        (_each_hook(lambda hook: hook.update(command="/nowhere/python")), "trial", "cannot be started"),
        (_each_hook(lambda hook: hook.update(args=["-m", "toolmem.hosts.gone"])), "trial", "exit code 1"),
        (_each_hook(lambda hook: hook.update(args=[*hook["args"][:-1], "nobody"])), "trial", "no receipt"),
        (lambda value: value["hooks"].pop("PostToolUse"), "settings", "not every event"),
        (lambda value: value.update(disableAllHooks=True), "settings", "disableAllHooks"),
        (lambda value: value.update(env={"TOOLMEM_GUARD": "off"}), "guard", "switches the guard off"),
    ],
)
def test_a_line_that_does_not_work_is_found(project: Path, examined, change, expected: str, told: str) -> None:
    edit(project, change)
    note(project)
    code, found = examined()
    assert code == 1
    assert expected in wrong(found)
    assert any(told in each["seen"] for each in found if each["check"] == expected)


def test_a_program_that_answers_something_else_is_found(project: Path, examined, tmp_path: Path) -> None:
    other = tmp_path / "toolmem-hook"
    other.write_text(f"#!{sys.executable}\nprint('hello')\n")
    other.chmod(0o755)
    edit(project, _each_hook(lambda hook: (hook.pop("args"), hook.update(command=f"{other} claude-code"))))
    note(project)
    code, found = examined()
    assert code == 1
    assert any("no JSON object" in each["seen"] for each in found if each["check"] == "trial")


def test_settings_that_the_agent_cannot_read_are_found(project: Path, examined) -> None:
    (project / SETTINGS).write_text('{"hooks": }')
    code, found = examined()
    assert (code, wrong(found)) == (1, ["settings"])
    assert "line 1, column 11" in found[0]["seen"]


def test_calls_that_no_hook_saw_are_counted_and_named(project: Path, examined) -> None:
    receipts = Receipts()
    receipts._write(lambda db: db.execute("UPDATE installs SET at = 1"), None)
    receipts.close()
    session = ClaudeSession(project, Path(os.environ["HOME"]))
    missing = "toolu_69216ad1a612e87f2671c2b3"
    session.tell(lambda payload: payload.get("tool_use_id") != missing)
    code, found = examined()
    (seen,) = (each["seen"] for each in found if each["check"] == "recordings")
    assert code == 1
    assert seen.endswith(f"9 calls, 8 receipts, 1 missing: Write {missing}")

    session.tell(lambda payload: payload.get("tool_use_id") == missing)
    code, found = examined()
    assert (code, wrong(found)) == (0, [])
    assert any(each["seen"].endswith("9 calls, 9 receipts") for each in found)


def test_calls_from_before_the_install_are_not_missed(project: Path, examined, monkeypatch) -> None:
    ClaudeSession(project, Path(os.environ["HOME"]))
    receipts = Receipts()
    receipts._write(lambda db: db.execute("UPDATE installs SET at = 4000000000"), None)
    receipts.close()
    code, found = examined()
    assert (code, wrong(found)) == (0, [])


def test_a_store_that_somebody_else_made_is_found(project: Path, examined, monkeypatch) -> None:
    for path in (project / ".toolmem").glob("memory.db*"):
        path.unlink()
    with monkeypatch.context() as other:
        other.setenv("XDG_STATE_HOME", os.environ["HOME"] + "/other")
        StoreFile(project / ".toolmem" / "memory.db").make().close()
    code, found = examined()
    assert code == 1
    assert any("toolmem store trust" in each["remedy"] for each in found if each["check"] == "store")


def test_a_switched_off_guard_and_a_second_install_are_told(project: Path, run_command, examined, monkeypatch) -> None:
    assert run_command("hook", "install", "claude-code", "--user").code == 0
    code, found = examined()
    assert code == 0
    assert any("one acts" in each["seen"] for each in found if each["level"] == "note")
    monkeypatch.setenv("TOOLMEM_GUARD", "off")
    code, found = examined()
    assert (code, wrong(found)) == (1, ["guard"])
    monkeypatch.setenv("TOOLMEM_GUARD", "disabled")
    code, found = examined()
    assert code == 0
    assert any("so the guard stays on" in each["seen"] for each in found if each["check"] == "guard")


def test_the_status_line_is_of_the_session_that_is_told(project: Path, run_command) -> None:
    assert run_command("rules", "add", "Bash", "never push to main").code == 0
    receipts = Receipts()
    for session, key, action in (("s1", "a", "deny"), ("s1", "b", "advise"), ("s2", "c", "deny"), ("s2", "d", "deny")):
        receipts.begin("claude-code", session, "before_call", key)
        receipts.end(session, "before_call", key, action=action)
    receipts.close()
    told = json.dumps({"session_id": "s1", "workspace": {"project_dir": str(project)}})
    command = [sys.executable, "-m", "toolmem", "hook", "status", "claude-code", "--line"]
    ran = subprocess.run(command, input=told, capture_output=True, text=True, check=True, cwd="/")
    assert ran.stdout == "1 rule · 1 advised · 1 stopped\n"
    for strange in ("", "[]", "{", '{"session_id": 1, "workspace": 2}'):
        ran = subprocess.run(command, input=strange, capture_output=True, text=True, check=True)
        assert ran.stdout == "1 rule · 1 advised · 3 stopped\n"


def test_hooks_for_all_that_a_user_does_are_found_from_a_project(project: Path, run_command, examined) -> None:
    assert run_command("hook", "uninstall", "claude-code").code == 0
    assert run_command("hook", "install", "claude-code", "--user").code == 0
    code, found = examined()
    assert (code, wrong(found)) == (0, [])
    assert "--user" in found[0]["seen"]
    assert not any("hook install" in each["remedy"] for each in found)
    ran = run_command("hook", "uninstall", "claude-code")
    assert "settings.json still: --user takes them out" in ran.err
    assert run_command("hook", "uninstall", "claude-code", "--user").code == 0
    assert wrong(examined()[1]) == ["settings"]


def test_hooks_of_a_project_are_found_from_a_folder_in_it(
    project: Path, run_command, examined, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "src").mkdir()
    monkeypatch.chdir(project / "src")
    code, found = examined()
    assert (code, wrong(found)) == (0, [])
    assert f"--project {project}" in found[0]["seen"]
