"""Names, workspaces, handles: what is kept apart, what is shared, and by whom at the same time."""

from __future__ import annotations

import asyncio

import pytest

from toolmem.errors import StoreClosed
from toolmem.protocols import MemoryStore
from toolmem.stored import Where
from toolmem.testing.store_contract.scenario import (
    TOOL,
    Scenario,
    StoreFactory,
    W,
    append,
    call,
    document,
    driven,
    guidance,
    kept_calls,
    numbers_of,
    verdict,
)

NAMES = (
    "search",
    "Search",
    "SEARCH",
    "a, b",
    "with space",
    " leading",
    "path/to/tool",
    "back\\slash",
    "发送邮件",
    "Ünïcode",
    "quo'te\"s",
    "%_*?",
    "nul\0inside",
    "x" * 500,
    "emoji 🔧",
    "tool\nline",
)


class TenancyContract(Scenario):
    @driven
    async def test_names_are_exact(self, store: MemoryStore) -> None:
        for name in NAMES:
            await store.append_calls(W, name, [call(1, name, output=f"of {name}")], 10)
        assert await store.tool_names(W) == sorted(NAMES)
        asked = [*reversed(NAMES), "missing", "searc"]
        memories = await store.memories(W, asked, calls=True)
        assert [memory.record.tool_name for memory in memories] == list(reversed(NAMES))
        assert [memory.calls[0].output for memory in memories] == [f"of {name}" for name in reversed(NAMES)]
        assert [record.tool_name for record in await store.records(W, None)] == sorted(NAMES)

    @driven
    async def test_workspaces_never_see_each_other(self, store: MemoryStore) -> None:
        await append(store, 1, workspace="one")
        await append(store, 2, 3, workspace="One")
        assert numbers_of(await kept_calls(store, workspace="one")) == [1]
        assert numbers_of(await kept_calls(store, workspace="One")) == [2, 3]
        assert await store.workspaces() == ["One", "one"]
        assert await store.delete_workspace("One") == 1
        assert await store.workspaces() == ["one"]
        assert await store.memories("One", None) == []
        assert numbers_of(await kept_calls(store, workspace="one")) == [1]

    @driven
    async def test_what_does_not_exist_is_absent_not_an_error(self, store: MemoryStore) -> None:
        assert await store.tool_names("nowhere") == []
        assert await store.records("nowhere", None) == []
        assert await store.memories("nowhere", ["x"]) == []
        assert await store.delete_memories("nowhere", ["x"]) == []
        assert await store.delete_workspace("nowhere") == 0
        assert await store.delete_tools("nowhere") == 0
        assert await store.workspaces() == []

    @driven
    async def test_a_deleted_tool_starts_anew(self, store: MemoryStore) -> None:
        await store.append_calls(W, TOOL, [call(1, id="a")], 10)
        await append(store, 5, tool="other")
        (record,) = await store.records(W, [TOOL])
        assert await store.delete_memories(W, [record.memory_id, "unknown", record.memory_id]) == [record.memory_id]
        assert await store.tool_names(W) == ["other"]
        assert await store.known_ids(W, TOOL, ["a"]) == set()
        appended = await store.append_calls(W, TOOL, [call(2, id="a")], 10)
        assert appended.record is not None
        assert appended.record.memory_id != record.memory_id
        assert (appended.record.last_seq, appended.record.counters.calls) == (1, 1)
        assert numbers_of(await kept_calls(store)) == [2]

    @driven
    async def test_deleting_the_tools_of_a_workspace_leaves_everything_else(self, store: MemoryStore) -> None:
        for workspace in (W, "other"):
            await append(store, 1, 2, workspace=workspace)
            await append(store, 3, tool="second", workspace=workspace)
        await store.put_guidance(W, TOOL, guidance("known"), document=document("known"), guidance_version=0)
        await store.put(W, "tool-second", "rule/1", {"rule": "never"}, document=document("never"))
        await store.put(W, "ledger", "day", {"requests": 1})
        await store.put_verdicts(W, {"judged": verdict()})
        assert await store.delete_tools(W) == 2
        assert await store.delete_tools(W) == 0
        assert await store.tool_names(W) == []
        assert await store.search(W, "known", None, 5) == []
        assert await store.namespaces(W) == ["ledger", "tool-second"]
        (found,) = await store.search(W, "never", None, 5, Where(namespace="tool-second"))
        assert found.key == "rule/1"
        assert await store.verdict_keys(W) == ["judged"]
        assert await store.tool_names("other") == sorted([TOOL, "second"])
        await append(store, 9)
        assert numbers_of(await kept_calls(store)) == [9]

    @driven
    async def test_another_handle_sees_what_was_acknowledged(
        self, store: MemoryStore, store_factory: StoreFactory
    ) -> None:
        other = store_factory()
        await other.open()
        try:
            for number in range(5):
                await append(store, number)
                assert numbers_of(await kept_calls(other)) == list(range(number + 1))
        finally:
            await other.close()

    def test_a_store_opened_again_holds_what_was_stored(self, store_factory: StoreFactory) -> None:
        async def scenario() -> None:
            for number in range(3):
                store = store_factory()
                await store.open()
                await append(store, number)
                await store.close()
                with pytest.raises(StoreClosed):
                    await store.tool_names(W)
                await store.close()
                await store.open()
                assert numbers_of(await kept_calls(store)) == list(range(number + 1))
                await store.close()

        asyncio.run(scenario())

    @driven
    async def test_adders_at_the_same_time_lose_nothing(self, store: MemoryStore) -> None:
        async def adder(first: int) -> None:
            for number in range(first, first + 20):
                await append(store, number, keep=200)

        await asyncio.gather(*(adder(100 * n) for n in range(8)))
        stored = await kept_calls(store)
        assert [each.seq for each in stored] == list(range(1, 161))
        assert sorted(numbers_of(stored)) == sorted(100 * n + i for n in range(8) for i in range(20))

    @driven
    async def test_a_write_whose_caller_was_cancelled_is_finished(self, store: MemoryStore) -> None:
        done = 0
        for number in range(20):
            task = asyncio.create_task(store.append_calls(W, TOOL, [call(number)], 100))
            for _ in range(number % 4 + 1):
                await asyncio.sleep(0)
            task.cancel()
            try:
                await task
                done += 1
            except asyncio.CancelledError:
                pass
        await append(store, 99)
        assert numbers_of(await kept_calls(store)) == [*range(20), 99]

    @driven
    async def test_info_counts_what_there_is(self, store: MemoryStore) -> None:
        await append(store, *range(5), keep=3)
        await append(store, 1, tool="other")
        await store.put(W, "n", "k", {})
        await store.put_verdicts("else", {"k": verdict()})
        info = await store.info()
        counted = ("tools", "calls", "records", "verdicts")
        assert {name: {each: held[each] for each in counted} for name, held in info["workspaces"].items()} == {
            "else": {"tools": 0, "calls": 0, "records": 0, "verdicts": 1},
            W: {"tools": 2, "calls": 4, "records": 1, "verdicts": 0},
        }
        assert {"backend", "location", "schema_version", "embedder"} <= info.keys()

    @driven
    async def test_damaging_what_was_handed_out_changes_nothing_inside(self, store: MemoryStore) -> None:
        await append(store, 1)
        await store.put_guidance(W, TOOL, guidance(covered=[1]), document=document(), guidance_version=0)
        (record,) = await store.records(W, [TOOL])
        assert record.guidance is not None
        record.guidance.covered.append(7)
        record.guidance.statistics.calls = 99
        record.covered.clear()
        record.counters.calls = 99
        (fresh,) = await store.records(W, [TOOL])
        assert fresh.guidance is not None
        assert (fresh.guidance.covered, fresh.covered, fresh.counters.calls) == ([1], [(1, 1)], 1)
        assert fresh.guidance.statistics.calls == 0
