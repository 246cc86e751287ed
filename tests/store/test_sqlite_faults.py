"""What goes wrong around a store that is open: locks, failing writes, damage, forks, threads, loops."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import apsw
import pytest

from toolmem.errors import StoreClosed, StoreError, StoreUnavailable
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import (
    EMBEDDER,
    TOOL,
    W,
    append,
    call,
    document,
    guidance,
    kept_calls,
    numbers_of,
    verdict,
)

make = partial(SqliteStore, clock=ManualClock(), embedder=EMBEDDER)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def raw(path: Path) -> apsw.Connection:
    db = apsw.Connection(str(path))
    db.set_busy_timeout(5000)
    return db


async def test_reads_go_on_while_another_process_holds_the_write_lock(path: Path):
    async with make(path, busy_timeout=2.0) as store:
        await append(store, 1)
        other = raw(path)
        other.execute("BEGIN IMMEDIATE")
        write = asyncio.create_task(store.append_calls(W, TOOL, [call(2)], 10))
        await asyncio.sleep(0.05)
        assert numbers_of(await kept_calls(store)) == [1]
        assert not write.done()
        with pytest.raises(StoreUnavailable, match=r"locked.*2 s"):
            await write
        other.execute("ROLLBACK")
        other.close()
        await append(store, 3)
        assert numbers_of(await kept_calls(store)) == [1, 3]


async def test_a_write_waits_for_the_lock_of_another_process(path: Path):
    async with make(path) as store:
        await append(store, 1)
        other = raw(path)
        other.execute("BEGIN IMMEDIATE")
        start = time.monotonic()
        threading.Timer(0.2, lambda: (other.execute("COMMIT"), other.close())).start()
        await append(store, 2)
        assert time.monotonic() - start > 0.1


async def test_a_write_that_fails_half_way_leaves_nothing_behind(path: Path):
    async with make(path) as store:
        await append(store, 1)
        db = raw(path)
        db.execute("CREATE TRIGGER t BEFORE INSERT ON call_ids BEGIN SELECT RAISE(FAIL, 'no space'); END")
        before = await store.memories(W, None, calls=True)
        with pytest.raises(StoreError, match="no space"):
            await store.append_calls(W, TOOL, [call(2), call(3, id="x")], 10)
        assert await store.memories(W, None, calls=True) == before
        db.execute("DROP TRIGGER t")
        db.close()
        assert (await store.append_calls(W, TOOL, [call(2), call(3, id="x")], 10)).stored == 2


async def test_a_damaged_call_never_hides_the_others(path: Path, caplog: pytest.LogCaptureFixture):
    async with make(path) as store:
        await append(store, 1, 2, 3)
        await store.put_guidance(W, TOOL, guidance(covered=[1]), document=document(), guidance_version=0)
        db = raw(path)
        db.execute("UPDATE call_log SET payload = substr(payload, 1, 20) WHERE key & 0xffffffff = 2")
        assert numbers_of(await kept_calls(store)) == [1, 3]
        assert "call 2 of tool 'search' is damaged" in caplog.text
        (memory,) = await store.memories(W, [TOOL])
        assert [figures.seq for figures in memory.figures] == [1, 2, 3]
        assert (await store.update_verdicts(W, TOOL, {2: call(2), 3: call(3)})) is not None
        db.execute("UPDATE calls SET score = 'high' WHERE key & 0xffffffff = 3")
        (memory,) = await store.memories(W, [TOOL])
        assert [figures.seq for figures in memory.figures] == [1, 2]
        db.execute("UPDATE guidance SET value = '{'")
        db.execute("UPDATE tools SET covered = '[[1'")
        db.close()
    async with make(path) as store:
        (record,) = await store.records(W, [TOOL])
        assert (record.guidance, record.covered) == (None, [])


async def test_a_damaged_verdict_counts_as_absent(path: Path):
    async with make(path) as store:
        await store.put_verdicts(W, {"a": verdict(), "b": verdict()})
        db = raw(path)
        db.execute("UPDATE verdicts SET score = 0.7 WHERE key = 'a'")
        db.close()
        assert list(await store.verdicts(W, ["a", "b"])) == ["b"]


async def test_a_forked_child_is_refused_and_harms_nothing(path: Path):
    async with make(path) as store:
        await append(store, 1)
        child = os.fork()
        if child == 0:
            os._exit(_uses_of_an_inherited_store(store))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        await append(store, 2)
        assert numbers_of(await kept_calls(store)) == [1, 2]
    assert raw(path).execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def _uses_of_an_inherited_store(store: SqliteStore) -> int:
    """0 where every use was refused; runs in the child."""
    refused = 0
    for use in (store.tool_names(W), append(store, 9), store.close(), store.open()):
        try:
            use.send(None)
        except StoreClosed:
            refused += 1
    return 0 if refused == 4 else 1


FORK_AND_COLLECT = """
import asyncio, gc, os, sys
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import append, kept_calls, numbers_of

