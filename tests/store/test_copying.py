"""Copies between stores: whole, resumable, verified; and dumps of ReMe taken over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from toolmem.errors import StoreError
from toolmem.models import Claim
from toolmem.protocols import EmbedderIdentity, MemoryStore
from toolmem.providers.hashing import HashingEmbedder
from toolmem.store.copying import Copied, Copy, take_over, whole_memory
from toolmem.store.sqlite import SqliteStore
from toolmem.stored import Document, LogLimits, Where
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.copies import UPKEEP
from toolmem.testing.store_contract.decisions import decision
from toolmem.testing.store_contract.scenario import W, append, call, guidance, kept_calls, verdict

EMBEDDER = HashingEmbedder(32)
make = partial(SqliteStore, clock=ManualClock(), embedder=EMBEDDER.identity)


@pytest.fixture
async def source(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with make(tmp_path / "source.db") as store:
        await fill(store)
        yield store


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with make(tmp_path / "target.db") as store:
        yield store


async def fill(store: MemoryStore) -> None:
    """Two workspaces; trimmed calls, given ids, a pending call, guidance, records with and without texts, verdicts."""
    for workspace in (W, "other"):
        batch = [call(n, id=f"given {n}" if n % 2 else None, input=[n] if n == 5 else {"n": n}) for n in range(8)]
        await store.append_calls(workspace, "search", batch, 6)
        await store.append_calls(workspace, "search", [call(8, judged=False, success=None)], 6)
        claims = [Claim(text="good", k=1, n=2, call_ids=("x",))]
        held = guidance("Quote the umbrella.", [4, 5], claims=claims, **UPKEEP)
        (vector,) = await EMBEDDER.embed(["search\nQuote the umbrella."])
        await store.put_guidance(
            workspace, "search", held, document=Document("search\nQuote the umbrella.", vector), guidance_version=0
        )
        await append(store, 1, 2, tool="发送, 邮件", workspace=workspace)
        for n in range(5):
            (vector,) = await EMBEDDER.embed([f"rule {n} parasol"])
            document = Document(f"rule {n} parasol", vector) if n != 3 else None
            await store.put(workspace, "tool-search", f"rule/{n}", {"n": n, "tags": ["a"]}, document=document)
        for n in range(6):
            await store.log_decision(workspace, decision(n, outcome="worked" if n % 2 else ""))
        await store.put_verdicts(workspace, {f"key {n}": verdict(float(n % 2)) for n in range(7)})


async def held_by(store: MemoryStore) -> object:
    found = []
    for workspace in await store.workspaces():
        memories = await store.memories(workspace, None, calls=True)
        records = [record.value for record in await store.list(workspace, "tool-search")]
        verdicts = await store.verdicts(workspace, [f"key {n}" for n in range(9)])
        text = [hit.key for hit in await store.search(workspace, "umbrella", None, 5)]
        (vector,) = await EMBEDDER.embed(["rule 2 parasol"])
        hits = await store.search(workspace, "parasol", vector, 5, Where(namespace="tool-search"))
        shown = [(memory.calls, memory.figures, memory.record.counters, memory.record.guidance) for memory in memories]
        logs = [[each.call for each in await store.call_log(workspace, tool=name)] for name in ("search", "发送, 邮件")]
        logs.append(await store.decisions(workspace))
        found.append((workspace, shown, records, verdicts, text, {hit.key: hit.similarity for hit in hits}, logs))
    return found


async def copied(source: MemoryStore, target: MemoryStore) -> Copied:
    return await Copy(source, target, embedder=EMBEDDER).run()


async def test_a_copy_holds_everything_and_says_so(source: SqliteStore, target: SqliteStore):
    seen: list[tuple[str, int, int]] = []
    done = await Copy(source, target, embedder=EMBEDDER, progress=lambda *step: seen.append(step)).run()
    assert (done.differences, done.failures) == ([], [])
    assert (done.tools, done.calls, done.records, done.verdicts, done.decisions) == (4, 22, 10, 14, 12)
    assert await held_by(target) == await held_by(source)
    assert (f"{W}: tools", 2, 2) in seen
    assert all(0 < step <= total for _, step, total in seen)


async def test_a_copy_run_twice_adds_nothing(source: SqliteStore, target: SqliteStore):
    await copied(source, target)
    before = await held_by(target)
    again = await copied(source, target)
    assert (again.calls, again.records, again.verdicts, again.duplicates, again.kept) == (0, 0, 0, 22, 10)
    assert again.decisions == 0
    assert again.differences == []
    assert await held_by(target) == before


async def test_a_copy_that_was_interrupted_goes_on_where_it_stopped(source: SqliteStore, target: SqliteStore):
    class Failing(SqliteStore):
        left = 4

        async def put(self, *values, **named):
            Failing.left -= 1
            if Failing.left == 0:
                raise StoreError("the network is gone")
            return await super().put(*values, **named)

    async with Failing(target.location, clock=ManualClock(), embedder=EMBEDDER.identity) as failing:
        with pytest.raises(StoreError, match="network"):
            await copied(source, failing)
    done = await copied(source, target)
    assert (done.differences, done.kept, done.records) == ([], 3, 7)
    assert await held_by(target) == await held_by(source)


async def test_what_differs_in_the_target_is_kept_and_named(source: SqliteStore, target: SqliteStore):
    await append(target, 70, tool="search")
    await target.put_guidance(W, "search", guidance("Mine."), document=Document("x"), guidance_version=0)
    await target.put(W, "tool-search", "rule/1", {"n": "mine"})
    await target.put_verdicts(W, {"key 1": verdict(0.0)})
    await target.log_decision(W, decision(3, outcome="failed"))
    done = await copied(source, target)
    told = ("keeps the guidance", "'rule/1' of 'tool-search' differs", "'decision 3' is missing or differs")
    assert done.different == 4
    for words, difference in zip((*told, "'key 1' differs"), done.differences, strict=True):
        assert words in difference
    assert len(await kept_calls(target)) == 10
    record = await target.get(W, "tool-search", "rule/1")
    assert record is not None
    assert record.value == {"n": "mine"}


async def test_what_the_source_dropped_since_the_first_copy_is_brought_over_too(
    source: SqliteStore, target: SqliteStore
):
    await copied(source, target)
    await append(source, *range(20, 40), tool="search", keep=6)
    done = await copied(source, target)
    assert (done.calls, done.differences) == (20, [])
    logged = [[each.call.output for each in await store.call_log(W, tool="search")] for store in (source, target)]
    assert logged[0] == logged[1]


async def test_logged_calls_for_which_the_target_has_no_room_are_named(source: SqliteStore, tmp_path: Path):
    async with make(tmp_path / "target.db", log=LogLimits(max_calls=2)) as target:
        done = await copied(source, target)
        assert any("3 logged calls of tool 'search' missing" in each for each in done.differences)
        assert [len(each.calls) for each in await target.memories(W, None, calls=True)] == [6, 2]


async def test_a_call_that_went_missing_in_the_target_is_named(source: SqliteStore, target: SqliteStore):
    class Losing(SqliteStore):
        async def memories(self, *values, **named):
            found = await super().memories(*values, **named)
            return [type(each)(each.record, each.figures, each.calls[1:]) for each in found]

    async with Losing(target.location, clock=ManualClock(), embedder=EMBEDDER.identity) as losing:
        done = await copied(source, losing)
    assert done.different == 4
    assert "1 call of tool 'search' missing or different" in done.differences[0]


async def test_only_the_workspaces_that_were_asked_for_are_copied(source: SqliteStore, target: SqliteStore):
    await Copy(source, target, embedder=EMBEDDER).run(["other", "absent"])
    assert await target.workspaces() == ["other"]


async def test_vectors_of_another_embedder_are_made_anew(source: SqliteStore, tmp_path: Path):
    wider = HashingEmbedder(64)
    async with SqliteStore(tmp_path / "wide.db", clock=ManualClock(), embedder=wider.identity) as target:
        done = await Copy(source, target, embedder=wider).run()
        assert done.differences == []
        (vector,) = await wider.embed(["rule 2 parasol"])
        hits = await target.search(W, "", vector, 1, Where(namespace="tool-search"))
        assert [(hit.key, round(hit.similarity or 0, 6)) for hit in hits] == [("rule/2", 1.0)]
        assert (await target.info())["embedder"]["dimension"] == 64


async def test_without_an_embedder_the_texts_are_copied(source: SqliteStore, tmp_path: Path):
    async with SqliteStore(tmp_path / "bare.db", clock=ManualClock(), embedder=None) as target:
        done = await Copy(source, target, embedder=None).run()
        assert done.differences == []
        assert [hit.key for hit in await target.search(W, "umbrella", None, 5)] == ["search"]


async def test_documents_and_verdict_keys_are_read_as_they_were_put(source: SqliteStore):
    held = await source.documents(W, "tool-search", ["rule/2", "rule/3", "absent", "\ud800"])
    (vector,) = await EMBEDDER.embed(["rule 2 parasol"])
    assert list(held) == ["rule/2"]
    assert held["rule/2"].text == "rule 2 parasol"
    assert np.allclose(held["rule/2"].vector, vector, atol=1e-7)
    assert list(await source.documents(W, None, ["search", "发送, 邮件"])) == ["search"]
    assert await source.documents("nowhere", None, ["search"]) == {}
    keys = [f"key {n}" for n in range(7)]
    assert await source.verdict_keys(W) == keys
    assert await source.verdict_keys(W, "key 2", 3) == ["key 3", "key 4", "key 5"]
    assert await source.verdict_keys("nowhere") == await source.verdict_keys(W, "key 6") == []


async def test_memories_from_a_file_are_taken_over_once(source: SqliteStore, target: SqliteStore):
    memories = [whole_memory(stored) for stored in await source.memories(W, None, calls=True)]
    done = await take_over(target, "team", memories, embedder=EMBEDDER)
    assert (done.tools, done.calls) == (2, 8)
    assert (await take_over(target, "team", memories, embedder=EMBEDDER)).calls == 0
    assert [hit.key for hit in await target.search("team", "umbrella", None, 5)] == ["search"]
    assert isinstance(EMBEDDER.identity, EmbedderIdentity)
