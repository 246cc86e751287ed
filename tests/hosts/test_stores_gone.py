"""A hook whose store was deleted or damaged goes on by the rules that it saw last, and says so."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from toolmem.engine import StoreFile, user_said
from toolmem.hosts.event_stores import open_stores
from toolmem.hosts.gone_stores import gone
from toolmem.hosts.hook_process import answered
from toolmem.store.known_stores import _made_here

Said = Callable[..., dict[str, Any]]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a store, in a home of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    StoreFile(folder / ".toolmem" / "memory.db").make().close()
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


def test_the_user_lets_the_rules_of_a_store_that_is_gone_go(repo: Path, told: Said) -> None:
    told("UserPromptSubmit", prompt="Never push to main.")
    store = repo / ".toolmem" / "memory.db"
    lose(store, "deleted")
    assert [each.path for each in gone()] == [str(store)]

    heard = told("UserPromptSubmit", prompt="let them go")
    assert "hold no longer" in heard["systemMessage"]
    assert push(told) == "allow"
    assert gone() == []


def test_the_user_keeps_the_rules_of_a_store_that_is_gone_in_a_new_one(repo: Path, told: Said) -> None:
    told("UserPromptSubmit", prompt="Never push to main.")
    store = repo / ".toolmem" / "memory.db"
    lose(store, "deleted")

    heard = told("UserPromptSubmit", prompt="Keep them.")
    assert "put back into their store" in heard["systemMessage"]
    assert store.exists()
    assert push(told) == "deny"
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


def flipped(store: Path, at: int, mask: int = 0xFF) -> None:
    data = bytearray(store.read_bytes())
    data[at] ^= mask
    store.write_bytes(data)


def flip_all(store: Path, whole: bytes, what: bytes, mask: int) -> None:
    at = whole.index(what)
    while at >= 0:
        flipped(store, at, mask)
        at = whole.find(what, at + 1)


def put_into_one_file(store: Path) -> bytes:
    """Nothing is left in the log; as a store lies there when no session runs."""
    db = apsw.Connection(str(store))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()
    return store.read_bytes()


@pytest.mark.parametrize(
    ("what", "mask"),
    [(b"SQLite format 3", 0xFF), (b"tmem", 0x01), (b"Never push to main", 0xFF)],
    ids=["the magic", "the mark", "the text of a rule"],
)
def test_the_rules_hold_where_a_byte_of_the_store_is_flipped(repo: Path, told: Said, what: bytes, mask: int) -> None:
    told("UserPromptSubmit", prompt="Never push to main.")
    told("SessionStart", source="startup")
    store = repo / ".toolmem" / "memory.db"
    whole = put_into_one_file(store)
    flip_all(store, whole, what, mask)

    assert push(told) == "deny"
    assert push(told, "feature/x") == "allow"
    assert "Never push to main" in told("SessionStart", source="compact")["hookSpecificOutput"]["additionalContext"]
    assert "is gone or cannot be read: its 1 rule" in told("SessionStart", source="resume")["systemMessage"]


def test_the_rules_hold_whichever_page_of_the_store_is_damaged(repo: Path, told: Said) -> None:
    told("UserPromptSubmit", prompt="Never push to main.")
    told("SessionStart", source="startup")
    store = repo / ".toolmem" / "memory.db"
    whole = put_into_one_file(store)
    call = {"session_id": "s1", "cwd": str(repo), "tool_name": "Bash"}
    call |= {"tool_input": {"command": "git push origin main"}, "tool_response": "done", "prompt": "Never use sudo."}
    for at in range(2048, len(whole), 4 * 2048):  # the kind of a page
        for beside in ("-wal", "-shm"):
            Path(f"{store}{beside}").unlink(missing_ok=True)
        store.write_bytes(whole)
        flipped(store, at)
        # processes of their own, as hooks are: this one holds the file open
        assert decision(in_a_process({**call, "hook_event_name": "PreToolUse", "tool_use_id": f"at-{at}"})) == "deny"
        for event in ("PostToolUse", "UserPromptSubmit"):
            in_a_process({**call, "hook_event_name": event, "tool_use_id": f"at-{at}"})


def in_a_process(payload: dict[str, Any]) -> dict[str, Any]:
    hook = [sys.executable, "-P", "-m", "toolmem.hosts", "claude-code"]
    done = subprocess.run(hook, input=json.dumps(payload).encode(), capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    answer: dict[str, Any] = json.loads(done.stdout or b"{}")
    return answer


def test_a_damaged_store_of_which_nothing_was_kept_is_told_and_the_agent_goes_on(repo: Path, told: Said) -> None:
    store = repo / ".toolmem" / "memory.db"
    put_into_one_file(store)
    flipped(store, 0)
    begun = told("SessionStart", source="startup")
    assert f"the store {store} is damaged" in begun["systemMessage"]
    assert push(told) == "allow"


def test_a_store_that_is_damaged_during_a_session_is_told_once_and_calls_go_on(repo: Path, told: Said) -> None:
    told("SessionStart", source="startup")
    told("UserPromptSubmit", prompt="Never push to main.")
    store = repo / ".toolmem" / "memory.db"
    flip_all(store, put_into_one_file(store), b"Never push to main", 0xFF)

    first = told("PreToolUse", tool_name="Bash", tool_input={"command": "git push origin main"})
    assert decision(first) == "deny"
    assert f"the store {store} is gone or cannot be read: its 1 rule" in first["systemMessage"]
    ended = told("PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_response="done")
    assert "systemMessage" not in ended
    assert push(told, "feature/x") == "allow"
    assert "is gone or cannot be read" not in told("UserPromptSubmit", prompt="Go on.").get("systemMessage", "")


@pytest.mark.parametrize("what", [b"SQLite format 3", b"store_id"], ids=["the magic", "whose it is"])
def test_a_damaged_store_that_somebody_else_made_is_not_believed(repo: Path, told: Said, what: bytes) -> None:
    store = repo / ".toolmem" / "memory.db"
    flip_all(store, put_into_one_file(store), what, 0xFF)
    known = list(Path(repo.parent / "state").rglob("known-stores/*.json"))
    for each in known:
        each.unlink()
    _made_here.clear()

    assert known
    assert "you neither made nor trusted it" in told("SessionStart", source="startup")["systemMessage"]
    assert push(told) == "allow"
