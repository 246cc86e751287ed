"""The rules of a store that is gone hold on, as they were last seen."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from toolmem.engine import StoreFile, before, prompt_for, user_said
from toolmem.hosts import rule_snapshots
from toolmem.hosts.rule_snapshots import keep_rules, snapshot_of, snapshots, stand_in

PUSH = {"tool_name": "exec_command", "input": {"cmd": "git push origin main"}}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a store with one rule."""
    place = tmp_path / "repo" / ".toolmem" / "memory.db"
    place.parent.mkdir(parents=True)
    with StoreFile(place) as store:
        user_said(store, "Never push to main.", tools=["Bash"], by_class=True)
        assert keep_rules(store)
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


def test_it_is_the_users_alone_and_written_only_when_rules_changed(path: Path) -> None:
    kept = snapshot_of(path)
    assert kept is not None
    assert kept.rules == 1
    if sys.platform != "win32":
        assert stat.S_IMODE(kept.file.stat().st_mode) == 0o600
        assert stat.S_IMODE(kept.file.parent.stat().st_mode) == 0o700

    with StoreFile(path) as store:
        assert not keep_rules(store)
        assert not keep_rules(store)
        user_said(store, "Never use sudo.", tools=["Bash"], by_class=True)
        assert keep_rules(store)
    assert [each.rules for each in snapshots()] == [2]


def test_a_rule_that_was_taken_back_is_kept_no_longer(path: Path) -> None:
    with StoreFile(path) as store:
        assert user_said(store, "You can push to main again.", tools=["Bash"], by_class=True).withdrawn
        assert keep_rules(store)
    path.unlink()

    instead = stand_in(path)
    assert instead is not None
    with instead as store:
        assert before(store, PUSH).action == "allow"


def test_of_a_store_that_no_hook_saw_nothing_is_kept(tmp_path: Path) -> None:
    assert snapshot_of(tmp_path / "other.db") is None
    assert stand_in(tmp_path / "other.db") is None


@pytest.mark.parametrize("text", ["", "{", "[]\n", '{"version": 99}\n', '{"version": 1}\n["tool-bash"]\n'])
def test_one_that_is_damaged_is_none_and_the_next_look_writes_it_anew(path: Path, text: str) -> None:
    kept = snapshot_of(path)
    assert kept is not None
    kept.file.write_text(text)

    assert stand_in(path) is None
    with StoreFile(path) as store:
        assert keep_rules(store)
    assert snapshot_of(path) is not None


def test_a_state_folder_that_cannot_be_written_stops_no_agent(path: Path, state: Path) -> None:
    kept = snapshot_of(path)
    assert kept is not None
    kept.file.unlink()
    kept.file.parent.rmdir()
    kept.file.parent.write_text("in the way")

    with StoreFile(path) as store:
        assert not keep_rules(store)


def test_it_is_bounded_and_what_is_checked_comes_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with StoreFile(path) as store:
        for number in range(5):
            user_said(store, f"Always answer politely when bash prints {number}", tools=["Bash"])
        monkeypatch.setattr(rule_snapshots, "MAX_BYTES", 2000)
        assert keep_rules(store)

    kept, instead = snapshot_of(path), stand_in(path)
    assert kept is not None
    assert instead is not None
    with instead:
        assert before(instead, PUSH).action == "deny"
    assert kept.left_out > 0
    assert kept.file.stat().st_size < 3000
