"""`toolmem store copy` between the two backends, and an older schema brought over by it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from elasticsearch_nodes.server import Server

from toolmem.protocols import MemoryStore
from toolmem.providers.hashing import HashingEmbedder
from toolmem.store.copying import Copy
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.store.sqlite import SqliteStore
from toolmem.stored import Document, Where
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.decisions import decision
from toolmem.testing.store_contract.scenario import W, append, call, guidance, verdict

EMBEDDER = HashingEmbedder(384)


def store_at(url: str, prefix: str, **params: object) -> ElasticsearchStore:
    return ElasticsearchStore(
        url, clock=ManualClock(), embedder=EMBEDDER.identity, index_prefix=prefix, number_of_replicas=0, **params
    )


async def fill(store: MemoryStore) -> None:
    for workspace in (W, "other 漢"):
        shapes = [{"n": 1}, [1, 2], "text", {"deep": {"a": [None]}}]
        batch = [call(n, id=f"given {n}" if n % 2 else None, input=shapes[n % 4]) for n in range(30)]
        await store.append_calls(workspace, "search", batch, 20)
        text = "search\nQuote the umbrella."
        (vector,) = await EMBEDDER.embed([text])
        await store.put_guidance(
            workspace,
            "search",
            guidance("Quote the umbrella.", [25]),
            document=Document(text, vector),
            guidance_version=0,
        )
        await append(store, 1, 2, tool="发送, 邮件", workspace=workspace)
        for n in range(5):
            (vector,) = await EMBEDDER.embed([f"rule {n} parasol"])
            await store.put(workspace, "tool-x", f"rule/{n}", {"n": n}, document=Document(f"rule {n} parasol", vector))
        for n in range(6):
            await store.log_decision(workspace, decision(n, outcome="worked" if n % 2 else ""))
        await store.put_verdicts(workspace, {f"key {n:04}": verdict(float(n % 2)) for n in range(1200)})


async def held_by(store: MemoryStore) -> object:
    found = []
    for workspace in await store.workspaces():
        memories = await store.memories(workspace, None, calls=True)
        shown = [(each.calls, each.figures, each.record.counters, each.record.guidance) for each in memories]
        records = [record.value for record in await store.list(workspace, "tool-x")]
        (vector,) = await EMBEDDER.embed(["rule 2 parasol"])
        hits = await store.search(workspace, "", vector, 5, Where(namespace="tool-x"))
        ranked = [(hit.key, hit.vector_rank, round(hit.similarity or 0.0, 7)) for hit in hits]
        keys = await store.verdict_keys(workspace, limit=5000)
        logs = [[each.call for each in await store.call_log(workspace, tool=name)] for name in ("search", "发送, 邮件")]
        assert [len(each) for each in logs] == [30, 2], "what the window dropped as well"
        logs.append(await store.decisions(workspace))
        found.append((workspace, shown, records, ranked, keys[:1000], await store.verdicts(workspace, keys[-3:]), logs))
    return found


async def test_a_store_goes_there_and_back_and_is_the_same(
    server: Server, fresh_prefix: Callable[[], str], tmp_path: Path
):
    async with (
        SqliteStore(tmp_path / "first.db", clock=ManualClock(), embedder=EMBEDDER.identity) as first,
        store_at(server.url, fresh_prefix()) as there,
        SqliteStore(tmp_path / "back.db", clock=ManualClock(), embedder=EMBEDDER.identity) as back,
    ):
        await fill(first)
        done = await Copy(first, there, embedder=EMBEDDER).run()
        assert (done.differences, done.failures, done.verdicts) == ([], [], 2400)
        assert await held_by(there) == await held_by(first)
        assert (await Copy(there, back, embedder=EMBEDDER).run()).differences == []
        assert await held_by(back) == await held_by(first)
        again = await Copy(first, there, embedder=EMBEDDER).run()
        assert (again.calls, again.records, again.verdicts, again.differences) == (0, 0, 0, [])
