"""What a write costs must not grow with what the store holds: pages written, counted in the log."""

import statistics
from functools import partial
from pathlib import Path

import apsw
import pytest

from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import W, append, call, calls, document, guidance

make = partial(SqliteStore, clock=ManualClock(), embedder=None, synchronous="NORMAL")
CLAIMS = "A sentence that a claim makes about the calls of a tool. " * 60


class Log:
    """Bytes that each write transaction adds to the write-ahead log."""

    def __init__(self, path: Path) -> None:
        self._db = apsw.Connection(str(path))
        self._db.execute("SELECT count(*) FROM tools").fetchall()
        self._frame = int(self._db.pragma("page_size")) + 24
        self.bytes()

    def bytes(self) -> int:
        """Since the last call: everything is moved into the file, so that the next write starts the log anew."""
        frames, _ = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        return frames * self._frame

    def close(self) -> None:
        self._db.close()


@pytest.mark.parametrize("tools", [1, 150])
async def test_a_call_added_writes_little_however_much_is_kept(tmp_path: Path, tools: int):
    async with make(tmp_path / "memory.db") as store:
        for n in range(tools):
            tool = f"tool {n}"
            await store.append_calls(W, tool, calls(range(100), tool, output="x" * 500), 100)
            await store.put_guidance(
                W, tool, guidance(CLAIMS, list(range(50, 100))), document=document(CLAIMS), guidance_version=0
            )
        log = Log(tmp_path / "memory.db")
        written = []
        for n in range(100):
            tool = f"tool {n * 7 % tools}"
            await store.append_calls(W, tool, [call(n, tool, id=f"new {n}", output="y" * (300 + n * 5))], 100)
            written.append(log.bytes())
        log.close()
        assert 0 < statistics.median(written) <= 32_000
        assert max(written) <= 64_000


async def test_reading_and_sending_twice_write_nothing(tmp_path: Path):
    async with make(tmp_path / "memory.db") as store:
        await store.append_calls(W, "search", [call(1, id="a")], 10)
        log = Log(tmp_path / "memory.db")
        await append(store, 2)
        assert log.bytes() > 0
        await store.append_calls(W, "search", [call(1, id="a")], 10)
        await store.update_verdicts(W, "search", {77: call(1)})
        await store.records(W, None)
        await store.memories(W, None, calls=True)
        await store.search(W, "anything", None, 5)
        await store.delete_memories(W, ["unknown"])
        await append(store, 3)
        only_the_last = log.bytes()
        await append(store, 4)
        assert abs(only_the_last - log.bytes()) <= 3 * 2072
        log.close()


async def test_the_log_is_moved_into_the_file_as_it_grows(tmp_path: Path):
    async with make(tmp_path / "memory.db") as store:
        for n in range(400):
            await append(store, n, keep=10)
        assert (tmp_path / "memory.db-wal").stat().st_size < 1100 * 2072
