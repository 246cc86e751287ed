"""What the distributed store promises of stamps and logs where writers die, meet, or find the limit reached."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from elasticsearch_nodes.proxy import Proxy, once, rejection
from elasticsearch_nodes.server import Server

from toolmem.models import ToolCallResult
from toolmem.store.elastic import rule_stamps
from toolmem.store.elastic.commits import Commit
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.stored import LoggedCall, LoggedDecision, LogLimits
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


# -- the call log


def call(number: int, **told: Any) -> ToolCallResult:
    metadata = {"conversation_id": told.pop("conversation", "c1")}
    fixed = {"tool_name": "search", "input": {"n": number}, "output": f"output {number}", "success": True}
    made = {"create_time": datetime(2026, 1, 1, tzinfo=UTC), "metadata": metadata}
    return ToolCallResult(**{**fixed, **made, **told})


async def append(store: ElasticsearchStore, *calls: ToolCallResult, keep: int = 3, workspace: str = W) -> None:
    for tool in dict.fromkeys(each.tool_name for each in calls):
        await store.append_calls(workspace, tool, [each for each in calls if each.tool_name == tool], keep)


def numbers(log: list[LoggedCall]) -> list[int]:
    assert [each.position for each in log] == sorted({each.position for each in log})
    return [each.call.input["n"] for each in log]


async def test_the_log_holds_each_call_whether_the_window_keeps_it_or_not(opened):
    store = await opened()
    for number in range(4):
        await append(store, call(number))
    await append(store, *(call(number) for number in range(4, 14)))
    await append(store, *(call(number, tool_name="other", conversation="c2") for number in range(14, 18)), keep=2)
    log = await store.call_log(W)
    assert numbers(log) == list(range(18))
    assert {(each.call.seq, each.call.is_summarized) for each in log} == {(None, False)}
    assert log[5].call.output == "output 5"
    assert numbers(await store.call_log(W, conversation="c2")) == [14, 15, 16, 17]
    assert numbers(await store.call_log(W, tool="search", limit=3)) == [0, 1, 2]
    assert numbers(await store.call_log(W, tool="search", limit=3, newest=True)) == [11, 12, 13]
    assert numbers(await store.call_log(W, after=log[9].position, limit=2)) == [10, 11]
    assert numbers(await store.call_log(W, conversation="c1", tool="other")) == []
    assert await store.call_log(W, tool="none") == await store.call_log("none") == []
    assert await store.call_log(W, after=2**80) == await store.call_log(W, limit=0) == []
    assert numbers(await store.call_log(W, after=-(2**80), limit=1)) == [0]
    held = (await store.info())["workspaces"][W]
    assert (held["logged_calls"], held["calls"]) == (18, 5)


async def test_a_logged_call_keeps_its_place_when_it_is_judged_again(opened):
    store = await opened()
    await append(store, *(call(number) for number in range(5)))
    before = await store.call_log(W)
    judged = before[3].call.model_copy(update={"score": 1.0, "evaluation_status": "ok", "summary": "fine"})
    await store.update_verdicts(W, "search", {4: judged})
    after = await store.call_log(W)
    assert [each.position for each in after] == [each.position for each in before]
    assert [each.call.score for each in after] == [None, None, None, 1.0, None]
    await append(store, *(call(number) for number in range(5, 9)))
    assert [each.call.score for each in await store.call_log(W)] == [None, None, None, 1.0, *[None] * 5]


async def test_writers_at_once_leave_every_call_once_and_each_of_them_in_its_order(opened):
    stores = [await opened() for _ in range(3)]

    async def write(writer: int) -> None:
        for number in range(15):
            tool = f"tool{(writer + number) % 4}"
            await append(stores[writer], *(call(writer * 100 + number * 2 + n, tool_name=tool) for n in (0, 1)), keep=4)

    await asyncio.gather(*(write(writer) for writer in range(3)))
    seen: list[LoggedCall] = []
    while page := await stores[0].call_log(W, after=seen[-1].position if seen else 0, limit=7):
        seen += page
    log = numbers(seen)
    assert sorted(log) == [writer * 100 + number for writer in range(3) for number in range(30)]
    for writer in range(3):
        own = [number for number in log if number // 100 == writer]
        assert own == sorted(own)


async def test_what_no_commit_named_is_never_in_the_log_and_goes_with_the_sweep(opened, monkeypatch):
    store, dying = await opened(), await opened()
    await append(store, *(call(number) for number in range(5)))

    async def die(*_: Any) -> bool:
        raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        patched.setattr(dying._session, "swap", die)
        for tool in ("search", "other"):
            with pytest.raises(asyncio.CancelledError):
                await append(dying, call(99, tool_name=tool))
    assert numbers(await store.call_log(W)) == list(range(5))
    await append(store, *(call(number) for number in range(5, 9)))
    assert numbers(await store.call_log(W)) == list(range(9))
    await dying._session.connection.refresh(dying._layout.alias("meta"))
    assert await store.sweep(-5) == 2
    assert numbers(await store.call_log(W)) == list(range(9))
    assert numbers(
        [LoggedCall(0, each) for each in (await store.memories(W, ["search"], calls=True))[0].calls][-1:]
    ) == [8]


async def test_calls_that_a_dead_writer_dropped_stay_in_the_log_and_are_marked_by_the_next_commit(opened, monkeypatch):
    store, dying = await opened(), await opened()
    await append(store, *(call(number) for number in range(3)))

    async def die(*_: Any) -> bool:
        raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        patched.setattr(Commit, "_after", die)
        with pytest.raises(asyncio.CancelledError):
            await append(dying, *(call(number) for number in range(3, 8)))
    assert numbers(await store.call_log(W)) == list(range(8))
    await store.sweep(-5)
    assert numbers(await store.call_log(W)) == list(range(8))
    await append(store, call(8))
    assert numbers(await store.call_log(W)) == list(range(9))
    assert (await store.info())["workspaces"][W]["logged_calls"] == 9
    await store.sweep(-5)
    assert numbers(await store.call_log(W)) == list(range(9))


async def test_beyond_the_limits_the_oldest_go_but_what_a_window_keeps(opened):
    store = await opened(log=LogLimits(max_calls=10))
    await append(store, *(call(number, tool_name="rare") for number in range(3)))
    for number in range(3, 30):
        await append(store, call(number))
    assert numbers(await store.call_log(W)) == [0, 1, 2, *range(20, 30)]
    small = await opened(log=LogLimits(max_bytes=400))
    await append(small, *(call(number) for number in range(30, 40)))
    kept = numbers(await store.call_log(W, tool="search"))
    assert kept == list(range(kept[0], 40))
    assert 37 >= kept[0] > 34
    assert [each.call.input["n"] for each in await store.call_log(W, tool="rare")] == [0, 1, 2]


async def test_where_a_log_cannot_be_shortened_the_commit_and_the_decision_stand(server, fresh_prefix):
    async with Proxy(server.url) as proxy:
        fixed = {"clock": ManualClock(), "embedder": None, "index_prefix": fresh_prefix(), "number_of_replicas": 0}
        async with ElasticsearchStore(proxy.url, log=LogLimits(max_calls=2, max_decisions=2), **fixed) as store:
            await append(store, *(call(number) for number in range(3)), keep=1)
            proxy.faults = [once("_refresh", rejection(500, "internal"), times=9)]
            await append(store, call(3), keep=1)
            for number in range(4):
                await store.log_decision(W, decision(number))
            proxy.faults = []
            assert numbers(await store.call_log(W)) == [1, 2, 3]
            assert len(await store.decisions(W)) == 4
            await append(store, call(4), keep=1)
            await store.log_decision(W, decision(4))
            assert numbers(await store.call_log(W)) == [3, 4]
            assert [each.id for each in await store.decisions(W)] == ["d4", "d3"]
            assert await store.workspaces() == [W]


async def test_a_deleted_tool_takes_its_log_along_and_a_deleted_workspace_all(opened):
    store = await opened()
    await append(
        store, *(call(number) for number in range(5)), *(call(number, tool_name="b") for number in range(5, 9))
    )
    (record,) = await store.records(W, ["b"])
    last = (await store.call_log(W))[-1].position
    await store.delete_memories(W, [record.memory_id])
    assert numbers(await store.call_log(W)) == list(range(5))
    await store.delete_tools(W)
    assert await store.call_log(W) == []
    await append(store, call(9))
    await store.delete_workspace(W)
    await append(store, call(10))
    (again,) = await store.call_log(W)
    assert again.position > last
    assert again.call.input == {"n": 10}
