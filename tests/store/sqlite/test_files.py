"""Which files are a store, what stands beside them, and what is refused."""

import os
import stat
from pathlib import Path

import apsw
import pytest
from store.sqlite.conftest import written

from toolmem.errors import StoreClosed, StoreError, StoreUnavailable, StoreVersionError
from toolmem.store.sqlite import SqliteStore
from toolmem.store.sqlite.files import APPLICATION_ID


def sqlite_file(path, application, version):
    marks = (f"PRAGMA application_id = {application}", f"PRAGMA user_version = {version}")
    table = ("CREATE TABLE tools (name TEXT)", "INSERT INTO tools VALUES ('search')")
    written(path, "PRAGMA journal_mode = WAL", *table, *marks)


@pytest.mark.parametrize(
    ("make", "error", "told"),
    [
        (lambda path: sqlite_file(path, APPLICATION_ID, 1), StoreVersionError, "an older toolmem"),
        (lambda path: sqlite_file(path, APPLICATION_ID, 999), StoreVersionError, "a newer toolmem"),
        (lambda path: sqlite_file(path, 0x47504B47, 1), StoreUnavailable, "another program"),
        (lambda path: sqlite_file(path, 0, 7), StoreUnavailable, "another program"),
        (lambda path: sqlite_file(path, 0, 0), StoreUnavailable, "another program"),
        (lambda path: Path(path).write_text('{"tool": "a"}\n'), StoreUnavailable, "not a SQLite"),
        (lambda path: Path(path).write_bytes(b"SQLite"), StoreUnavailable, "not a SQLite"),
    ],
    ids=["older", "newer", "geopackage", "version", "tables", "jsonl", "cut"],
)
def test_what_is_no_store_of_this_toolmem_is_refused_by_name_and_stays_as_it_is(
    path, call, make, error, told
):
    make(path)
    before = Path(path).read_bytes()
    with SqliteStore(path) as store:
        for ask in (lambda: store.records("w"), lambda: store.append_calls("w", [call()], 5)):
            with pytest.raises(error, match=told) as raised:
                ask()
            assert path in str(raised.value)
    assert Path(path).read_bytes() == before


def test_an_empty_file_becomes_a_store(path, call):
    Path(path).touch()
    with SqliteStore(path) as store:
        assert store.records("w") == []
        store.append_calls("w", [call()], 5)
        assert store.tool_names("w") == ["search"]


def test_a_damaged_file_is_told_with_a_remedy(path, store, call):
    store.append_calls("w", [call(output="x" * 5_000) for _ in range(50)], 100)
    store.close()
    content = bytearray(Path(path).read_bytes())
    content[2048:8192] = b"\xff" * 6144
    Path(path).write_bytes(content)
    with SqliteStore(path) as damaged, pytest.raises(StoreError, match=r"damaged.*\.recover"):
        damaged.records("w")


def test_a_call_or_guidance_that_is_damaged_is_left_out_and_the_others_are_read(
    path, store, call, caplog
):
    store.append_calls("w", [call(id=str(n)) for n in range(3)], 10)
    store.close()
    wrong = "UPDATE calls SET body = '{\"tool_name\": 1}' WHERE seq = 2"
    written(path, wrong, "INSERT INTO guidance SELECT id, 'no json' FROM tools")
    with SqliteStore(path) as again:
        (window,) = again.windows("w")
        assert [each.id for each in window.calls] == ["0", "2"]
        assert window.record.guidance is None
        assert [each.call.id for each in again.call_log("w")] == ["0", "2"]
    assert "call 2 of tool 'search' is damaged" in caplog.text
    assert "guidance of tool 'search' is damaged" in caplog.text


def test_a_store_that_did_not_count_silent_failures_counts_them_with_its_next_call(
    path, store, call
):
    silent = {"success": True, "execution_failed": True}
    store.append_calls("w", [call(id=str(n), **silent) for n in range(3)], 3)
    store.close()
    written(
        path, "UPDATE tools SET record = json_remove(record, '$.window.silent', '$.window.no_use')"
    )
    with SqliteStore(path) as again:
        assert again.records("w")[0].window.failed == 0
        again.append_calls("w", [call(success=True)], 3)
        window = again.records("w")[0].window
        assert (window.calls, window.failed, window.worked) == (3, 2, 1)


