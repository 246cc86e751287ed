"""Guidance and verdicts: what is covered, what is new, who wins."""

from __future__ import annotations

import asyncio

import pytest

from toolmem.errors import Conflict, RequestError
from toolmem.models import Claim, ToolStatistics
from toolmem.protocols import MemoryStore
from toolmem.stored import StoredMemory
from toolmem.testing.store_contract.scenario import (
    OTHER_JUDGE,
    TOOL,
    Scenario,
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


class GuidanceContract(Scenario):
    @driven
    async def test_guidance_comes_back_as_it_was_put(self, store: MemoryStore) -> None:
        await append(store, 1, 2)
        put = guidance(
            "Frage genau: 漢字 “quoted”\n",
            [1, 2],
            claims=[Claim(text="2 of 2 succeeded", k=2, n=2, call_ids=("a", "b"), kind="overall")],
            statistics=ToolStatistics(calls=2, avg_score=1.0, judges=["x"]),
            prompt_tokens=812,
        )
        record = await store.put_guidance(W, TOOL, put, document=document(), guidance_version=0)
        assert record.guidance is not None
        assert record.guidance.created_at is not None
        assert record.guidance == put.model_copy(update={"created_at": record.guidance.created_at})
        assert (await store.records(W, [TOOL])) == [record]

    @driven
    async def test_exactly_what_was_covered_counts_as_summarized(self, store: MemoryStore) -> None:
        await append(store, *range(1, 7))
        record = await store.put_guidance(W, TOOL, guidance(covered=[2, 3, 5]), document=document(), guidance_version=0)
        assert record.covered == [(2, 3), (5, 5)]
        assert [each.seq for each in await kept_calls(store) if each.is_summarized] == [2, 3, 5]

    @driven
    async def test_calls_that_arrive_during_a_summary_stay_new(self, store: MemoryStore) -> None:
        await append(store, 1, 2, 3)
        (read,) = await store.memories(W, [TOOL], calls=True)
        await append(store, 4, 5)
        record = await store.put_guidance(
            W,
            TOOL,
            guidance(covered=[each.seq or 0 for each in read.calls]),
            document=document(),
            guidance_version=read.record.guidance_version,
        )
        assert record.covered == [(1, 3)]
        assert [each.is_summarized for each in await kept_calls(store)] == [True, True, True, False, False]

    @driven
    async def test_earlier_coverage_stays(self, store: MemoryStore) -> None:
        await append(store, *range(1, 5))
        first = await store.put_guidance(W, TOOL, guidance(covered=[1, 2]), document=document(), guidance_version=0)
        second = await store.put_guidance(
            W, TOOL, guidance("Newer.", [4]), document=document(), guidance_version=first.guidance_version
        )
        assert second.covered == [(1, 2), (4, 4)]
        assert second.guidance is not None
        assert second.guidance.text == "Newer."

    @driven
    async def test_coverage_never_reaches_calls_that_are_not_kept(self, store: MemoryStore) -> None:
        await append(store, *range(1, 7), keep=4)  # 3 to 6 stay
        record = await store.put_guidance(
            W, TOOL, guidance(covered=[1, 2, 3, 6, 7, 8]), document=document(), guidance_version=0
        )
        assert record.covered == [(3, 3), (6, 6)]
        await append(store, 7, 8, keep=4)
        (record,) = await store.records(W, [TOOL])
        assert record.covered == [(6, 6)]
        assert [each.is_summarized for each in await kept_calls(store)] == [False, True, False, False]

    @driven
    async def test_of_two_summaries_the_second_is_told(self, store: MemoryStore) -> None:
        await append(store, 1)
        (read,) = await store.records(W, [TOOL])
        version = read.guidance_version
        await store.put_guidance(W, TOOL, guidance("First.", [1]), document=document(), guidance_version=version)
        with pytest.raises(Conflict, match=TOOL):
            await store.put_guidance(W, TOOL, guidance("Second.", [1]), document=document(), guidance_version=version)
        (after,) = await store.records(W, [TOOL])
        assert after.guidance is not None
        assert after.guidance.text == "First."

    @driven
    async def test_guidance_for_a_tool_that_is_gone_conflicts(self, store: MemoryStore) -> None:
        with pytest.raises(Conflict):
            await store.put_guidance(W, TOOL, guidance(), document=document(), guidance_version=0)
        assert await store.tool_names(W) == []

    @driven
    async def test_added_calls_do_not_make_a_summary_conflict(self, store: MemoryStore) -> None:
        await append(store, 1)
        (read,) = await store.records(W, [TOOL])
        await append(store, 2)
        (now,) = await store.records(W, [TOOL])
        assert now.guidance_version == read.guidance_version
        assert now.version > read.version

    @driven
    async def test_guidance_that_no_text_can_hold_is_refused_and_changes_nothing(self, store: MemoryStore) -> None:
        await append(store, 1)
        before = await store.records(W, [TOOL])
        with pytest.raises(RequestError):
            await store.put_guidance(W, TOOL, guidance("\ud800", [1]), document=document(), guidance_version=0)
        assert await store.records(W, [TOOL]) == before

    @driven
    async def test_a_summary_during_adds_loses_nothing_and_marks_only_what_it_read(self, store: MemoryStore) -> None:
        await append(store, *range(10), keep=100)

        async def adder() -> None:
            for number in range(10, 30):
                await append(store, number, keep=100)

        async def summary() -> set[int]:
            covered: set[int] = set()
            for _ in range(10):
                (read,) = await store.memories(W, [TOOL], calls=True)
                await asyncio.sleep(0)
                seqs = [each.seq or 0 for each in read.calls][:-1]
                version = read.record.guidance_version
                await store.put_guidance(W, TOOL, guidance(covered=seqs), document=document(), guidance_version=version)
                covered |= set(seqs)
            return covered

        _, covered = await asyncio.gather(adder(), summary())
        stored = await kept_calls(store)
        assert numbers_of(stored) == list(range(30))
        assert {each.seq for each in stored if each.is_summarized} == covered

    @driven
    async def test_readers_never_miss_a_tool_during_updates(self, store: MemoryStore) -> None:
        tools = [f"tool {n}" for n in range(5)]
        for tool in tools:
            await append(store, 0, tool=tool)
        busy = True

        async def writer() -> None:
            nonlocal busy
            for number in range(1, 25):
                for tool in tools:
                    await append(store, number, tool=tool, keep=3)
            busy = False

        async def reader() -> int:
            reads = 0
            while busy:
                memories = await store.memories(W, tools, calls=True)
                assert [memory.record.tool_name for memory in memories] == tools
                for memory in memories:
                    self._assert_of_one_moment(memory)
                reads += 1
            return reads

        reads, _ = await asyncio.gather(reader(), writer())
        assert reads > 0

    @staticmethod
    def _assert_of_one_moment(memory: StoredMemory) -> None:
        seqs = list(range(memory.record.first_seq, memory.record.last_seq + 1))
        assert [each.seq for each in memory.calls] == seqs
        assert [each.seq for each in memory.figures] == seqs

    # -- verdicts of kept calls

    @driven
    async def test_a_new_verdict_replaces_the_old_one_and_nothing_else(self, store: MemoryStore) -> None:
        await store.append_calls(W, TOOL, [call(n, context="asked", metadata={"n": n}) for n in range(3)], 10)
        before = await kept_calls(store)
        new = call(1).judged(verdict(0.0, OTHER_JUDGE, execution_failed=True, error_class="timeout"))
        record = await store.update_verdicts(W, TOOL, {2: new})
        after = await kept_calls(store)
        assert record is not None
        assert after[0] == before[0]
        assert after[2] == before[2]
        assert after[1] == before[1].judged(verdict(0.0, OTHER_JUDGE, execution_failed=True, error_class="timeout"))
        assert after[1].id == before[1].id

    @driven
    async def test_counters_follow_a_changed_verdict_by_the_difference(self, store: MemoryStore) -> None:
        await store.append_calls(W, TOOL, [call(n, success=None, judged=False) for n in range(4)], 3)
        failed = call(1).judged(verdict(0.0, execution_failed=True))
        passed = call(1).judged(verdict(1.0))
        record = await store.update_verdicts(W, TOOL, {2: failed, 3: passed, 1: failed})  # 1 is trimmed
        assert record is not None
        counters = record.counters
        assert (counters.calls, counters.judged, counters.score_sum) == (4, 2, 1.0)
        assert (counters.successes, counters.failures) == (1, 1)
        assert record.unjudged == [4]
        record = await store.update_verdicts(W, TOOL, {2: passed, 3: call(1, judged=False).unjudged("no answer")})
        assert record is not None
        counters = record.counters
        assert (counters.calls, counters.judged, counters.score_sum) == (4, 1, 1.0)
        assert (counters.successes, counters.failures) == (1, 0)
        assert record.unjudged == [3, 4]

    @driven
    async def test_a_call_judged_again_counts_as_new(self, store: MemoryStore) -> None:
        await append(store, 1, 2, 3)
        covered = await store.put_guidance(
            W, TOOL, guidance(covered=[1, 2, 3]), document=document(), guidance_version=0
        )
        record = await store.update_verdicts(W, TOOL, {2: call(2).judged(verdict(0.0))})
        assert record is not None
        assert record.covered == [(1, 1), (3, 3)]
        assert record.guidance_version > covered.guidance_version
        assert [each.is_summarized for each in await kept_calls(store)] == [True, False, True]
        with pytest.raises(Conflict):
            await store.put_guidance(
                W, TOOL, guidance(), document=document(), guidance_version=covered.guidance_version
            )

    @driven
    async def test_verdicts_on_nothing_change_nothing(self, store: MemoryStore) -> None:
        assert await store.update_verdicts(W, TOOL, {1: call(1)}) is None
        await append(store, 1)
        before = await store.records(W, [TOOL])
        assert [await store.update_verdicts(W, TOOL, {7: call(7)})] == before
        assert [await store.update_verdicts(W, TOOL, {})] == before
        assert await store.records(W, [TOOL]) == before

    # -- the cache

    @driven
    async def test_cached_verdicts_come_back_by_key_in_their_workspace(self, store: MemoryStore) -> None:
        one = verdict(0.0, OTHER_JUDGE, summary="漢字", execution_failed=None)
        await store.put_verdicts(W, {"a": one, "b": verdict(execution_failed=True, error_class="timeout")})
        await store.put_verdicts(W, {})
        assert await store.verdicts(W, ["a", "missing", "a"]) == {"a": one}
        assert await store.verdicts("elsewhere", ["a"]) == {}
        await store.put_verdicts(W, {"a": verdict(1.0)})
        assert await store.verdicts(W, ["b", "a"]) == {
            "a": verdict(1.0),
            "b": verdict(execution_failed=True, error_class="timeout"),
        }
        assert await store.delete_workspace(W) == 0
        assert await store.verdicts(W, ["a", "b"]) == {}
