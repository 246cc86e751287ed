"""Figures that are kept between reads are never older than the record beside them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from toolmem.errors import Conflict
from toolmem.guidance.statistics import KnownFigures, known_figures, measured
from toolmem.guidance.tool_memory import tool_memory
from toolmem.protocols import MemoryStore
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract import EMBEDDER
from toolmem.testing.store_contract.copies import dumped
from toolmem.testing.store_contract.scenario import call, document, guidance, verdict

TOOLS = ("search", "send_email")

steps = st.lists(
    st.tuples(
        st.integers(0, 1),  # which of two processes' stores
        st.sampled_from(TOOLS),
        st.sampled_from(("append", "append", "append", "rejudge", "guide", "delete", "delete and load", "reopen")),
        st.integers(0, 3),
    ),
    max_size=12,
)


def opened(path: Path) -> SqliteStore:
    # The clock stands still: no time tells two states apart.
    return SqliteStore(path, clock=ManualClock(), embedder=EMBEDDER, synchronous="NORMAL")


async def take(store: SqliteStore, tool: str, step: str, number: int) -> None:
    if step == "reopen":
        await store.close()
        await store.open()
        return
    if step == "append":
        await store.append_calls("w", tool, [call(number, tool, success=number % 2 == 0, time_cost=number / 4)], 3)
        return
    held = await store.memories("w", [tool], calls=True)
    if not held:
        return
    record = held[0].record
    if step == "rejudge":
        worse = held[0].calls[-1].judged(verdict(float(number % 2)))
        await store.update_verdicts("w", tool, {record.last_seq: worse})
    elif step == "guide":
        written = guidance(f"Guidance {number}.", covered=[record.last_seq])
        try:
            await store.put_guidance("w", tool, written, document=document(), guidance_version=record.guidance_version)
        except Conflict:
            raise AssertionError("nobody else writes") from None
    else:
        await store.delete_memories("w", [record.memory_id])
        if step == "delete and load":
            changed = [each.judged(verdict(float(number % 2))) for each in held[0].calls]
            dump = dumped(held[0])
            await store.merge("w", dump.model_copy(update={"tool_call_results": changed}), 3)


async def shown(store: MemoryStore, figures: KnownFigures) -> list[dict[str, Any]]:
    found = await figures.memories(store, "w", TOOLS)
    return [tool_memory(memory, figures=known).model_dump(mode="json") for memory, known in found]


@given(steps)
def test_known_figures_are_those_of_a_fresh_read_whoever_wrote(taken: list[tuple[int, str, str, int]]) -> None:
    async def whole(path: Path) -> None:
        async with opened(path) as one, opened(path) as other:
            stores = (one, other)
            for which, tool, step, number in taken:
                await take(stores[which], tool, step, number)
                for store in stores:
                    fresh = [tool_memory(memory).model_dump(mode="json") for memory in await store.memories("w", TOOLS)]
                    assert await shown(store, known_figures(store)) == fresh
                    assert await shown(store, known_figures(store)) == fresh

    with TemporaryDirectory() as folder:
        asyncio.run(whole(Path(folder) / "memory.db"))


async def test_figures_are_counted_once_for_each_state_of_a_tool(tmp_path: Path) -> None:
    read: list[int] = []

    class Watched(SqliteStore):
        async def memories(self, *values: Any, **named: Any) -> Any:
            found = await super().memories(*values, **named)
            read.append(sum(len(each.figures) for each in found))
            return found

    async with Watched(tmp_path / "memory.db", clock=ManualClock(), embedder=EMBEDDER) as store:
        for number in range(3):
            await store.append_calls("w", "search", [call(number, "search")], 10)
            for _ in range(2):
                ((_, figures),) = await known_figures(store).memories(store, "w", ["search"])
                assert figures.statistics.calls == number + 1
    assert read == [1, 0, 2, 0, 3, 0]


async def test_the_tools_asked_for_last_are_remembered(tmp_path: Path) -> None:
    figures = KnownFigures(size=2)
    async with opened(tmp_path / "memory.db") as store:
        tools = ["a", "b", "c"]
        for tool in tools:
            await store.append_calls("w", tool, [call(1, tool)], 10)
        for tool in ("a", "b", "a", "c"):
            await figures.memories(store, "w", [tool])
        assert sorted(figures.known("w", tools)) == ["a", "c"]
        found = await figures.memories(store, "w", tools)
        assert [known for _, known in found] == [measured(memory) for memory in await store.memories("w", tools)]


async def test_what_is_done_to_an_answer_changes_no_later_one(tmp_path: Path) -> None:
    async with opened(tmp_path / "memory.db") as store:
        await store.append_calls("w", "search", [call(1, "search")], 10)
        ((memory, figures),) = await known_figures(store).memories(store, "w", ["search"])
        first = tool_memory(memory, figures=figures)
        before = first.model_dump(mode="json")
        first.metadata["judges"].append("nobody")
        first.metadata["window"]["kept"] = 99
        first.metadata["statistics"]["judges"].append("nobody")
        ((memory, figures),) = await known_figures(store).memories(store, "w", ["search"])
        assert tool_memory(memory, figures=figures).model_dump(mode="json") == before
