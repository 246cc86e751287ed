"""Whether a store was made by this user's toolmem, or came from somewhere else."""

import shutil
from pathlib import Path

import pytest

from toolmem.errors import StoreUnavailable
from toolmem.guard.self_protection import own_paths
from toolmem.store.sqlite import SqliteStore


@pytest.fixture
def state(tmp_path, monkeypatch):
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder


def made(path, call):
    with SqliteStore(path) as store:
        store.append_calls("w", [call()], 5)
        assert store.untrusted == ""
    return path


def test_a_store_that_was_made_here_is_trusted_also_by_the_next_process(tmp_path, call, state):
    made(tmp_path / "a.db", call)
    assert len(list(state.rglob("*.json"))) == 1
    with SqliteStore(tmp_path / "a.db") as store:
        assert store.untrusted == ""


def test_a_store_that_came_with_a_folder_is_read_and_not_trusted(tmp_path, call, state):
    made(tmp_path / "a.db", call)
    shutil.copy(tmp_path / "a.db", tmp_path / "cloned.db")
    with SqliteStore(tmp_path / "cloned.db") as store:
        assert "cloned.db is not known to be made by this user's toolmem" in store.untrusted
        assert store.tool_names("w") == ["search"]
        store.trust()
        assert store.untrusted == ""
    with SqliteStore(tmp_path / "cloned.db") as store:
        assert store.untrusted == ""


def test_a_file_put_into_the_place_of_a_trusted_store_is_not_trusted(tmp_path, call, state):
    made(tmp_path / "a.db", call)
    shutil.copy(tmp_path / "a.db", tmp_path / "copy.db")
    shutil.move(tmp_path / "copy.db", tmp_path / "a.db")
    with SqliteStore(tmp_path / "a.db") as store:
        assert store.untrusted


def test_a_store_in_memory_and_one_that_is_not_there_yet_are_trusted(tmp_path, call, state):
    with SqliteStore(":memory:") as store:
        store.append_calls("w", [call()], 5)
        assert store.untrusted == ""
    with SqliteStore(tmp_path / "none.db") as store:
        assert store.untrusted == ""


def test_without_a_place_to_remember_it_a_new_store_is_trusted_by_its_process_alone(
    tmp_path, call, monkeypatch
):
    Path(tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    made(tmp_path / "a.db", call)
    with SqliteStore(tmp_path / "a.db") as store, pytest.raises(StoreUnavailable, match="trusted"):
        store.trust()


def test_a_home_that_is_no_absolute_path_vouches_for_no_store(tmp_path, call, state, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = made(tmp_path / "a.db", call)
    notes = tmp_path / "theirs" / ".toolmem" / "trusted-stores"
    shutil.copytree(state / "toolmem" / "trusted-stores", notes)
    shutil.rmtree(state)
    monkeypatch.setenv("HOME", "theirs")
    monkeypatch.setattr("toolmem.store.sqlite.trust._made_here", set())
    with SqliteStore(path) as store:
        assert store.untrusted


def test_without_a_home_a_guard_protects_the_files_of_its_stores(tmp_path, call, monkeypatch):
    path = tmp_path / "a.db"
    with SqliteStore(path) as store:
        store.append_calls("w", [call()], 5)
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        monkeypatch.delenv("XDG_DATA_HOME", raising=False)
        monkeypatch.setenv("HOME", "theirs")
        assert own_paths(store) == [str(path)]
