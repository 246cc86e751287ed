"""Several processes on one store, and processes that die in the middle of a write."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import random
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import pytest

from toolmem.protocols import MemoryStore
from toolmem.stored import Where
from toolmem.testing.store_contract.decisions import decision
from toolmem.testing.store_contract.scenario import (
    TOOL,
    Scenario,
    StoreFactory,
    W,
    append,
    call,
    document,
    drive,
    guidance,
    kept_calls,
)

ADDERS = 8
CALLS_EACH = 20
NS = "acknowledged"
_IN_NS = Where(namespace=NS)
_RULE = ("tool-search", "rule/1")


class ProcessesContract(Scenario):
    """Needs a factory that can be pickled; without one these tests are skipped, and say so."""

    kill_rounds = 30

    @pytest.fixture
    def verify_data(self) -> Callable[[], None]:
        """Called after each crash, before the store is opened again: the engine's own check of its data."""
        return lambda: None

    def test_processes_on_one_tool_lose_nothing(self, store_factory: StoreFactory) -> None:
        _require_picklable(store_factory)
        adders = [_start(_add_calls, store_factory, 1000 * n) for n in range(ADDERS)]
        for process, _ in adders:
            process.join(300)
        assert [process.exitcode for process, _ in adders] == [0] * ADDERS

        async def check(store: MemoryStore) -> None:
            stored = await kept_calls(store)
            assert [each.seq for each in stored] == list(range(1, ADDERS * CALLS_EACH + 1))
            assert {each.id for each in stored} == {f"{1000 * n + i}" for n in range(ADDERS) for i in range(CALLS_EACH)}
            for n in range(ADDERS):
                own = [each.id for each in stored if int(each.id or -1) // 1000 == n]
                assert own == [f"{1000 * n + i}" for i in range(CALLS_EACH)]
            (record,) = await store.records(W, [TOOL])
            assert record.counters.calls == ADDERS * CALLS_EACH
            logged = await store.call_log(W)
            assert [each.call.id for each in logged] == [each.id for each in stored]

        drive(store_factory(), check)

    def test_a_rule_of_a_process_that_died_at_once_changes_the_stamp(self, store_factory: StoreFactory) -> None:
        _require_picklable(store_factory)

        async def watch(store: MemoryStore) -> None:
            stamps = [await store.read_stamped(W, [_RULE])]
            for number in range(5):
                writer, pipe = _start(_write_rule, store_factory, number)
                assert await asyncio.to_thread(pipe.poll, 300), "the writer did not start"
                pipe.recv()
                writer.kill()
                stamps.append(await store.read_stamped(W, [_RULE]))
                await asyncio.to_thread(writer.join, 300)
            assert len({each.stamp for each in stamps}) == 6
            rules = [each.records[0] for each in stamps[1:]]
            assert [rule and rule.version for rule in rules] == [1, 2, 3, 4, 5]

        drive(store_factory(), watch)

    def test_readers_in_another_process_never_miss_a_tool(self, store_factory: StoreFactory) -> None:
        _require_picklable(store_factory)

        async def write(store: MemoryStore) -> None:
            for tool in ("a", "b"):
                await append(store, 0, tool=tool)
            reader, pipe = _start(_watch, store_factory)
            assert await asyncio.to_thread(pipe.poll, 300), "the reader did not start"
            pipe.recv()
            for number in range(1, 60):
                for tool in ("a", "b"):
                    await append(store, number, tool=tool, keep=3)
                    (record,) = await store.records(W, [tool])
                    await store.put_guidance(
                        W,
                        tool,
                        guidance(f"Guidance {number}.", [record.last_seq]),
                        document=document(),
                        guidance_version=record.guidance_version,
                    )
            pipe.send("stop")
            reads, misses = await asyncio.to_thread(pipe.recv)
            await asyncio.to_thread(reader.join, 300)
            assert reads > 10
            assert misses == []

        drive(store_factory(), write)

    def test_what_was_acknowledged_survives_sigkill(
        self, store_factory: StoreFactory, verify_data: Callable[[], None]
    ) -> None:
        _require_picklable(store_factory)
        chance = random.Random(20_261_121)
        acknowledged = -1
        for _ in range(self.kill_rounds):
            writer, pipe = _start(_write_and_acknowledge, store_factory, acknowledged + 1)
            assert pipe.poll(300), "the writer did not start"
            time.sleep(chance.uniform(0, 0.06))
            writer.kill()
            writer.join(300)
            acknowledged = max(_drain(pipe), default=acknowledged)
            verify_data()
            drive(store_factory(), partial(_check_acknowledged, acknowledged))
        assert acknowledged + 1 >= self.kill_rounds, "a writer acknowledged nothing before it was killed"


async def _check_acknowledged(last: int, store: MemoryStore) -> None:
    """Everything up to number `last` is there; beyond it at most the one write whose answer was on its way."""
    ids = [f"{number}" for number in range(last + 2)]
    (memory,) = await store.memories(W, [TOOL], calls=True)
    known = await store.known_ids(W, TOOL, ids)
    assert known >= set(ids[: last + 1])
    record = memory.record
    assert record.last_seq == record.counters.calls == len(known)
    assert [each.id for each in memory.calls] == ids[: len(known)][-10:]
    assert [each.seq for each in memory.calls] == list(range(record.first_seq, record.last_seq + 1))
    logged = [each.call.id for each in await store.call_log(W, conversation="all", limit=last + 10)]
    assert logged == ids[: len(known)]
    decisions = await store.decisions(W, limit=last + 10)
    assert len(decisions) >= last // 3
    notes = {note.key: note.value for note in await store.list(W, NS)}
    assert notes.keys() >= {f"{number}" for number in range(last + 1) if number % 3 == 0}
    found = await store.search(W, f"note{last - last % 3}", None, 3, _IN_NS)
    assert found
    assert found[0].key == f"{last - last % 3}"


# -- what runs in the other processes


def _add_calls(pipe: Connection, factory: StoreFactory, first: int) -> None:
    async def add(store: MemoryStore) -> None:
        for number in range(first, first + CALLS_EACH):
            await store.append_calls(W, TOOL, [call(number, id=f"{number}")], 10 * ADDERS * CALLS_EACH)

    drive(factory(), add)


def _watch(pipe: Connection, factory: StoreFactory) -> None:
    async def watch(store: MemoryStore) -> None:
        misses: list[Any] = []
        reads = 0
        pipe.send("ready")
        while not pipe.poll():
            memories = await store.memories(W, ["b", "a"], calls=True)
            names = [memory.record.tool_name for memory in memories]
            whole = all(len(each.calls) == each.record.last_seq - each.record.first_seq + 1 for each in memories)
            if names != ["b", "a"] or not whole or len(await store.tool_names(W)) != 2:
                misses.append(names)
            reads += 1
        pipe.send((reads, misses))

    drive(factory(), watch)


def _write_and_acknowledge(pipe: Connection, factory: StoreFactory, first: int) -> None:
    async def write(store: MemoryStore) -> None:
        number = first
        while True:
            output, told = "x" * (number * 37 % 3000), {"conversation_id": "all"}
            await store.append_calls(W, TOOL, [call(number, id=f"{number}", output=output, metadata=told)], 10)
            if number % 3 == 0:
                await store.log_decision(W, decision(number))
                await store.put(W, NS, f"{number}", {"n": number}, document=document(f"note{number}", 1, 0, 0, 0))
            pipe.send(number)
            number += 1

    drive(factory(), write)


def _write_rule(pipe: Connection, factory: StoreFactory, number: int) -> None:
    async def write(store: MemoryStore) -> None:
        await store.put(W, *_RULE, {"n": number})
        pipe.send(number)
        await asyncio.sleep(300)

    drive(factory(), write)


# -- starting them


def _require_picklable(factory: StoreFactory) -> None:
    try:
        pickle.dumps(factory)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        pytest.skip(f"the store's data cannot be reached from another process: {error}")


def _start(target: Callable[..., None], *values: Any) -> tuple[Any, Connection]:
    """A process, and our end of its pipe. The fork server imports everything once, so that each starts in no time."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *values), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _drain(pipe: Connection) -> list[int]:
    received = []
    try:
        while pipe.poll():
            received.append(pipe.recv())
    except (EOFError, OSError):
        pass  # the end, or a message that the writer could not finish
    return received
