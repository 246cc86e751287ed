"""What goes wrong around the logs: a full disk, a file that is only read, damage."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import apsw
import pytest

from toolmem.errors import StoreError, StoreUnavailable
from toolmem.store.sqlite import SqliteStore, call_log, worker_threads
from toolmem.stored import LogLimits
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.call_logs import in_conversation, log_of
from toolmem.testing.store_contract.decisions import RULES, decided, decision
from toolmem.testing.store_contract.scenario import TOOL, W, append, call, calls, kept_calls, numbers_of

make = partial(SqliteStore, clock=ManualClock(), embedder=None, synchronous="NORMAL")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


async def test_on_a_full_disk_nothing_is_half_logged_and_what_was_acknowledged_stays(path: Path):
    async with make(path) as store:
        await append(store, 0)
        await store.log_decision(W, decision(0))
        await store._write(lambda db: db.execute(f"PRAGMA max_page_count = {db.pragma('page_count') + 20}").fetchall())
        logged, decisions, refused = [0], [0], list[str]()
        for number in range(1, 50):
            try:
                await store.append_calls(W, TOOL, [call(number, context="x" * 900)], 5)
                logged.append(number)
                await store.log_decision(W, decision(number))
                decisions.append(number)
            except StoreUnavailable as error:
                refused.append(str(error))
        assert refused
        assert all("full" in each for each in refused)
        assert 1 < len(decisions) <= len(logged) < 50
        assert await log_of(store) == logged
        assert await decided(store) == decisions[::-1]
        assert numbers_of(await kept_calls(store)) == logged[-5:]
        await store.read_stamped(W, [])
        await store._write(lambda db: db.execute("PRAGMA max_page_count = 1000000").fetchall())
        await append(store, 99)
        assert await log_of(store) == [*logged, 99]


async def test_a_log_that_cannot_be_written_takes_the_whole_call_back(path: Path):
    async with make(path) as store:
        await append(store, 1)
        db = apsw.Connection(str(path))
        db.execute("CREATE TRIGGER t BEFORE INSERT ON call_log BEGIN SELECT RAISE(FAIL, 'no room'); END")
        with pytest.raises(StoreError, match="no room"):
            await store.append_calls(W, TOOL, [call(2, id="x")], 1)
        assert await log_of(store) == numbers_of(await kept_calls(store)) == [1]
        db.execute("DROP TRIGGER t")
        db.close()
        assert (await store.append_calls(W, TOOL, [call(2, id="x")], 1)).stored == 1
        assert await log_of(store) == [1, 2]


async def test_the_logs_of_a_file_that_is_only_read_are_read(path: Path, monkeypatch: pytest.MonkeyPatch):
    async with make(path) as store:
        await append(store, 1, 2)
        await store.log_decision(W, decision(1))
        await store.put(W, RULES, "rule/1", {})
        stamp = (await store.read_stamped(W, [])).stamp
    monkeypatch.setattr(worker_threads, "can_be_written", lambda _: False)
    async with make(path, accept_read_only=True) as store:
        assert await log_of(store) == [1, 2]
        assert await decided(store) == [1]
        assert (await store.read_stamped(W, [])).stamp == stamp
        with pytest.raises(StoreUnavailable, match="cannot be written"):
            await store.log_decision(W, decision(2))


async def test_damage_in_a_log_hides_nothing_else(path: Path, caplog: pytest.LogCaptureFixture):
    async with make(path) as store:
        await append(store, 1, 2, 3)
        for number in range(3):
            await store.log_decision(W, decision(number))
        db = apsw.Connection(str(path))
        db.execute("UPDATE call_log SET payload = '[]' WHERE place & 0xff = 2")
        db.execute("UPDATE decisions SET value = '{\"id\": 1}' WHERE id = 'decision 1'")
        db.execute("UPDATE decisions SET value = x'ff00' WHERE id = 'decision 0'")
        db.close()
        assert await log_of(store) == await log_of(store, tool=TOOL) == [1, 3]
        assert await decided(store) == [2]
        assert "call 2 of tool 'search' is damaged" in caplog.text
        assert caplog.text.count("a logged decision is damaged") == 2


async def test_a_hundred_thousand_decisions_are_kept_and_the_oldest_go(path: Path):
    async with make(path) as store:
        await store.log_decision(W, decision(0))
        db = apsw.Connection(str(path))
        db.execute(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100000) "
            "INSERT INTO decisions SELECT place + n, workspace, 'decision ' || n, conversation, tool, value "
            "FROM decisions CROSS JOIN n"
        )
        db.close()
        await store.log_decision(W, decision(100_001))
        assert (await store.info())["workspaces"][W]["decisions"] == 100_000
        assert await decided(store, ids=["decision 0"]) == []
        assert (await store.decisions(W, limit=1)) == [decision(100_001)]


# -- what a read costs


def steps_of(path: Path, **asked: object) -> int:
    """Steps of SQLite's machine for one read of the log."""
    counted = [0]

    def count() -> bool:
        counted[0] += 1
        return False

    db = apsw.Connection(str(path))
    db.set_progress_handler(count, 1)
    assert call_log.read(db, W, **asked)  # type: ignore[arg-type]
    db.close()
    return counted[0]


async def test_a_read_of_the_log_costs_what_it_answers_however_long_the_log_is(path: Path):
    asked = [{"conversation": "c"}, {"newest": True}, {"tool": TOOL, "newest": True}, {"after": 20}]
    asked += [{"tool": TOOL, "after": 20}, {"conversation": "c", "tool": TOOL, "newest": True}]
    async with make(path) as store:
        await store.append_calls(W, TOOL, in_conversation("c", *range(40)), 2)
        await store.append_calls(W, TOOL, calls(range(300)), 2)
        short = [steps_of(path, limit=10, **each) for each in asked]
        await store.append_calls(W, TOOL, calls(range(4000)), 2)
        long = [steps_of(path, limit=10, **each) for each in asked]
    for each, before, after in zip(asked, short, long, strict=True):
        assert after <= before + 250, each  # a few more halvings for the tool's `after`


@pytest.mark.parametrize("limits", [LogLimits(), LogLimits(max_calls=2000)], ids=["room", "full"])
async def test_a_call_added_writes_little_with_a_conversation_and_a_full_log(path: Path, limits: LogLimits):
    async with make(path, log=limits) as store:
        for number in range(150):
            tool = f"tool {number}"
            await store.append_calls(W, tool, calls(range(30), tool, output="x" * 500), 10)
        db = apsw.Connection(str(path))
        db.execute("SELECT count(*) FROM tools").fetchall()
        frame = int(db.pragma("page_size")) + 24
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        written = []
        for number in range(200):
            tool = f"tool {number * 7 % 150}"
            told = {"conversation_id": f"conversation {number // 20}"}
            await store.append_calls(W, tool, [call(number, tool, id=f"new {number}", metadata=told)], 10)
            written.append(db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)[0] * frame)
        db.close()
        assert 0 < sorted(written)[100] <= 24_000
        assert max(written) <= 64_000
