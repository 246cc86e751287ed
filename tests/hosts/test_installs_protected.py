"""What an install wrote is changed by the user alone, on every road that asks the guard, until it is uninstalled."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from toolmem import ToolMem
from toolmem.engine import StoreFile, before
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
