"""Taking over dumped or copied memories."""

from __future__ import annotations

import pytest

from toolmem.errors import RequestError
from toolmem.models import Claim, RepairCount, RepairHistory, ToolCallResult, ToolMemory
from toolmem.protocols import MemoryStore
from toolmem.stored import StoredMemory
from toolmem.testing.store_contract.scenario import (
    START,
    TOOL,
    Scenario,
    W,
    append,
    call,
    calls,
    document,
    driven,
    guidance,
    kept_calls,
    numbers_of,
    vector,
)

COPY = "copy"
UPKEEP = {
    "update_tokens": 321,
    "edits": 2,
    "history": RepairHistory(
        since=START,
        calls=6,
        last_seq=6,
        recovered={"no gap": 1},
        repairs=(RepairCount(error="no gap", kind="added", path="gap", k=1, call_ids=("x",)),),
    ),
}


def dumped(stored: StoredMemory) -> ToolMemory:
    """A memory as a dump holds it, in the words of `MemoryStore.merge`."""
    record, held = stored.record, stored.record.guidance
    return ToolMemory(
        workspace_id=record.workspace,
        memory_id=record.memory_id,
        when_to_use=record.tool_name,
        content=held.text if held else "",
        score=None,
        time_created=record.time_created,
        time_modified=record.time_modified,
        author=held.author if held else "",
        tool_call_results=list(stored.calls),
        metadata={
            "lifetime": record.counters.model_dump(mode="json"),
            "claims": [claim.model_dump(mode="json") for claim in held.claims] if held else [],
            "guidance_statistics": held.statistics.model_dump(mode="json") if held else None,
            "prompt_version": held.prompt_version if held else None,
            "prompt_tokens": held.prompt_tokens if held else 0,
            "guidance_created_at": held.created_at.isoformat() if held and held.created_at else None,
            **({"upkeep": held.upkeep()} if held else {}),
        },
    )


def foreign(tool_calls: list[ToolCallResult], **fields: object) -> ToolMemory:
    """A memory as ReMe writes it: no ids, no seqs, no counters."""
    return ToolMemory.model_validate(
        {
            "workspace_id": "theirs",
            "memory_id": "theirs-1",
            "when_to_use": TOOL,
            "content": "",
            "score": None,
            "time_created": START,
            "time_modified": START,
            "author": "",
            "tool_call_results": tool_calls,
            **fields,
        }
    )


async def dump(store: MemoryStore, workspace: str = W, tool: str = TOOL) -> ToolMemory:
    (stored,) = await store.memories(workspace, [tool], calls=True)
    return dumped(stored)