def test_files_are_for_this_user_alone_and_the_folder_keeps_itself_out_of_git(tmp_path, call):
    path = tmp_path / ".toolmem" / "memory.db"
    with SqliteStore(path) as store:
        store.append_calls("w", [call()], 5)
        for each in path.parent.glob("memory.db*"):
            assert stat.S_IMODE(each.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert (path.parent / ".gitignore").read_text() == "*\n"


def test_looking_at_a_store_that_is_not_there_makes_no_file(tmp_path, path, store):
    assert store.records("w") == []
    assert store.workspaces() == []
    assert store.untrusted == ""
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_others_may_read_beside_a_store_that_they_may_not_is_refused(path, store, call):
    store.append_calls("w", [call()], 5)
    store.close()
    Path(f"{path}-wal").write_bytes(b"put here by somebody")
    os.chmod(f"{path}-wal", 0o644)
    with SqliteStore(path) as again:
        with pytest.raises(StoreUnavailable, match="memory.db-wal was not written by this store"):
            again.records("w")
        assert Path(f"{path}-wal").read_bytes() == b"put here by somebody"


@pytest.mark.parametrize("linked", ["the file", "its log", "its folder"])
def test_symbolic_links_are_not_followed(tmp_path, call, linked):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path = tmp_path / ".toolmem" / "memory.db"
    if linked == "its folder":
        path.parent.symlink_to(elsewhere)
    else:
        path.parent.mkdir()
        target = path if linked == "the file" else path.with_name("memory.db-wal")
        target.symlink_to(elsewhere / "x")
    with SqliteStore(path) as store, pytest.raises(StoreUnavailable, match="symbolic link"):
        store.append_calls("w", [call()], 5)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("what", ["replaced", "deleted", "log taken away"])
def test_a_file_that_is_not_in_its_place_takes_nothing_more(path, store, call, tmp_path, what):
    store.append_calls("w", [call()], 10)
    if what == "replaced":
        with SqliteStore(tmp_path / "other.db") as other:
            other.append_calls("w", [call("other")], 10)
        os.replace(tmp_path / "other.db", path)
    else:
        os.remove(path if what == "deleted" else f"{path}-wal")
    with pytest.raises(StoreUnavailable, match="moved, replaced or deleted"):
        store.append_calls("w", [call()], 10)
    with pytest.raises(StoreUnavailable, match="moved, replaced or deleted"):
        store.tool_names("w")


def test_a_file_replaced_during_a_commit_is_not_acknowledged(path, store, call, tmp_path):
    store.append_calls("w", [call()], 10)
    (tmp_path / "other.db").touch()
    with pytest.raises(StoreUnavailable), store.transaction():
        store.append_calls("w", [call()], 10)
        os.replace(tmp_path / "other.db", path)


@pytest.fixture
def without_locks():
    """SQLite as on a file system that has no shared memory: files are locked by other files."""
    name = apsw.vfs_names()[0]
    apsw.set_default_vfs("unix-dotfile")
    yield
    apsw.set_default_vfs(name)


def test_a_file_system_that_cannot_hold_a_store_is_told_and_nothing_is_left_there(
    tmp_path, path, call, without_locks
):
    with SqliteStore(path) as store:
        with pytest.raises(StoreUnavailable) as raised:
            store.append_calls("w", [call()], 5)
        told = str(raised.value)
        assert "cannot hold a store" in told
        assert "local disk" in told
        assert "vector_store.default.params.path" in told
        assert store.records("w") == []
    assert list(tmp_path.iterdir()) == []


def test_a_search_sees_what_was_written_deleted_and_cut_off_after_the_one_before(path, call):
    with SqliteStore(path) as store, SqliteStore(path) as other:
        for round in range(3):
            text = f"zebra {round} "
            other.append_calls("w", [call(f"tool {n}", output=text * 200) for n in range(200)], 10)
            assert len(store.call_log("w", contains=text)) == 200
            other.delete_tools("w")
            other.overwrite_free_space()
            assert store.call_log("w", contains=text) == []
    with pytest.raises(StoreClosed):
        store.call_log("w", contains="zebra")
