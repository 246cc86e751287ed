"""Which paths can hold a store, and what is said of those that cannot."""

import asyncio
import json
import multiprocessing
import os
import stat
from functools import partial
from pathlib import Path

import apsw
import pytest

from toolmem.errors import RequestError, StoreClosed, StoreUnavailable, StoreVersionError
from toolmem.store.sqlite import SqliteStore, worker_threads
from toolmem.store.sqlite.connection import explained, patiently
from toolmem.store.sqlite.schema import SCHEMA_VERSION
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import EMBEDDER, W, append, drive, kept_calls, numbers_of

make = partial(SqliteStore, clock=ManualClock(), embedder=EMBEDDER)


async def test_the_folder_is_made_and_the_file_is_in_wal_mode(tmp_path: Path):
    path = tmp_path / "deep" / "er" / "memory.db"
    async with make(path) as store:
        await append(store, 1)
        assert (await store.info())["location"] == str(path)
        db = apsw.Connection(str(path))
        assert db.pragma("journal_mode") == "wal"
        assert db.pragma("user_version") == SCHEMA_VERSION
        db.close()
    assert path.is_file()
    assert not path.with_name("memory.db-wal").exists()


async def test_a_path_given_as_text_follows_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    async with make("~/memory.db") as store:
        assert store.location == str(tmp_path / "memory.db")


async def test_a_folder_is_refused_by_name(tmp_path: Path):
    with pytest.raises(StoreUnavailable, match="folder") as refused:
        await make(tmp_path).open()
    assert str(tmp_path) in str(refused.value)


async def test_a_folder_of_remes_json_lines_names_the_import(tmp_path: Path):
    node = {"unique_id": "1", "workspace_id": "w", "content": "search", "vector": [0.1], "metadata": {}}
    (tmp_path / "w.jsonl").write_text(json.dumps(node) + "\n")
    with pytest.raises(StoreUnavailable, match="toolmem store import") as refused:
        await make(tmp_path).open()
    assert str(tmp_path) in str(refused.value)
    with pytest.raises(StoreUnavailable, match="toolmem store import"):
        await make(tmp_path / "w.jsonl").open()
    assert (tmp_path / "w.jsonl").read_text() == json.dumps(node) + "\n"


@pytest.mark.parametrize(
    "content", [b"just some text\n" * 100, b"\x00" * 5000, b"SQLite format 3\x00" + b"garbage" * 999]
)
async def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path, content: bytes):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreUnavailable) as refused:
        await make(path).open()
    assert str(path) in str(refused.value)
    assert path.read_bytes() == content


async def test_somebody_elses_database_is_refused_and_left_alone(tmp_path: Path):
    path = tmp_path / "theirs.db"
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable, match="not a toolmem store"):
        await make(path).open()
    assert path.read_bytes() == before


@pytest.mark.parametrize("path", ["/dev/null/memory.db", "/proc/memory.db", "bad\0name.db"])
async def test_a_path_where_nothing_can_be_written_is_refused(path: str):
    with pytest.raises(StoreUnavailable) as refused:
        async with make(path) as store:
            await append(store, 1)
    assert "memory.db" in str(refused.value) or "name.db" in str(refused.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_file_that_may_not_be_written_is_refused(tmp_path: Path):
    path = tmp_path / "memory.db"
    async with make(path):
        pass
    path.chmod(stat.S_IRUSR)
    with pytest.raises(StoreUnavailable, match="writable"):
        await make(path).open()


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_file_of_another_schema_is_refused_and_left_alone(
    tmp_path: Path, read_only: bool, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "memory.db"
    async with make(path) as store:
        await append(store, 1)
    db = apsw.Connection(str(path))
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 6}")
    db.close()
    before = path.read_bytes()
    if read_only:
        monkeypatch.setattr(worker_threads, "can_be_written", lambda _: False)
    said = f"{path} has schema version {SCHEMA_VERSION + 6}, .* version {SCHEMA_VERSION}: open it with the toolmem"
    with pytest.raises(StoreVersionError, match=said):
        await make(path, accept_read_only=read_only).open()
    assert path.read_bytes() == before


async def test_a_store_that_could_not_be_opened_says_that_it_is_not_open(tmp_path: Path):
    store = make(tmp_path)
    with pytest.raises(StoreClosed, match="open"):
        await store.tool_names(W)
    with pytest.raises(StoreUnavailable):
        await store.open()
    with pytest.raises(StoreClosed):
        await store.tool_names(W)
    await store.close()


async def test_opening_an_open_store_changes_nothing(tmp_path: Path):
    store = make(tmp_path / "memory.db")
    await asyncio.gather(store.open(), store.open(), store.open())
    await append(store, 1)
    await store.open()
    assert numbers_of(await kept_calls(store)) == [1]
    await store.close()
    assert not (tmp_path / "memory.db-wal").exists()


async def test_an_unknown_synchronous_mode_is_refused(tmp_path: Path):
    with pytest.raises(RequestError, match="FULL"):
        make(tmp_path / "memory.db", synchronous="OFF")


async def test_memory_holds_a_store_of_its_own():
    async with make(":memory:") as one, make(":memory:") as other:
        await append(one, 1, 2)
        await one.put(W, "n", "k", {"a": 1})
        assert numbers_of(await kept_calls(one)) == [1, 2]
        assert [record.key for record in await one.list(W, "n")] == ["k"]
        assert await other.tool_names(W) == []
    assert not Path(":memory:").exists()


def open_and_append(path: Path, number: int, gate: object) -> None:
    gate.wait()  # type: ignore[attr-defined]
    drive(make(path), partial(_append_one, number))


async def _append_one(number: int, store: SqliteStore) -> None:
    await append(store, number)


def test_processes_that_create_the_store_at_once_agree(tmp_path: Path):
    context = multiprocessing.get_context("fork")
    for attempt in range(5):
        path = tmp_path / f"{attempt}" / "memory.db"
        gate = context.Barrier(4)
        children = [context.Process(target=open_and_append, args=(path, n, gate)) for n in range(4)]
        for child in children:
            child.start()
        for child in children:
            child.join(300)
        assert [child.exitcode for child in children] == [0, 0, 0, 0]

        async def check(store: SqliteStore) -> None:
            assert sorted(numbers_of(await kept_calls(store))) == [0, 1, 2, 3]

        drive(make(path), check)


@pytest.mark.parametrize(
    ("failing", "error", "tries"), [(2, apsw.IOError, 3), (9, apsw.IOError, 5), (9, apsw.FullError, 1)]
)
def test_an_io_error_that_soon_passes_refuses_no_store(failing: int, error: type[apsw.Error], tries: int) -> None:
    tried: list[int] = []

    def opened() -> apsw.Connection:
        tried.append(1)
        with explained("memory.db", 0.1):
            if len(tried) <= failing:
                raise error("disk I/O error")
        return apsw.Connection(":memory:")

    if tries > failing:
        patiently(opened).close()
    else:
        with pytest.raises(StoreUnavailable, match="cannot be used: disk I/O error"):
            patiently(opened)
    assert len(tried) == tries
