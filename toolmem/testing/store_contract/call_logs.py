"""The log of calls: order, what leaves a window stays, limits, which part is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from toolmem.models import ToolCallResult
from toolmem.protocols import MemoryStore
from toolmem.stored import LoggedCall, LogLimits
from toolmem.testing.store_contract.copies import dumped
from toolmem.testing.store_contract.scenario import (
    OTHER_JUDGE,
    START,
    TOOL,
    Scenario,
    StoreFactory,
    W,
    append,
    call,
    calls,
    drive,
    driven,
    kept_calls,
    numbers_of,
    verdict,
)


async def log_of(store: MemoryStore, workspace: str = W, **asked: Any) -> list[int]:
    """The numbers of the logged calls that are asked for, in the order of the answer."""
    logged = await store.call_log(workspace, **asked)
    positions = [each.position for each in logged]
    assert positions == sorted(set(positions))
    return numbers_of([each.call for each in logged])


def in_conversation(name: str, *numbers: int, tool: str = TOOL, key: str = "conversation_id") -> list[ToolCallResult]:
    return [call(number, tool, metadata={key: name}) for number in numbers]


def limited(factory: StoreFactory, **limits: int) -> MemoryStore:
    return factory(log=LogLimits(**limits))


class CallLogContract(Scenario):
    @driven
    async def test_every_call_is_logged_in_the_order_in_which_it_came(self, store: MemoryStore) -> None:
        for tool, numbers in ((TOOL, [5, 1]), ("other", [2]), (TOOL, [4]), ("other", [0, 3])):
            await append(store, *numbers, tool=tool)
        assert await log_of(store) == [5, 1, 2, 4, 0, 3]  # whatever their times

    @driven
    async def test_a_logged_call_is_the_kept_one_without_what_the_window_says(self, store: MemoryStore) -> None:
        whole = call(
            1,
            input={"deep": [1, {"漢字": None}]},
            success=False,
            time_cost=None,
            context="asked",
            metadata={"session_id": "s", "n": [1]},
        ).judged(verdict(0.0, OTHER_JUDGE, execution_failed=True, error_class="not_found"))
        await store.append_calls(W, TOOL, [whole, call(2, judged=False, success=None)], 10)
        kept = await kept_calls(store)
        logged = [each.call for each in await store.call_log(W)]
        assert logged == [each.model_copy(update={"seq": None, "is_summarized": False}) for each in kept]
        assert all(each.id for each in logged)

    @driven
    async def test_what_a_window_drops_stays_in_the_log(self, store: MemoryStore) -> None:
        for number in range(8):
            await append(store, number, keep=3)
        assert numbers_of(await kept_calls(store)) == [5, 6, 7]
        assert await log_of(store) == await log_of(store, tool=TOOL) == list(range(8))
        await append(store, 8, keep=1)
        assert await log_of(store) == list(range(9))
        (record,) = await store.records(W, [TOOL])
        assert (record.first_seq, record.last_seq, record.counters.calls) == (9, 9, 9)

    @driven
    async def test_calls_that_never_enter_a_window_are_logged(self, store: MemoryStore) -> None:
        await append(store, *range(10), keep=4)
        assert numbers_of(await kept_calls(store)) == [6, 7, 8, 9]
        assert await log_of(store) == list(range(10))
        ids = [each.call.id for each in await store.call_log(W)]
        assert len(set(ids)) == 10
        assert await store.known_ids(W, TOOL, [each for each in ids if each]) == set(ids)

    @driven
    async def test_a_call_sent_twice_is_logged_once_and_a_refused_one_never(self, store: MemoryStore) -> None:
        for _ in range(2):
            await store.append_calls(W, TOOL, [call(1, id="a"), call(2, time_cost=-1.0), call(3, id="a")], 1)
        await append(store, 4, keep=1)
        await store.append_calls(W, TOOL, [call(5, id="a")], 1)  # no window has it any more
        assert await log_of(store) == [1, 4]

    @driven
    async def test_a_judgement_is_as_it_is_now(self, store: MemoryStore) -> None:
        await store.append_calls(W, TOOL, [call(1, judged=False), call(2, judged=False)], 10)
        late = call(1).judged(verdict(0.0, OTHER_JUDGE, evaluation="It failed.", execution_failed=True))
        await store.update_verdicts(W, TOOL, {1: late})
        first, second = (each.call for each in await store.call_log(W))
        assert (first.score, first.evaluation, first.judge) == (0.0, "It failed.", OTHER_JUDGE)
        assert (first.evaluation_status, first.execution_failed) == ("ok", True)
        assert (second.score, second.evaluation_status) == (None, "pending")
        await append(store, 3, 4, keep=2)
        assert [each.call.score for each in await store.call_log(W)] == [0.0, None, 1.0, 1.0]

    # -- which part of it

    @driven
    async def test_a_part_is_asked_for_by_position_and_number(self, store: MemoryStore) -> None:
        for number in range(10):
            await append(store, number, tool="ab"[number % 2], keep=2)
        positions = [each.position for each in await store.call_log(W)]
        assert await log_of(store, limit=3) == [0, 1, 2]
        assert await log_of(store, limit=3, newest=True) == [7, 8, 9]
        assert await log_of(store, after=positions[4]) == [5, 6, 7, 8, 9]
        assert await log_of(store, after=positions[4], limit=2) == [5, 6]
        assert await log_of(store, after=positions[4], limit=2, newest=True) == [8, 9]
        assert await log_of(store, after=positions[8], limit=5, newest=True) == [9]
        assert await log_of(store, after=positions[9]) == []
        assert await log_of(store, limit=0) == []

    @driven
    async def test_a_tool_is_asked_for_by_its_exact_name(self, store: MemoryStore) -> None:
        for number in range(9):
            await append(store, number, tool=["Search", "search", "search, fast"][number % 3], keep=1)
        positions = [each.position for each in await store.call_log(W)]
        assert await log_of(store, tool="search") == [1, 4, 7]
        assert await log_of(store, tool="search", after=positions[1]) == [4, 7]
        assert await log_of(store, tool="search", after=positions[2], limit=1) == [4]
        assert await log_of(store, tool="search", limit=2, newest=True) == [4, 7]
        assert await log_of(store, tool="search", after=positions[8]) == []
        assert await log_of(store, tool="SEARCH") == []

    @driven
    async def test_a_conversation_is_asked_for_by_what_its_calls_tell(self, store: MemoryStore) -> None:
        await store.append_calls(W, TOOL, in_conversation("one", 0, 1), 1)
        await store.append_calls(W, "other", in_conversation("one", 2, tool="other", key="session_id"), 1)
        await store.append_calls(W, TOOL, [*in_conversation("two", 3), call(4)], 1)
        await store.append_calls(W, TOOL, in_conversation(" one ", 5, key="run_id"), 1)
        await store.append_calls(W, TOOL, [call(6, metadata={"thread_id": 17})], 1)
        positions = [each.position for each in await store.call_log(W)]
        assert await log_of(store, conversation="one") == [0, 1, 2, 5]
        assert await log_of(store, conversation="one", tool="other") == [2]
        assert await log_of(store, conversation="one", after=positions[0], limit=2) == [1, 2]
        assert await log_of(store, conversation="one", limit=2, newest=True) == [2, 5]
        assert await log_of(store, conversation="one", tool=TOOL, limit=2, newest=True) == [1, 5]
        assert await log_of(store, conversation="17") == [6]
        for unknown in ("", "One", "three", "\ud800"):
            assert await log_of(store, conversation=unknown) == []

    @driven
    async def test_what_is_not_there_has_no_calls(self, store: MemoryStore) -> None:
        await append(store, 1)
        assert await store.call_log("elsewhere") == await store.call_log("\ud800") == []
        assert await store.call_log(W, tool="unknown") == await store.call_log(W, tool="\ud800") == []
        assert await log_of(store, after=2**53) == []

    @driven
    async def test_two_workspaces_never_see_each_others_calls(self, store: MemoryStore) -> None:
        for number, workspace in enumerate(("a", "b", "a", "A", "b")):
            await store.append_calls(workspace, TOOL, in_conversation("same", number), 1)
        for asked in ({}, {"conversation": "same"}, {"tool": TOOL}, {"conversation": "same", "tool": TOOL}):
            assert await log_of(store, "a", **asked) == [0, 2]
            assert await log_of(store, "b", **asked) == [1, 4]
            assert await log_of(store, "A", **asked) == [3]

    # -- taken over, deleted

    @driven
    async def test_a_memory_that_is_taken_over_is_logged_once(self, store: MemoryStore) -> None:
        await store.append_calls(W, TOOL, [*in_conversation("c", 1, 2), call(3)], 10)
        (memory,) = await store.memories(W, [TOOL], calls=True)
        for _ in range(2):
            await store.merge("copy", dumped(memory), 2)
        assert await log_of(store, "copy") == [1, 2, 3]
        assert await log_of(store, "copy", conversation="c") == [1, 2]

    @driven
    async def test_a_deleted_tool_takes_its_logged_calls_along(self, store: MemoryStore) -> None:
        for number in range(6):
            await append(store, number, tool="ab"[number % 2], keep=1)
        (record,) = await store.records(W, ["a"])
        seen = (await store.call_log(W))[-1].position
        await store.delete_memories(W, [record.memory_id])
        assert await log_of(store) == [1, 3, 5]
        assert await log_of(store, tool="a") == []
        await append(store, 7, tool="a")
        assert await log_of(store, after=seen) == [7]  # no position is given twice
        await store.delete_tools(W)
        assert await log_of(store) == []
        await append(store, 8, tool="b")
        assert await log_of(store) == [8]

    @driven
    async def test_a_deleted_workspace_leaves_no_calls(self, store: MemoryStore) -> None:
        for workspace in (W, "other"):
            await store.append_calls(workspace, TOOL, in_conversation("c", 1, 2), 1)
        await store.delete_workspace(W)
        assert await store.call_log(W) == await store.call_log(W, conversation="c") == []
        assert await log_of(store, "other") == [1, 2]
        await append(store, 3)
        assert await log_of(store) == [3]

    @driven
    async def test_info_counts_logged_calls_and_decisions(self, store: MemoryStore) -> None:
        await append(store, *range(5), keep=2)
        held = (await store.info())["workspaces"][W]
        assert (held["calls"], held["logged_calls"], held["decisions"]) == (2, 5, 0)

    @driven
    async def test_adders_at_the_same_time_lose_no_logged_call(self, store: MemoryStore) -> None:
        async def adder(first: int) -> None:
            for number in range(first, first + 10):
                await append(store, number, keep=3, tool="ab"[number % 2])

        await asyncio.gather(*(adder(100 * n) for n in range(6)))
        numbers = await log_of(store)
        assert sorted(numbers) == sorted(100 * n + i for n in range(6) for i in range(10))
        for n in range(6):
            assert [each for each in numbers if each // 100 == n] == [100 * n + i for i in range(10)]

    @driven
    async def test_a_clock_that_goes_back_changes_no_order(self, store: MemoryStore) -> None:
        for number, hours in enumerate((0, 5, -5, 2)):
            await store.append_calls(W, TOOL, [call(number, create_time=START + timedelta(hours=hours))], 2)
        assert await log_of(store) == [0, 1, 2, 3]
        assert await log_of(store, newest=True, limit=2) == [2, 3]

    # -- limits

    def test_the_oldest_calls_go_when_there_are_too_many(self, store_factory: StoreFactory) -> None:
        async def scenario(store: MemoryStore) -> None:
            for number in range(12):
                await append(store, number, tool="ab"[number % 2], keep=1)
            assert await log_of(store) == await log_of(store, limit=10_000) == [7, 8, 9, 10, 11]
            assert await log_of(store, tool="a") == [8, 10]
            await append(store, *range(20, 40), keep=2)
            assert await log_of(store) == [10, 11, 35, 36, 37, 38, 39]  # the windows of a and b have theirs still
            assert (await store.records(W, [TOOL]))[0].counters.calls == 20
            await append(store, 40, workspace="another")
            assert len(await log_of(store)) == 7

        drive(limited(store_factory, max_calls=5), scenario)

    def test_what_a_window_keeps_is_logged_until_that_drops_it(self, store_factory: StoreFactory) -> None:
        async def scenario(store: MemoryStore) -> None:
            await append(store, 0, 1, 2, tool="rare", keep=3)
            await append(store, *range(10, 20), tool="often", keep=1)
            assert numbers_of(await kept_calls(store, "rare")) == [0, 1, 2]
            assert await log_of(store) == [0, 1, 2, 16, 17, 18, 19]
            await append(store, 3, tool="rare", keep=3)
            assert await log_of(store) == [1, 2, 17, 18, 19, 3]
            assert numbers_of(await kept_calls(store, "rare")) == [1, 2, 3]
            await append(store, 4, tool="rare", keep=1)
            assert await log_of(store) == [18, 19, 3, 4]
            assert await log_of(store, tool="rare") == [3, 4]

        drive(limited(store_factory, max_calls=4), scenario)

    def test_the_oldest_calls_go_when_they_are_too_long(self, store_factory: StoreFactory) -> None:
        def long(*numbers: int) -> Sequence[ToolCallResult]:
            return [call(number, context="x" * 10_000) for number in numbers]

        async def scenario(store: MemoryStore) -> None:
            for number in range(6):
                await store.append_calls(W, TOOL, long(number), 1)
            assert await log_of(store) == [3, 4, 5]
            await store.append_calls(W, TOOL, [call(6, context="x" * 50_000)], 2)
            assert await log_of(store) == [5, 6]  # held by the window alone
            assert numbers_of(await kept_calls(store)) == [5, 6]
            await store.append_calls(W, TOOL, long(7, 8), 1)
            assert await log_of(store) == [7, 8]

        drive(limited(store_factory, max_bytes=35_000), scenario)

    def test_a_deleted_tool_makes_place_in_a_full_log(self, store_factory: StoreFactory) -> None:
        async def scenario(store: MemoryStore) -> None:
            for number in range(6):
                await append(store, number, tool="ab"[number % 2], keep=1)
            assert await log_of(store) == [2, 3, 4, 5]
            (record,) = await store.records(W, ["a"])
            await store.delete_memories(W, [record.memory_id])
            for number in range(6, 8):
                await append(store, number, tool="b", keep=1)
            assert await log_of(store) == [3, 5, 6, 7]
            await append(store, 8, tool="b", keep=1)
            assert await log_of(store) == [5, 6, 7, 8]

        drive(limited(store_factory, max_calls=4), scenario)

    def test_a_smaller_limit_holds_from_the_next_call_on(self, store_factory: StoreFactory) -> None:
        async def fill(store: MemoryStore) -> None:
            await store.append_calls(W, TOOL, calls(range(20)), 1)
            assert len(await log_of(store)) == 20

        async def add(store: MemoryStore) -> None:
            await append(store, 20, keep=1)
            assert await log_of(store) == [18, 19, 20]
            assert isinstance((await store.call_log(W))[0], LoggedCall)

        drive(store_factory(), fill)
        drive(limited(store_factory, max_calls=3), add)