# The loops are apart from the fork: a loop that lives on in both would be shared between the two.
store = SqliteStore(sys.argv[1], clock=ManualClock(), embedder=None)

async def add(first):
    for number in range(first, first + 5):
        await append(store, number)

asyncio.run(store.open())
asyncio.run(add(0))
child = os.fork()
if child == 0:
    del store
    gc.collect()
    sys.exit(0)   # an orderly end, with all destructors
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
asyncio.run(add(5))
asyncio.run(store.close())
asyncio.run(store.open())
assert numbers_of(asyncio.run(kept_calls(store))) == list(range(10))
asyncio.run(store.close())
"""


def test_a_child_that_collects_the_store_and_ends_takes_nothing_from_its_parent(path: Path):
    subprocess.run([sys.executable, "-c", FORK_AND_COLLECT, str(path)], check=True, timeout=30)


def test_a_child_may_open_the_store_again(path: Path):
    async def in_child() -> None:
        async with make(path) as store:
            await append(store, 2)

    async def in_parent() -> None:
        async with make(path) as store:
            await append(store, 1)
            child = os.fork()
            if child == 0:
                asyncio.events._set_running_loop(None)
                asyncio.run(in_child())
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert numbers_of(await kept_calls(store)) == [1, 2]

    asyncio.run(in_parent())


def test_one_store_serves_several_threads_and_loops(path: Path):
    store = make(path)
    asyncio.run(store.open())

    def adder(first: int) -> None:
        async def add() -> None:
            for number in range(first, first + 10):
                await append(store, number)

        asyncio.run(add())

    threads = [threading.Thread(target=adder, args=(100 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = asyncio.run(kept_calls(store))
    asyncio.run(store.close())
    assert sorted(numbers_of(stored)) == sorted(100 * n + i for n in range(4) for i in range(10))


def test_a_write_outlives_the_loop_that_asked_for_it(path: Path):
    store = make(path)
    asyncio.run(store.open())

    async def ask_and_leave() -> None:
        task = asyncio.create_task(store.append_calls(W, TOOL, [call(1)], 10))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(ask_and_leave())
    assert numbers_of(asyncio.run(kept_after_close(store))) == [1]


async def kept_after_close(store: SqliteStore):
    await store.close()
    await store.open()
    stored = await kept_calls(store)
    await store.close()
    return stored


async def test_closing_waits_for_what_was_handed_over(path: Path):
    store = make(path)
    await store.open()
    writes = [asyncio.create_task(store.append_calls(W, TOOL, [call(n)], 100)) for n in range(20)]
    await asyncio.sleep(0)
    await store.close()
    assert all(appended.stored == 1 for appended in await asyncio.gather(*writes))


def test_a_store_that_nobody_closed_is_closed_when_it_is_collected(path: Path):
    store = make(path)
    asyncio.run(store.open())
    asyncio.run(append(store, 1))
    before = threading.active_count()
    del store
    gc.collect()
    assert threading.active_count() == before - 2
    assert not path.with_name("memory.db-wal").exists()


FORGET_TO_CLOSE = """
import asyncio, sys
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import append

store = SqliteStore(sys.argv[1], clock=ManualClock(), embedder=None)
asyncio.run(store.open())
asyncio.run(append(store, 1))
"""


def test_a_store_that_nobody_closed_does_not_hold_up_the_end_of_the_process(path: Path):
    done = subprocess.run(
        [sys.executable, "-c", FORGET_TO_CLOSE, str(path)], timeout=20, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert not path.with_name("memory.db-wal").exists()
