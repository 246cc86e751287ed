"""Every request on the books, in few records, and what they add up to."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta, timezone

import pytest

from toolmem.errors import RequestError, StoreUnavailable
from toolmem.flow.runner import SystemClock
from toolmem.protocols import LedgerEntry
from toolmem.providers.hashing import HashingEmbedder
from toolmem.providers.usage_log import NAMESPACE, Ledger, read_ledger, sum_up
from toolmem.store.sqlite import SqliteStore

START = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)


def entry(number=0, **given):
    values = {
        "time": START + timedelta(minutes=number),
        "workspace": "w",
        "flow": "add_tool_call_result",
        "op": "parse_tool_call_result_op",
        "tool": "search",
        "backend": "dashscope",
        "model": "qwen-plus",
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "cached_tokens": 40,
        "estimated": False,
        "outcome": "ok",
        "seconds": 0.5,
        "waited": 1.0,
        "cost": 0.1,
        "currency": "CNY",
    }
    return LedgerEntry(**{**values, **given})


@pytest.fixture
async def store(tmp_path):
    store = SqliteStore(str(tmp_path / "m.db"), clock=SystemClock(), embedder=HashingEmbedder(16).identity)
    await store.open()
    yield store
    await store.close()


async def test_what_was_booked_is_read_back_in_order(store):
    ledger = Ledger(store)
    booked = [entry(n, tool=f"工具{n}", cost=None if n == 2 else 0.1) for n in (3, 1, 2, 0)]
    for one in booked:
        ledger.book(one)
    await ledger.close()
    assert await read_ledger(store, "w") == sorted(booked, key=lambda one: one.time)
    assert await read_ledger(store, "other") == []
    between = await read_ledger(store, "w", since=START + timedelta(minutes=1), until=START + timedelta(minutes=3))
    assert [one.tool for one in between] == ["工具1", "工具2"]


async def test_many_requests_are_one_record_and_workspaces_are_kept_apart(store):
    ledger = Ledger(store)
    for n in range(300):
        ledger.book(entry(n, workspace="a" if n % 3 else "b"))
    await ledger.close()
    assert [len(await store.list(workspace, NAMESPACE)) for workspace in ("a", "b")] == [1, 1]
    assert [len(await read_ledger(store, workspace)) for workspace in ("a", "b")] == [200, 100]


async def test_bookings_are_written_without_anybody_flushing(store):
    ledger = Ledger(store, delay=0.02)
    for n in range(3):
        ledger.book(entry(n))
        await asyncio.sleep(0.05)
    async with asyncio.timeout(60):
        while len(await read_ledger(store, "w")) < 3:
            await asyncio.sleep(0.01)
    await ledger.close()
    assert len(await read_ledger(store, "w")) == 3


async def test_a_dry_run_is_not_on_the_books(store):
    ledger = Ledger(store)
    ledger.book(entry(outcome="not_sent"))
    await ledger.close()
    assert await store.list("w", NAMESPACE) == []


def test_booking_needs_no_running_loop(tmp_path):
    async def scenario(ledger_of):
        store = SqliteStore(str(tmp_path / "m.db"), clock=SystemClock(), embedder=HashingEmbedder(16).identity)
        await store.open()
        result = await ledger_of(store)
        await store.close()
        return result

    async def first(store):
        ledger = Ledger(store, delay=60)
        ledger.book(entry(0))  # its writer dies with this loop
        return ledger

    ledger = asyncio.run(scenario(first))
    ledger.book(entry(1))

    async def second(store):
        ledger._store = store
        await ledger.close()
        return await read_ledger(store, "w")

    assert len(asyncio.run(scenario(second))) == 2


class BrokenStore:
    def __init__(self, store):
        self.store = store
        self.fails = True

    async def put(self, *args, **kwargs):
        if self.fails:
            raise StoreUnavailable("the disk is full")
        return await self.store.put(*args, **kwargs)


async def test_a_write_that_fails_loses_nothing(store, caplog):
    broken = BrokenStore(store)
    ledger = Ledger(broken, delay=0.01)
    ledger.book(entry(0))
    async with asyncio.timeout(60):
        while "could not be written" not in caplog.text:
            await asyncio.sleep(0.01)
    with pytest.raises(StoreUnavailable):
        await ledger.flush()
    broken.fails = False
    ledger.book(entry(1))
    await ledger.close()
    assert len(await read_ledger(store, "w")) == 2


async def test_a_batch_that_is_written_twice_counts_once(store):
    class WrittenButFailed(BrokenStore):
        async def put(self, *args, **kwargs):
            await self.store.put(*args, **kwargs)
            if self.fails:
                raise asyncio.CancelledError

    twice = WrittenButFailed(store)
    ledger = Ledger(twice)
    ledger.book(entry(0))
    with pytest.raises(asyncio.CancelledError):
        await ledger.flush()
    twice.fails = False
    await ledger.close()
    assert len(await read_ledger(store, "w")) == 1


async def test_a_damaged_record_does_not_hide_the_others(store, caplog):
    caplog.set_level(logging.WARNING)
    ledger = Ledger(store)
    ledger.book(entry(0))
    await ledger.close()
    await store.put("w", NAMESPACE, "20260101-damaged", {"columns": ["time"], "rows": [["yesterday"]]})
    assert len(await read_ledger(store, "w")) == 1
    assert "20260101-damaged" in caplog.text


def test_sums_per_op_tool_model_and_day():
    entries = [
        entry(0),
        entry(10, outcome="error: ModelOverloaded", prompt_tokens=0, completion_tokens=0, cached_tokens=0, cost=0.0),
        entry(40, tool="calc", estimated=True),
        entry(41, op="summary_tool_memory_op", model="qwen-max", cost=2.0),
    ]
    (by_op, summary) = sum_up(entries, ["op"])
    assert by_op.group == {"op": "parse_tool_call_result_op"}
    assert (by_op.requests, by_op.failed, by_op.estimated) == (3, 1, 1)
    assert (by_op.prompt_tokens, by_op.completion_tokens, by_op.cached_tokens) == (200, 20, 80)
    assert by_op.cost == pytest.approx(0.2)
    assert (summary.cost, summary.currency) == (2.0, "CNY")
    assert [one.group["tool"] for one in sum_up(entries, ["tool"])] == ["calc", "search"]
    assert [one.group["day"] for one in sum_up(entries, ["day"])] == ["2026-03-01", "2026-03-02"]
    shanghai = timezone(timedelta(hours=8))
    assert [one.group["day"] for one in sum_up(entries, ["day"], zone=shanghai)] == ["2026-03-02"]
    (all_of_them,) = sum_up(entries, [])
    assert all_of_them.requests == 4
    assert all_of_them.row() == {
        "currency": "CNY",
        "requests": 4,
        "failed": 1,
        "prompt_tokens": 300,
        "cached_tokens": 120,
        "completion_tokens": 30,
        "estimated": 1,
        "seconds": 2.0,
        "waited": 4.0,
        "cost": pytest.approx(2.2),
    }


def test_two_currencies_are_never_added():
    entries = [entry(0), entry(1, currency="USD", cost=1.0), entry(2, currency="", cost=None)]
    assert [(one.currency, one.cost) for one in sum_up(entries, ["model"])] == [("", None), ("CNY", 0.1), ("USD", 1.0)]


def test_an_unknown_column_is_refused_by_name():
    with pytest.raises(RequestError, match="'modle'"):
        sum_up([], ["modle"])
