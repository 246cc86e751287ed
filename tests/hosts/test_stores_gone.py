"""A hook whose store was deleted or damaged goes on by the rules that it saw last, and says so."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolmem.engine import StoreFile, user_said
from toolmem.hosts.event_stores import open_stores
from toolmem.hosts.hook_process import answered
from toolmem.hosts.rule_snapshots import gone, snapshot_of

Said = Callable[..., dict[str, Any]]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a store, in a home of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    StoreFile(folder / ".toolmem" / "memory.db").close()
    return folder


@pytest.fixture
def told(repo: Path) -> Said:
    """Hands Claude Code's events to the hook."""
    number = 0

    def tell(event: str, **payload: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        given = {"hook_event_name": event, "session_id": "s1", "cwd": str(repo), "prompt_id": f"p{number}"}
        given |= {"tool_use_id": f"toolu_{number}", **payload}
        answer = answered(["claude-code"], io.BytesIO(json.dumps(given).encode()), {"CLAUDE_PROJECT_DIR": str(repo)})
        return json.loads(answer) if answer else {}

    return tell


def decision(answer: dict[str, Any]) -> str:
    return str(answer.get("hookSpecificOutput", {}).get("permissionDecision", "allow"))


def push(told: Said, branch: str = "main") -> str:
    return decision(told("PreToolUse", tool_name="Bash", tool_input={"command": f"git push origin {branch}"}))


def lose(store: Path, how: str) -> None:
    if how == "folder deleted":
        for each in store.parent.iterdir():
            each.unlink()
        store.parent.rmdir()
        return
    for beside in ("-wal", "-shm"):
        Path(f"{store}{beside}").unlink(missing_ok=True)
    store.unlink() if how == "deleted" else store.write_bytes(b"" if how == "emptied" else b"no database at all")


@pytest.mark.parametrize("how", ["deleted", "folder deleted", "emptied", "overwritten"])
def test_the_rules_hold_when_the_store_is_gone(repo: Path, told: Said, how: str) -> None:
    told("UserPromptSubmit", prompt="Never push to main.")
    assert push(told) == "deny"
    store = repo / ".toolmem" / "memory.db"
    lose(store, how)

    assert push(told) == "deny"
    assert push(told, "feature/x") == "allow"
    begun = told("SessionStart", source="startup")
    assert "Never push to main" in begun["hookSpecificOutput"]["additionalContext"]
    assert f"the store {store} is gone or cannot be read: its 1 rule" in begun["systemMessage"]
    assert store.exists() == (how in {"emptied", "overwritten"})


def test_what_is_said_then_holds_for_the_session_and_is_told(repo: Path, told: Said) -> None:
    told("UserPromptSubmit", prompt="Never push to main.")
    lose(repo / ".toolmem" / "memory.db", "deleted")

    heard = told("UserPromptSubmit", prompt="Never use sudo.")
    assert "its store is gone" in heard["systemMessage"]
    assert decision(told("PreToolUse", tool_name="Bash", tool_input={"command": "sudo ls"})) == "deny"


def test_deleting_what_was_kept_lets_the_rules_go(repo: Path, told: Said) -> None:
    told("UserPromptSubmit", prompt="Never push to main.")
    store = repo / ".toolmem" / "memory.db"
    lose(store, "deleted")
    kept = snapshot_of(store)
    assert kept is not None
    assert [each.store for each in gone()] == [str(store)]

    kept.file.unlink()
    assert push(told) == "allow"
    assert gone() == []


def test_another_store_in_its_place_lifts_nothing_either(repo: Path, told: Said, tmp_path: Path) -> None:
    told("UserPromptSubmit", prompt="Never push to main.")
    store = repo / ".toolmem" / "memory.db"
    lose(store, "deleted")
    with StoreFile(tmp_path / "elsewhere.db") as other:
        user_said(other, "Never use sudo.", tools=["Bash"], by_class=True)
    (tmp_path / "elsewhere.db").rename(store)

    assert push(told) == "deny"


def test_a_project_that_never_had_a_store_has_none_now(repo: Path, tmp_path: Path) -> None:
    stores = open_stores(str(tmp_path / "other"), "", str(tmp_path / "home"))
    assert stores.gone == ()
    stores.close()
