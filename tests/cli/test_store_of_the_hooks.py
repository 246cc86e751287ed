"""Where no store is named, a command works on the one on which the hooks of this folder act."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolmem.engine import StoreFile
from toolmem.hosts.hook_process import answered


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository without a store, of a user whose hooks are installed for all that she does."""
    for name in ("home", "shop/.git", "shop/src"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def says(project: Path, text: str, *options: str) -> None:
    given = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": str(project), "prompt": text}
    answered(["claude-code", *options], io.BytesIO(json.dumps(given).encode()), {"CLAUDE_PROJECT_DIR": str(project)})


def listed(run: Callable[..., Any], *more: str) -> list[str]:
    return [each["rule"] for each in json.loads(run("rules", "list", "--json", *more).out)]


def test_hooks_for_all_that_a_user_does_and_commands_in_a_project_have_one_store(
    project: Path, tmp_path: Path, run_command: Callable[..., Any]
) -> None:
    assert run_command("hook", "install", "claude-code", "--user").code == 0
    says(project, "Never push to main.")
    assert listed(run_command) == ["Never push to main"]
    assert listed(run_command, "vector_store.default.params.path=.toolmem/memory.db") == []
    assert "push" in run_command("rules", "prompt").out
    run_command("rules", "add", "Bash", "never use sudo")
    assert len(listed(run_command)) == 2
    assert not (project / ".toolmem").exists()


@pytest.mark.parametrize("folder", [".", "src"])
def test_hooks_of_a_project_and_commands_anywhere_in_it_have_one_store(
    project: Path, monkeypatch: pytest.MonkeyPatch, run_command: Callable[..., Any], folder: str
) -> None:
    assert run_command("hook", "install", "claude-code").code == 0
    says(project, "Never push to main.")
    monkeypatch.chdir(project / folder)
    assert listed(run_command) == ["Never push to main"]
    assert not (project / "src" / ".toolmem").exists()


def test_the_store_that_an_install_names_is_the_one_of_commands(
    project: Path, tmp_path: Path, run_command: Callable[..., Any]
) -> None:
    store = str(tmp_path / "own.db")
    assert run_command("hook", "install", "claude-code", "--store", store).code == 0
    says(project, "Never push to main.", "--store", store)
    assert listed(run_command) == ["Never push to main"]
    assert run_command("tools", "list").code == 0


def test_where_several_stores_bind_the_first_line_says_which_one_is_meant(
    project: Path, tmp_path: Path, run_command: Callable[..., Any]
) -> None:
    run_command("hook", "install", "claude-code", "--user")
    users = tmp_path / "home" / ".toolmem" / "memory.db"
    StoreFile(project / ".toolmem" / "memory.db").make().close()
    says(project, "Never push to main.")
    for command in (("rules", "list"), ("guard", "log"), ("tools", "list"), ("rules", "delete", "0000")):
        first = run_command(*command).err.splitlines()[0]
        assert f"{project}/.toolmem/memory.db" in first
        assert str(users) in first
    named = run_command("rules", "list", f"vector_store.default.params.path={users}")
    assert str(project) not in named.err


def test_without_hooks_a_command_works_on_the_working_directory(
    project: Path, monkeypatch: pytest.MonkeyPatch, run_command: Callable[..., Any]
) -> None:
    run_command("rules", "add", "Bash", "never use sudo")
    assert (project / ".toolmem" / "memory.db").is_file()
    monkeypatch.chdir(project / "src")
    assert listed(run_command) == []


def test_hooks_that_somebody_took_out_of_the_settings_name_no_store(
    project: Path, tmp_path: Path, run_command: Callable[..., Any]
) -> None:
    run_command("hook", "install", "claude-code", "--user")
    (tmp_path / "home" / ".claude" / "settings.json").write_text("{}")
    run_command("rules", "add", "Bash", "never use sudo")
    assert (project / ".toolmem" / "memory.db").is_file()


def test_a_store_that_came_with_a_folder_is_not_believed_for_an_install(
    project: Path, tmp_path: Path, run_command: Callable[..., Any]
) -> None:
    with StoreFile(tmp_path / "theirs.db") as theirs:
        from toolmem.engine import user_said

        user_said(theirs, "Never push to main.", tools=["Bash"], by_class=True)
    run_command("hook", "install", "claude-code", "--user")
    (project / ".toolmem").mkdir()
    (tmp_path / "theirs.db").rename(project / ".toolmem" / "memory.db")
    assert "neither made nor trusted" in run_command("rules", "prompt").err