class MergingContract(Scenario):
    async def _filled(self, store: MemoryStore) -> StoredMemory:
        """A tool with trimmed calls, given and assigned ids, a pending call, and guidance on a part of it."""
        await store.append_calls(W, TOOL, [call(n, id=f"given {n}" if n % 2 else None) for n in range(8)], 6)
        await store.append_calls(W, TOOL, [call(8, judged=False)], 6)
        claims = [Claim(text="all good", k=3, n=3, call_ids=("x",))]
        held = guidance("Mind the gap.", [4, 5, 6], claims=claims, **UPKEEP)
        await store.put_guidance(W, TOOL, held, document=document(), guidance_version=0)
        (stored,) = await store.memories(W, [TOOL], calls=True)
        return stored

    @driven
    async def test_a_tool_that_is_new_takes_over_everything(self, store: MemoryStore) -> None:
        original = await self._filled(store)
        merged = await store.merge(COPY, dumped(original), 100)
        assert (merged.stored, merged.duplicates, merged.trimmed) == (6, (), 0)
        (copied,) = await store.memories(COPY, [TOOL], calls=True)
        assert copied.calls == original.calls
        assert copied.figures == original.figures
        for name in ("memory_id", "first_seq", "last_seq", "covered", "unjudged", "counters", "time_created"):
            assert getattr(copied.record, name) == getattr(original.record, name), name
        assert copied.record.guidance == original.record.guidance

    @driven
    async def test_what_the_guidance_knows_by_seq_follows_calls_that_get_other_seqs(self, store: MemoryStore) -> None:
        """Kept are the seqs 4 to 9, known up to 6; without the call 5 the others become 1 to 5, known up to 2."""
        memory = dumped(await self._filled(store))
        gap = [one for one in memory.tool_call_results if one.seq != 5]
        for name, kept, known in (("gap", gap, 2), ("no calls", [], 0)):
            merged = await store.merge(name, memory.model_copy(update={"tool_call_results": kept}), 100)
            assert merged.record is not None
            held = merged.record.guidance
            assert held is not None
            assert held.history is not None
            assert (held.history.last_seq, held.history.calls) == (known, 6)
            assert (held.edits, held.update_tokens) == (2, 321)

    @driven
    async def test_an_upkeep_of_another_form_is_refused_and_nothing_is_written(self, store: MemoryStore) -> None:
        for wrong in ("x", [1], {"history": 3}, {"history": {"calls": 1}}, {"edits": "many"}):
            with pytest.raises(RequestError, match="not a guidance"):
                await store.merge(W, foreign([call(1)], content="Theirs.", metadata={"upkeep": wrong}), 100)
        assert await store.tool_names(W) == []

    @driven
    async def test_the_same_memory_merged_twice_adds_nothing(self, store: MemoryStore) -> None:
        memory = dumped(await self._filled(store))
        for workspace in (W, COPY):
            await store.merge(workspace, memory, 100)
            before = await store.memories(workspace, None, calls=True)
            again = await store.merge(workspace, memory, 100)
            assert (again.stored, len(again.duplicates)) == (0, 6)
            assert await store.memories(workspace, None, calls=True) == before

    @driven
    async def test_a_memory_without_ids_merged_twice_adds_nothing(self, store: MemoryStore) -> None:
        memory = foreign([call(1), call(2), call(1), call(2, judged=False)])
        assert (await store.merge(W, memory, 100)).stored == 4
        assert (await store.merge(W, memory, 100)).stored == 0
        longer = foreign([*memory.tool_call_results, call(3), call(1)])
        assert (await store.merge(W, longer, 100)).stored == 2
        assert numbers_of(await kept_calls(store)) == [1, 2, 1, 2, 3, 1]

    @driven
    async def test_calls_that_are_new_are_added_and_nothing_is_replaced(self, store: MemoryStore) -> None:
        await append(store, 1, 2)
        first = await store.put_guidance(W, TOOL, guidance("Mine.", [1, 2]), document=document(), guidance_version=0)
        memory = foreign([call(7, id="a"), call(8, id="b")], content="Theirs.", metadata={"lifetime": {"calls": 900}})
        merged = await store.merge(W, memory, 100)
        assert merged.stored == 2
        assert merged.record is not None
        assert merged.record.guidance == first.guidance
        assert merged.record.memory_id == first.memory_id
        assert merged.record.covered == [(1, 2)]
        assert merged.record.counters.calls == 4
        assert numbers_of(await kept_calls(store)) == [1, 2, 7, 8]

    @driven
    async def test_two_copies_that_went_apart_lose_no_call_when_they_meet(self, store: MemoryStore) -> None:
        await append(store, 1, 2)
        await store.merge(COPY, await dump(store), 100)
        await append(store, 3)
        await append(store, 4, workspace=COPY)
        assert (await store.merge(COPY, await dump(store), 100)).stored == 1
        assert numbers_of(await kept_calls(store, workspace=COPY)) == [1, 2, 4, 3]
        assert (await store.merge(W, await dump(store, COPY), 100)).stored == 1
        assert numbers_of(await kept_calls(store)) == [1, 2, 3, 4]

    @driven
    async def test_the_newest_calls_of_a_memory_stay(self, store: MemoryStore) -> None:
        merged = await store.merge(W, foreign(calls(range(10))), 4)
        assert (merged.stored, merged.trimmed) == (10, 6)
        assert merged.record is not None
        assert merged.record.counters.calls == 10
        assert numbers_of(await kept_calls(store)) == [6, 7, 8, 9]

    @driven
    async def test_guidance_taken_over_can_be_searched(self, store: MemoryStore) -> None:
        await store.merge(W, foreign([], content="Quote the umbrella.", when_to_use="words"), 9)
        memory = foreign([], content="Quote the parasol.", when_to_use="both", memory_id="theirs-2")
        await store.merge(W, memory, 9, document=document("Quote the parasol.", 0, 1, 0, 0))
        assert [hit.key for hit in await store.search(W, "umbrella", None, 5)] == ["words"]
        assert [hit.key for hit in await store.search(W, "", vector(0, 1, 0, 0), 5)] == ["both"]
        (record,) = await store.records(W, ["words"])
        assert record.guidance is not None
        assert (record.guidance.text, record.last_seq) == ("Quote the umbrella.", 0)

    @driven
    async def test_a_bad_call_of_a_memory_is_named_and_the_others_are_taken(self, store: MemoryStore) -> None:
        merged = await store.merge(W, foreign([call(1), call(2, time_cost=float("nan")), call(3)]), 100)
        assert merged.stored == 2
        assert [failure.index for failure in merged.failures] == [1]

    @driven
    async def test_a_memory_id_that_another_tool_has_is_not_taken_over(self, store: MemoryStore) -> None:
        await store.merge(W, foreign([call(1)]), 9)
        merged = await store.merge(W, foreign([call(1, "b")], when_to_use="b"), 9)
        assert merged.record is not None
        assert merged.record.memory_id != "theirs-1"
        assert await store.delete_memories(W, ["theirs-1"]) == ["theirs-1"]
        assert await store.tool_names(W) == ["b"]

    @driven
    async def test_a_memory_that_cannot_be_read_is_refused_whole(self, store: MemoryStore) -> None:
        for memory in (
            foreign([call(1)], when_to_use=""),
            foreign([call(1)], when_to_use="\ud800"),
            foreign([call(1)], content="x", metadata={"claims": "none"}),
            foreign([call(1)], metadata={"lifetime": {"calls": "many"}}),
            foreign([call(1)], time_created="2026-01-01T00:00:00"),
        ):
            with pytest.raises(RequestError):
                await store.merge(W, memory, 9)
        assert await store.tool_names(W) == []
