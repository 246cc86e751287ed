"""The journal keeps the rules of stores that agents are held to: those of a store that is gone hold on."""

from __future__ import annotations

import sqlite3
import stat
import sys
from contextlib import closing
from pathlib import Path

import pytest

from toolmem.engine import StoreFile, before, prompt_for, user_said
from toolmem.hosts.event_stores import EventStores
from toolmem.hosts.gone_stores import kept_of, stand_in
from toolmem.hosts.loosened import bring_up_to_date
from toolmem.rules.evidence import UserEvidence
from toolmem.store import journal_changes
from toolmem.store.journal import Journal

PUSH = {"tool_name": "exec_command", "input": {"cmd": "git push origin main"}}
TYPED = UserEvidence("typed", "You can push to main again.", "s1", "claude-code")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def opened(path: Path) -> StoreFile:
    """As a hook opens it."""
    store = StoreFile(path)
    store.held = True
    return store


def look_at(store: StoreFile) -> None:
    bring_up_to_date(EventStores(store))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a store with one rule."""
    place = tmp_path / "repo" / ".toolmem" / "memory.db"
    place.parent.mkdir(parents=True)
    with opened(place) as store:
        user_said(store, "Never push to main.", tools=["Bash"], by_class=True)
    return place


@pytest.mark.parametrize("how", ["deleted", "emptied", "overwritten"])
def test_the_rules_of_a_store_that_is_gone_still_bind(path: Path, how: str) -> None:
    if how == "deleted":
        path.unlink()
    else:
        path.write_bytes(b"" if how == "emptied" else b"no database")

    instead = stand_in(path)
    assert instead is not None
    with instead as store:
        assert before(store, PUSH).action == "deny"
        assert before(store, {**PUSH, "input": {"cmd": "git push origin dev"}}).action == "allow"
        assert "Never push to main" in prompt_for(store, ["Bash"])
    assert (how != "deleted") == path.exists()


def test_it_is_the_users_alone_and_written_only_when_rules_changed(path: Path, state: Path) -> None:
    file = state / "toolmem" / "journal.db"
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700

    with opened(path) as store:
        look_at(store)
        known = content(state)
        look_at(store)
        before(store, PUSH)
        prompt_for(store, ["Bash"])
        assert content(state) == known
        user_said(store, "Never use sudo.", tools=["Bash"], by_class=True)
    kept = kept_of(path)
    assert kept is not None
    assert kept.rules == 2


def content(state: Path) -> str:
    with closing(sqlite3.connect(state / "toolmem" / "journal.db")) as db, db:
        return "\n".join(db.iterdump())


def test_a_rule_that_its_user_took_back_is_kept_no_longer(path: Path) -> None:
    with opened(path) as store:
        said = user_said(store, "You can push to main again.", tools=["Bash"], by_class=True, evidence=TYPED)
        assert said.withdrawn
    assert kept_of(path) is None
    assert stand_in(path) is None


def test_of_a_store_that_no_hook_saw_nothing_is_kept(tmp_path: Path, state: Path) -> None:
    with StoreFile(tmp_path / "other.db") as store:
        user_said(store, "Never push to main.", tools=["Bash"], by_class=True)
    assert kept_of(tmp_path / "other.db") is None
    assert stand_in(tmp_path / "other.db") is None
    assert not (state / "toolmem" / "journal.db").exists()


@pytest.mark.parametrize(
    "content", [b"no database, and longer than a header of a hundred bytes is " * 4, b"SQLite format 3\0"]
)
def test_a_journal_that_is_damaged_is_put_aside_and_the_next_look_writes_it_anew(
    path: Path, state: Path, content: bytes
) -> None:
    file = state / "toolmem" / "journal.db"
    for each in file.parent.glob("journal.db*"):
        each.unlink()
    file.write_bytes(content)

    assert stand_in(path) is None
    assert file.read_bytes() == content  # looked at, and left alone
    with opened(path) as store:
        assert before(store, PUSH).action == "deny"
        look_at(store)
    assert kept_of(path) is not None
    assert file.with_name("journal.db.damaged").read_bytes() == content


def test_a_state_folder_that_cannot_be_written_stops_no_agent(path: Path, state: Path) -> None:
    for each in (state / "toolmem").rglob("*"):
        if each.is_file():
            each.unlink()
    for each in (state / "toolmem").iterdir():
        each.rmdir()
    (state / "toolmem").rmdir()
    (state / "toolmem").write_text("in the way")

    with opened(path) as store:
        look_at(store)
        assert user_said(store, "Never use sudo.", tools=["Bash"], by_class=True).rules
        assert before(store, PUSH).action == "deny"


def test_it_is_bounded_and_what_is_checked_comes_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_changes, "MAX_BYTES", 3000)
    with opened(path) as store:
        for number in range(9):
            user_said(store, f"Always answer politely when bash prints {number}", tools=["Bash"])
        user_said(store, "Never use sudo.", tools=["Bash"], by_class=True)

    kept, instead = kept_of(path), stand_in(path)
    assert kept is not None
    assert instead is not None
    with instead:
        assert before(instead, PUSH).action == "deny"
        assert before(instead, {**PUSH, "input": {"cmd": "sudo ls"}}).action == "deny"
    assert kept.left_out > 0
    assert kept.rules < 11


def test_the_entries_follow_from_each_other(path: Path, state: Path) -> None:
    with opened(path) as store:
        user_said(store, "Never use sudo.", tools=["Bash"], by_class=True)
        user_said(store, "You can push to main again.", tools=["Bash"], by_class=True, evidence=TYPED)
    assert Journal().is_whole()

    with closing(sqlite3.connect(state / "toolmem" / "journal.db")) as db, db:
        db.execute("UPDATE entries SET evidence = '' WHERE what = 'lifted'")
        db.execute("UPDATE entries SET at = at - 1 WHERE number = 2")
    db.close()
    assert not Journal().is_whole()
