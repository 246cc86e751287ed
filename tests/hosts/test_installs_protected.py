"""What an install wrote is changed by the user alone, on every road that asks the guard, until it is uninstalled."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from toolmem import ToolMem
from toolmem.cli import main
from toolmem.engine import StoreFile, before
from toolmem.hosts.host import HOSTS
from toolmem.hosts.install_notes import InstallNote, forget_note, keep_note


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Of an agent, with hooks in it."""
    file = tmp_path / "repo" / ".claude" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    keep_note("claude-code", file, InstallNote.between(file, b"", b"{}", []))
    return file


def action(store: Path, tool: str, given: dict[str, Any], cwd: Path) -> str:
    with StoreFile(store) as opened:
        return before(opened, {"tool_name": tool, "input": given}, cwd=str(cwd)).action


def test_the_settings_with_our_hooks_are_protected_whole(settings: Path, tmp_path: Path) -> None:
    store, repo = tmp_path / "memory.db", tmp_path / "repo"

    for tool, given in (
        ("Write", {"file_path": str(settings), "content": "{}"}),
        ("Edit", {"file_path": ".claude/settings.json", "old_string": "opus", "new_string": "sonnet"}),
        ("Bash", {"command": "echo '{}' > .claude/settings.json"}),
        ("Bash", {"command": f"rm {settings}"}),
        ("exec_command", {"cmd": "rm -rf .claude"}),
        ("Bash", {"command": f"rm {sys.executable}"}),
    ):
        assert action(store, tool, given, repo) == "deny", given
    for tool, given in (
        ("Read", {"file_path": str(settings)}),
        ("Write", {"file_path": str(repo / ".claude" / "settings.local.json"), "content": "{}"}),
        ("Write", {"file_path": str(repo / ".claude" / "agents" / "a.md"), "content": "x"}),
        ("Bash", {"command": f"{sys.executable} -m pytest"}),
        ("Bash", {"command": "cat .claude/settings.json"}),
    ):
        assert action(store, tool, given, repo) == "allow", given


def test_a_program_that_asks_the_guard_holds_its_agent_to_it_too(settings: Path, tmp_path: Path) -> None:
    with ToolMem(tmp_path / "memory.db") as mem:
        assert mem.check_tool_call("write_file", {"path": str(settings), "content": "{}"}).action == "deny"
        assert mem.check_tool_call("write_file", {"path": str(settings) + ".md", "content": "{}"}).action == "allow"


def test_what_was_uninstalled_is_anybodys_again(settings: Path, tmp_path: Path) -> None:
    forget_note("claude-code", settings)

    given = {"file_path": str(settings), "content": "{}"}
    assert action(tmp_path / "memory.db", "Write", given, tmp_path) == "allow"
    assert action(tmp_path / "memory.db", "Bash", {"command": f"rm {sys.executable}"}, tmp_path) == "allow"


def test_a_damaged_note_takes_no_other_along(settings: Path, tmp_path: Path) -> None:
    notes = tmp_path / "state" / "toolmem" / "hook-installs"
    for name, text in (("a.json", "{"), ("b.json", "[]"), ("c.json", '{"path": 3}'), ("d.txt", "x")):
        (notes / name).write_text(text)

    assert action(tmp_path / "memory.db", "Write", {"file_path": str(settings), "content": "{}"}, tmp_path) == "deny"


@pytest.mark.parametrize("name", ["hooks.db", "hooks.db-wal", "rules/1234.jsonl", "hook-installs/1.json"])
def test_what_hooks_remember_is_protected(name: str, tmp_path: Path) -> None:
    place = tmp_path / "state" / "toolmem" / name

    for command in (f"rm {place}", f"echo > {place}", f"sqlite3 {place} 'delete from receipts'"):
        assert action(tmp_path / "memory.db", "Bash", {"command": command}, tmp_path) == "deny", command
    assert action(tmp_path / "memory.db", "Bash", {"command": f"ls {place}"}, tmp_path) == "allow"


# ---------------------------------------------------------------- through the commands and hooks themselves


HERE = [name for name, module in HOSTS.items() if importlib.util.find_spec(module) is not None]


def run(*arguments: str) -> int:
    """A command line, and its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


def files_below(folder: Path) -> dict[Path, bytes]:
    return {each: each.read_bytes() for each in folder.rglob("*") if each.is_file() and ".toolmem" not in each.parts}


@pytest.mark.parametrize("name", HERE)
def test_no_file_that_an_install_wrote_is_changed_by_the_agent(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    repo = tmp_path / "repo"
    repo.mkdir()
    before_it = files_below(tmp_path)
    assert run("hook", "install", name, "--project", str(repo)) == 0
    written = [path for path, data in files_below(repo).items() if before_it.get(path) != data]
    assert written

    store = repo / ".toolmem" / "memory.db"
    for path in written:
        for tool, given in (
            ("write_file", {"path": str(path), "content": ""}),
            ("apply_patch", {"input": f"*** Begin Patch\n*** Delete File: {path.relative_to(repo)}\n*** End Patch"}),
            ("bash", {"command": f"cd {path.parent} && rm {path.name}"}),
            ("bash", {"command": f"true > {path.relative_to(repo)}"}),
            ("bash", {"command": f"mv {path} {path}.off"}),
        ):
            assert action(store, tool, given, repo) == "deny", given
        beside = path.with_name("another-file.txt")
        assert action(store, "write_file", {"path": str(beside), "content": ""}, repo) == "allow"
        assert action(store, "bash", {"command": f"cat {path}"}, repo) == "allow"

    for line, expected in (
        (f"toolmem hook uninstall {name}", "deny"),
        (f"toolmem hook install {name} --project .", "deny"),
        (f"toolmem hook status {name}", "allow"),
        (f"toolmem hook doctor {name}", "allow"),
    ):
        assert action(store, "bash", {"command": line}, repo) == expected, line

    assert run("hook", "uninstall", name, "--project", str(repo)) == 0
    assert action(store, "write_file", {"path": str(written[0]), "content": ""}, repo) == "allow"
