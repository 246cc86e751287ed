"""What the distributed store promises of stamps and logs where writers die, meet, or find the limit reached."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from elasticsearch_nodes.server import Server

from toolmem.store.elastic import rule_stamps
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.stored import LoggedDecision, LogLimits
from toolmem.testing.clock import ManualClock

W, RULES = "team", "tool-search"


@pytest.fixture
async def opened(server: Server, empty_prefix: Callable[[int], str]) -> AsyncIterator[Callable[..., Any]]:
    """Opens one more store on the same indices."""
    prefix, stores = empty_prefix(0), []

    async def open_one(**params: Any) -> ElasticsearchStore:
        fixed = {"clock": ManualClock(), "embedder": None, "index_prefix": prefix, "number_of_replicas": 0}
        stores.append(ElasticsearchStore(server.url, **fixed, **params))
        await stores[-1].open()
        return stores[-1]

    yield open_one
    for store in stores:
        await store.close()


async def stamp_of(store: ElasticsearchStore) -> str:
    return (await store.read_stamped(W, [])).stamp


def decision(number: int, **told: Any) -> LoggedDecision:
    time = datetime(2026, 1, 1, tzinfo=UTC)
    made = {"conversation_id": "c1", "tool_name": "search", "input": "{}", "action": "deny", "reason": "r"}
    return LoggedDecision(id=f"d{number}", time=time, **{**made, "advice": "", "mode": "enforce", **told})


# -- stamps


async def test_a_stamp_stays_while_no_rule_is_written_and_comes_with_records_as_they_are(opened):
    store = await opened()
    await store.put(W, RULES, "rule/1", {"n": 1})
    await store.put(W, "guard-conversation", "c1", {"calls": 0})
    before = await store.read_stamped(W, [("guard-conversation", "c1"), (RULES, "rule/1"), ("none", "none")])
    await store.put(W, "guard-conversation", "c1", {"calls": 1})
    await store.put(W, "notes", "rule/1", {"n": 1})
    await store.put("another", RULES, "rule/1", {"n": 1})
    after = await store.read_stamped(W, [("guard-conversation", "c1"), (RULES, "rule/1"), ("none", "none")])
    assert after.stamp == before.stamp
    assert [each and each.text for each in before.records] == ['{"calls":0}', '{"n":1}', None]
    assert [each and each.text for each in after.records] == ['{"calls":1}', '{"n":1}', None]


async def test_every_write_of_a_rule_by_any_process_gives_a_stamp_that_was_never_there(opened):
    store, other = await opened(), await opened()
    seen = [await stamp_of(store)]
    for number in range(40):  # more than the marks that a stamp remembers
        await other.put(W, RULES, "rule/1", {"n": number})
        seen.append(await stamp_of(store))
    await other.delete(W, RULES, "rule/1")
    seen.append(await stamp_of(store))
    await store.put(W, "tool-other", "rule/2", {})
    seen.append(await stamp_of(store))
    await other.delete_workspace(W)
    seen.append(await stamp_of(store))
    await other.put(W, RULES, "rule/1", {"n": 0})
    seen.append(await stamp_of(store))
    assert len(set(seen)) == len(seen)
    assert await stamp_of(store) == await stamp_of(other) == seen[-1]


async def test_the_document_of_a_stamp_does_not_grow_with_the_rules_written(opened):
    store = await opened()
    sizes = []
    for number in range(80):
        await store.put(W, RULES, f"rule/{number}", {})
        (found,) = await store._session.connection.multi_get([rule_stamps.wanted(store._session, W)])
        sizes.append(len(found["_source"]["body"]["pending"]))
    assert max(sizes) <= 26


async def test_rules_written_at_once_by_two_processes_leave_one_stamp_for_both(opened):
    store, other = await opened(), await opened()
    seen: set[str] = set()

    async def follow() -> None:
        """What a guard does: keep what was read for as long as the stamp is the same."""
        while len(seen) < 400 and not done.is_set():
            stamp = await stamp_of(store)
            assert stamp not in seen or stamp == last[0]
            seen.add(stamp)
            last[0] = stamp

    last, done = [""], asyncio.Event()
    following = asyncio.create_task(follow())
    writers = [each.put(W, RULES, f"rule/{n}", {"n": n}) for n, each in enumerate([store, other] * 20)]
    await asyncio.gather(*writers)
    done.set()
    await following
    assert await stamp_of(store) == await stamp_of(other)
    assert len(await store.list(W, RULES)) == 40


async def test_where_the_writer_of_a_rule_died_no_stamp_can_be_remembered_until_its_mark_is_old(opened, monkeypatch):
    store, dying = await opened(), await opened(timeout=1)
    await store.put(W, RULES, "rule/1", {"n": 1})
    before = await stamp_of(store)

    async def die(*_: Any) -> bool:
        raise asyncio.CancelledError

    monkeypatch.setattr(rule_stamps, "_settled", die)
    with pytest.raises(asyncio.CancelledError):
        await dying.put(W, RULES, "rule/1", {"n": 2})
    monkeypatch.undo()
    during = [await stamp_of(store) for _ in range(5)]
    assert len({before, *during}) == 6
    now = time.time()
    monkeypatch.setattr(rule_stamps.time, "time", lambda: now + 61 + 2)
    found = [await stamp_of(store), await stamp_of(store), await stamp_of(store)]
    assert found[1] == found[2]
    assert not {before, *during} & set(found)
    assert (await store.list(W, RULES))[0].value == {"n": 2}


async def test_a_rule_is_never_there_without_its_mark(opened, monkeypatch):
    """The mark is sent before the rule, to the same shard."""
    store = await opened()
    sent: list[list[Any]] = []
    bulk = store._session.connection.bulk

    async def seen(items: Any, **options: Any) -> Any:
        sent.append(list(items))
        return await bulk(items, **options)

    monkeypatch.setattr(store._session.connection, "bulk", seen)
    await store.put(W, RULES, "rule/1", {"n": 1})
    first, then = sent
    assert [item.action for item in first] == ["update", "create"]
    assert [item.action for item in then] == ["update"]
    assert len({(item.index, item.routing) for item in (*first, *then)}) == 1


# -- decisions


async def test_a_decision_is_there_at_once_and_replaced_in_its_place(opened):
    store, other = await opened(), await opened()
    for number in range(5):
        await (store, other)[number % 2].log_decision(W, decision(number, conversation_id=f"c{number % 2}"))
    await other.log_decision(W, decision(1, outcome="not_run", conversation_id="c1"))
    assert [each.id for each in await store.decisions(W)] == ["d4", "d3", "d2", "d1", "d0"]
    assert [each.id for each in await store.decisions(W, conversation="c1")] == ["d3", "d1"]
    assert [each.id for each in await store.decisions(W, ids=["d0", "none", "d4"])] == ["d4", "d0"]
    assert (await store.decisions(W, ids=["d1"]))[0].outcome == "not_run"
    assert [each.id for each in await store.decisions(W, tool="search", limit=2)] == ["d4", "d3"]
    assert await store.decisions(W, tool="another") == []
    assert await store.decisions("another") == []
    assert (await store.info())["workspaces"][W]["decisions"] == 5
    await store.delete_workspace(W)
    assert await store.decisions(W) == []


async def test_of_decisions_beyond_the_limit_the_oldest_go(opened):
    store = await opened(log=LogLimits(max_decisions=10))
    for number in range(25):
        await store.log_decision(W, decision(number))
        await store.log_decision("another", decision(number))
    found = [each.id for each in await store.decisions(W)]
    assert found == [f"d{number}" for number in range(24, 14, -1)]
    assert len(await store.decisions("another")) == 10


async def test_decisions_logged_at_once_by_several_writers_are_all_there_once(opened):
    stores = [await opened() for _ in range(3)]
    await asyncio.gather(*(stores[number % 3].log_decision(W, decision(number % 20)) for number in range(60)))
    assert sorted(each.id for each in await stores[0].decisions(W)) == sorted(f"d{number}" for number in range(20))


async def test_a_clock_that_goes_back_keeps_the_order_of_what_is_logged(opened, monkeypatch):
    from toolmem.store.elastic import positions

    store, other = await opened(), await opened()
    await store.log_decision(W, decision(0))
    now = time.time_ns()
    monkeypatch.setattr(positions.time, "time_ns", lambda: now - 3600 * 10**9)
    await other.log_decision(W, decision(1))
    await store.log_decision(W, decision(2))
    assert [each.id for each in await store.decisions(W)] == ["d2", "d1", "d0"]
