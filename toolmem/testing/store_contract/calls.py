"""Calls: order, window, ids, counters, what is refused."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from toolmem.models import CallFigures, LifetimeCounters, ToolCallResult
from toolmem.protocols import MemoryStore
from toolmem.testing.store_contract.copies import dumped
from toolmem.testing.store_contract.scenario import (
    JUDGE,
    OTHER_JUDGE,
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
    verdict,
)


class CallsContract(Scenario):
    @driven
    async def test_a_call_comes_back_as_it_was_handed_over(self, store: MemoryStore) -> None:
        whole = call(
            1,
            input={"nested": [1, 2.5, None, {"漢字": "\u0000"}], "flag": True},
            output="line\n\ttab \x00 and 🔧",
            success=False,
            create_time=datetime(2025, 2, 3, 4, 5, 6, 789_012, tzinfo=timezone(timedelta(hours=8))),
            time_cost=0.123456789,
            token_cost=12,
            context="what was asked",
            id="given",
            metadata={"dataset": "x", "n": [1]},
        ).judged(verdict(0.0, OTHER_JUDGE, execution_failed=True, error_class="not_found"))
        await store.append_calls(W, TOOL, [whole], 10)
        (stored,) = await kept_calls(store)
        assert stored == whole.model_copy(update={"seq": 1, "create_time": whole.create_time.astimezone(UTC)})
        assert stored.create_time.utcoffset() == timedelta(0)

    @driven
    async def test_inputs_of_every_shape_live_side_by_side(self, store: MemoryStore) -> None:
        shapes: list[Any] = [{}, {"q": 1}, {"q": {"deep": []}}, {"q": "text"}, "plain text", "", [1, "two", None], []]
        await store.append_calls(W, TOOL, [call(i, input=shape) for i, shape in enumerate(shapes)], 100)
        assert [each.input for each in await kept_calls(store)] == shapes

    @driven
    async def test_unknown_stays_unknown(self, store: MemoryStore) -> None:
        await store.append_calls(W, TOOL, [call(1, judged=False, success=None, time_cost=None, token_cost=None)], 10)
        (memory,) = await store.memories(W, [TOOL], calls=True)
        assert memory.figures == (
            CallFigures(seq=1, success=None, execution_failed=None, score=None, time_cost=None, token_cost=None),
        )
        (stored,) = memory.calls
        assert (stored.success, stored.score, stored.time_cost, stored.judge) == (None, None, None, None)
        assert stored.evaluation_status == "pending"
        assert memory.record.counters.successes == memory.record.counters.failures == 0

    @driven
    async def test_seqs_grow_in_the_order_of_arrival(self, store: MemoryStore) -> None:
        for batch in ([3, 1], [2], [9, 8, 7]):
            await append(store, *batch)
        stored = await kept_calls(store)
        assert numbers_of(stored) == [3, 1, 2, 9, 8, 7]
        assert [each.seq for each in stored] == [1, 2, 3, 4, 5, 6]

    @driven
    async def test_the_newest_calls_stay(self, store: MemoryStore) -> None:
        await append(store, 1, 2, 3, keep=3)
        appended = await store.append_calls(W, TOOL, calls([4, 5]), 3)
        assert (appended.stored, appended.trimmed) == (2, 2)
        assert appended.record is not None
        assert (appended.record.first_seq, appended.record.last_seq) == (3, 5)
        assert numbers_of(await kept_calls(store)) == [3, 4, 5]

    @driven
    async def test_more_calls_than_are_kept_are_all_counted(self, store: MemoryStore) -> None:
        appended = await store.append_calls(W, TOOL, calls(range(10), success=False), 4)
        assert (appended.stored, appended.trimmed) == (10, 6)
        assert appended.record is not None
        assert appended.record.counters.calls == appended.record.counters.failures == 10
        assert [each.seq for each in await kept_calls(store)] == [7, 8, 9, 10]

    @driven
    async def test_a_smaller_window_trims_and_a_larger_one_brings_nothing_back(self, store: MemoryStore) -> None:
        await append(store, 1, 2, 3, 4, 5)
        appended = await store.append_calls(W, TOOL, [call(6)], 2)
        assert appended.trimmed == 4
        await append(store, 7, keep=100)
        assert numbers_of(await kept_calls(store)) == [5, 6, 7]

    @driven
    async def test_recent_and_seqs_pick_calls_and_figures(self, store: MemoryStore) -> None:
        await append(store, *range(1, 8), keep=5)  # seqs 3 to 7 stay
        (recent,) = await store.memories(W, [TOOL], calls=True, recent=2)
        assert [each.seq for each in recent.calls] == [each.seq for each in recent.figures] == [6, 7]
        (picked,) = await store.memories(W, [TOOL], calls=True, seqs={TOOL: [7, 4, 1, 99]})
        assert [each.seq for each in picked.calls] == [each.seq for each in picked.figures] == [4, 7]
        (bare,) = await store.memories(W, [TOOL])
        assert bare.calls == ()
        assert [each.seq for each in bare.figures] == [3, 4, 5, 6, 7]

    @driven
    async def test_figures_are_those_of_the_calls(self, store: MemoryStore) -> None:
        await store.append_calls(W, TOOL, [call(1, success=False), call(2, success=None, judged=False)], 9)
        (memory,) = await store.memories(W, [TOOL], calls=True)
        for figures, stored in zip(memory.figures, memory.calls, strict=True):
            assert figures.model_dump() == {
                "seq": stored.seq,
                "success": stored.success,
                "execution_failed": stored.execution_failed,
                "score": stored.score,
                "time_cost": stored.time_cost,
                "token_cost": stored.token_cost,
                "judge": "" if stored.judge is None else str(stored.judge),
            }
        assert memory.figures[0].judge == str(JUDGE)

    @driven
    async def test_a_tool_without_a_new_commit_comes_with_its_record_alone(self, store: MemoryStore) -> None:
        await append(store, 1, 2)
        await append(store, 1, tool="other")
        read = await store.memories(W, [TOOL, "other"])
        known = {each.record.tool_name: each.state for each in read if each.state is not None}
        await append(store, 2, tool="other")
        same, changed = await store.memories(W, [TOOL, "other"], known=known)
        assert same.record == read[0].record
        assert same.state == read[0].state
        assert len(same.figures) == (0 if TOOL in known else 2)
        assert len(changed.figures) == 2
        assert "other" not in known or changed.state != known["other"]

    @driven
    async def test_every_commit_changes_the_state(self, store: MemoryStore) -> None:
        async def state() -> object:
            (memory,) = await store.memories(W, [TOOL], calls=True)
            return memory.state

        await append(store, 1)
        (first,) = await store.memories(W, [TOOL], calls=True)
        states = [first.state]
        await store.update_verdicts(W, TOOL, {1: call(1).judged(verdict(0.0))})
        states.append(await state())
        await store.put_guidance(W, TOOL, guidance(covered=[1]), document=document(), guidance_version=1)
        states.append(await state())
        await append(store, 2)
        states.append(await state())
        await store.delete_memories(W, [first.record.memory_id])
        await store.merge(W, dumped(first), 100)  # under the same memory_id
        states.append(await state())
        told = [each for each in states if each is not None]
        assert len(set(told)) == len(told)

    # -- ids

    @driven
    async def test_a_call_sent_twice_is_kept_once(self, store: MemoryStore) -> None:
        batch = [call(1, id="a"), call(2, id="b"), call(3, id="a"), call(4)]
        first = await store.append_calls(W, TOOL, batch, 10)
        assert (first.stored, first.duplicates) == (3, (2,))
        before = await store.records(W, None)
        again = await store.append_calls(W, TOOL, batch[:3], 10)
        assert (again.stored, again.duplicates) == (0, (0, 1, 2))
        assert again.record == before[0]
        assert numbers_of(await kept_calls(store)) == [1, 2, 4]

    @driven
    async def test_a_call_sent_twice_is_recognized_after_it_was_trimmed(self, store: MemoryStore) -> None:
        await store.append_calls(W, TOOL, [call(n, id=f"id-{n}") for n in range(10)], 2)
        await store.append_calls(W, TOOL, [call(n, id=f"id-{n}") for n in range(10, 15)], 2)
        ids = [f"id-{n}" for n in range(15)]
        assert await store.known_ids(W, TOOL, [*ids, "id-15", "x"]) == set(ids)
        again = await store.append_calls(W, TOOL, [call(n, id=f"id-{n}") for n in range(16)], 2)
        assert (again.stored, len(again.duplicates)) == (1, 15)

    @driven
    async def test_a_call_without_an_id_gets_one_by_which_it_is_known(self, store: MemoryStore) -> None:
        await append(store, 1, 2)
        ids = [each.id for each in await kept_calls(store)]
        assert len(set(ids)) == 2
        assert await store.known_ids(W, TOOL, [id_ for id_ in ids if id_]) == set(ids)
        assert (await store.append_calls(W, TOOL, [call(9, id=ids[0])], 10)).duplicates == (0,)

    @driven
    async def test_ids_belong_to_one_tool_of_one_workspace(self, store: MemoryStore) -> None:
        await store.append_calls(W, TOOL, [call(1, id="same")], 10)
        assert await store.known_ids(W, "other", ["same"]) == set()
        assert (await store.append_calls(W, "other", [call(1, "other", id="same")], 10)).stored == 1
        assert (await store.append_calls("elsewhere", TOOL, [call(1, id="same")], 10)).stored == 1

    # -- counters

    @driven
    async def test_counters_never_shrink(self, store: MemoryStore) -> None:
        batch = [
            call(5, success=True, time_cost=1.5, token_cost=None),
            call(3, success=False, time_cost=None, token_cost=4),
            call(4, success=None, judged=False, time_cost=0.5, token_cost=6),
        ]
        for _ in range(3):
            await store.append_calls(W, TOOL, batch, 1)
        (record,) = await store.records(W, [TOOL])
        assert record.counters == LifetimeCounters(
            calls=9,
            successes=3,
            failures=3,
            judged=6,
            score_sum=6.0,
            time_calls=6,
            time_sum=6.0,
            token_calls=6,
            token_sum=30,
            since=START + timedelta(seconds=3),
        )

    @driven
    async def test_the_recorded_flag_decides_what_failed_before_the_judge_does(self, store: MemoryStore) -> None:
        failed = verdict(0.0, execution_failed=True)
        await store.append_calls(
            W, TOOL, [call(1, success=True).judged(failed), call(2, success=None).judged(failed)], 10
        )
        (record,) = await store.records(W, [TOOL])
        assert (record.counters.successes, record.counters.failures) == (1, 1)

    @driven
    async def test_calls_without_a_verdict_are_listed_while_they_are_kept(self, store: MemoryStore) -> None:
        failed = call(2, judged=False).unjudged("no answer")
        await store.append_calls(W, TOOL, [call(1, judged=False), failed, call(3)], 10)
        (record,) = await store.records(W, [TOOL])
        assert record.unjudged == [1, 2]
        appended = await store.append_calls(W, TOOL, [call(4, judged=False)], 3)
        assert appended.record is not None
        assert appended.record.unjudged == [2, 4]

    # -- what is refused

    @driven
    async def test_one_bad_call_never_takes_the_others_with_it(self, store: MemoryStore) -> None:
        loop: list[Any] = []
        loop.append(loop)
        bad = [
            call(1, output="lone \ud800 surrogate"),
            call(2, time_cost=math.nan),
            call(3, time_cost=math.inf),
            call(4, time_cost=-1.0),
            call(5, token_cost=2**70),
            call(6, metadata={"x": math.nan}),
            call(7, metadata={"x": object()}),
            call(8, metadata={"x": loop}),
            call(9, "another tool"),
            call(10, create_time=datetime(2026, 1, 1)),
            call(11, id="\udfff"),
            call(12, input={"k": "\ud800"}),
            ToolCallResult.model_construct(**{**dict(call(13)), "output": 5}),
        ]
        batch = [call(0), *bad, call(99)]
        appended = await store.append_calls(W, TOOL, batch, 100)
        assert appended.stored == 2
        assert [failure.index for failure in appended.failures] == list(range(1, len(bad) + 1))
        assert all(failure.error and failure.tool_name == TOOL for failure in appended.failures)
        assert numbers_of(await kept_calls(store)) == [0, 99]
        assert appended.record is not None
        assert appended.record.counters.calls == 2

    @driven
    async def test_a_denied_call_enters_no_window_no_count_and_no_log(self, store: MemoryStore) -> None:
        denied = call(2, id="denied", output="Error: toolmem: not run. The user said: no.", success=False, judged=False)
        before = await store.append_calls(W, TOOL, [call(1)], 10)
        after = await store.append_calls(W, TOOL, [denied.denied(), denied, call(3)], 10)
        assert before.record is not None
        assert after.record is not None
        assert (after.record.counters.calls, after.record.last_seq, after.record.unjudged) == (2, 2, [])
        assert after.record.counters.failures == before.record.counters.failures
        assert [each.call.output for each in await store.call_log(W)] == [
            each.output for each in await kept_calls(store)
        ]
        assert await store.known_ids(W, TOOL, ["denied"]) == set()
        await store.append_calls(W, "other", [denied.model_copy(update={"tool_name": "other"})], 10)
        assert await store.tool_names(W) == [TOOL]

    @driven
    async def test_a_tool_of_which_nothing_could_be_kept_does_not_exist(self, store: MemoryStore) -> None:
        appended = await store.append_calls(W, TOOL, [call(1, time_cost=math.nan)], 10)
        assert (appended.record, appended.stored, len(appended.failures)) == (None, 0, 1)
        assert await store.tool_names(W) == []
        assert (await store.append_calls(W, TOOL, [], 10)).record is None

    @driven
    async def test_a_name_that_no_text_can_hold_fails_call_by_call(self, store: MemoryStore) -> None:
        appended = await store.append_calls(W, "\ud800", [call(1, "\ud800")], 10)
        assert len(appended.failures) == 1
        assert await store.records(W, ["\ud800"]) == []
        assert await store.known_ids(W, "\ud800", ["x"]) == set()
        assert await store.tool_names("\ud800") == []

    @driven
    async def test_an_output_of_a_megabyte_is_kept_whole(self, store: MemoryStore) -> None:
        output = "".join(chr(32 + i % 90) for i in range(1_000_000)) + "终"
        await store.append_calls(W, TOOL, [call(1, output=output), call(2)], 10)
        assert [len(each.output) for each in await kept_calls(store)] == [1_000_001, len("answer 2")]
        assert (await kept_calls(store))[0].output == output
