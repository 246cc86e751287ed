"""What the distributed store costs on a real node, beside the bare requests that it is made of.

    python benchmarks/elasticsearch.py [--quick] [--json FILE]

The server is found as the tests find it: ELASTICSEARCH_URL, else Docker, else a node of jars (Java and Maven) with
1.5 GB of heap. One node, one shard, no replica. Bare ingest is the client's own `async_bulk` of the same call
documents; bare search is the two queries, one after the other, with as many hits as a leg of the store asks for. Both
take turns with toolmem. Without a server nothing is measured, and it is said why.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

# The folder of this script stands first in the path, and the script has the name of the package that it measures.
sys.path.append(sys.path.pop(0))
from tables import Figure, arguments, show

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "elasticsearch"))

W = "bench"
os.environ.setdefault("TOOLMEM_ELASTICSEARCH_HEAP", "1536m")
WORDS = """
search order customer table query column invoice refund calendar meeting email attachment file folder path
permission timeout retry limit offset page token header json schema date zone currency price stock warehouse
shipment address phone account balance transfer report export import merge branch commit deploy cluster node
index shard replica backup restore image resize crop audio video stream channel message thread user group
role policy rule filter sort group aggregate sum average median join key value cache lock queue topic
consumer producer batch schedule cron job worker thread memory disk network latency
""".split()  # noqa: SIM905
FAULTS = (
    *("a missing value", "a wrong type", "an unknown name", "an expired token"),
    *("a path outside the root", "an empty list"),
)


def guidance_text(chance: random.Random, number: int) -> str:
    """A few sentences as the data-driven writer makes them, about parameters that differ from tool to tool."""
    subject, verb, *names = (chance.choice(WORDS) for _ in range(7))
    calls = chance.randint(5, 100)
    failed = chance.randint(0, calls)
    return (
        f"{verb}_{subject}_{number % 977} works on {names[0]} and {names[1]}. {failed} of {calls} calls failed, "
        f"most of them with {chance.choice(FAULTS)} in `{names[2]}_{names[3]}`. Give `{names[4]}` as "
        f"{chance.choice(WORDS)}; calls with `{names[2]}={chance.randint(1, 500)}` succeeded."
    )


async def timed(work: Callable[[], Awaitable[Any]]) -> float:
    begun = time.perf_counter()
    await work()
    return time.perf_counter() - begun


def make_store(url: str, prefix: str, embedder: Any = None, **params: Any) -> Any:
    from toolmem.flow.runner import SystemClock
    from toolmem.store.elasticsearch import ElasticsearchStore

    return ElasticsearchStore(
        url, clock=SystemClock(), embedder=embedder, index_prefix=prefix, number_of_replicas=0, timeout=1200, **params
    )


@lru_cache(maxsize=1)
def recorded_calls() -> list[Any]:
    """The project's own recording, judged offline: calls that weigh what real ones do."""
    from toolmem.flow.runner import SystemClock
    from toolmem.formats.call_records import read_records
    from toolmem.judge.rule_based import RuleBasedCheck
    from toolmem.sample import load_records

    async def judged() -> list[Any]:
        check = RuleBasedCheck()
        calls = read_records(load_records(), clock=SystemClock()).calls
        return [call.judged(await check.judge(call, None, None)) for _, call in calls]  # type: ignore[arg-type]

    with ThreadPoolExecutor(1) as thread:  # a loop runs here already
        return thread.submit(asyncio.run, judged()).result()


def made_calls(tool: str, count: int, first: int = 0) -> list[Any]:
    recorded = recorded_calls()
    return [
        recorded[n % len(recorded)].model_copy(update={"tool_name": tool, "id": None})
        for n in range(first, first + count)
    ]


# -- ingest


async def ingest(url: str, total: int) -> list[Figure]:
    tools = [f"tool_{n:04}" for n in range(total // 100)]
    small = {tool: made_calls(tool, 100, 100 * n) for n, tool in enumerate(tools)}
    large = {tool: made_calls(tool, 500, 500 * n) for n, tool in enumerate(tools[: total // 500])}
    bare_seconds, our_seconds = [], []
    for turn in range(3):  # the first of each pays for a JVM that has not compiled yet
        async with make_store(url, f"bench-bare-{turn}") as bare, make_store(url, f"bench-ours-{turn}") as ours:
            documents = call_documents(bare, small)
            bare_seconds.append(await timed(lambda documents=documents: bare_bulk(url, documents)))
            our_seconds.append(await timed(lambda ours=ours: append_all(ours, large)))
            await drop(bare)
            await drop(ours)
    async with make_store(url, "bench-calls") as store:
        small_seconds = await timed(lambda: append_all(store, small))
        figures = [
            Figure("bare async_bulk", total / min(bare_seconds), "calls/s", basis=f"{total:,} calls, best of 3"),
            Figure("ingest, 500 calls a commit", total / min(our_seconds), "calls/s", basis="the same, 4 at a time"),
            Figure(
                "ingest: time against bare",
                min(our_seconds) / min(bare_seconds),
                "x",
                1.25,
                basis=f"{min(bare_seconds) / min(our_seconds):.2f} times the rate of bare",
            ),
            Figure("ingest, 100 calls a commit", total / small_seconds, "calls/s", basis="1 run, 4 at a time"),
            *(await sizes_of_calls(store, total, len(tools))),
            *(await adding(store, tools)),
            *(await idle(store, tools[:50])),
            *(await deleting(store, total, len(tools))),
        ]
        await drop(store)
    return figures


async def sizes_of_calls(store: Any, total: int, tools: int) -> list[Figure]:
    """Of indices that nothing was deleted from."""
    from toolmem.models import Verdict

    some = 20_000
    given = [call.model_copy(update={"id": f"request-{n:08}"}) for n, call in enumerate(made_calls("given", some))]
    sizes = await index_bytes(store)
    for first in range(0, some, 1000):
        await store.append_calls("ids", "given", given[first : first + 1000], some)
    checked = [call for call in given if call.judge is not None]
    verdicts = {
        f"{n:064x}": Verdict(
            summary=call.summary,
            evaluation=call.evaluation,
            score=call.score,
            judge=call.judge,
            execution_failed=call.execution_failed,
            error_class=call.error_class,
        )
        for n, call in enumerate(checked)
    }
    await store.put_verdicts("ids", verdicts)
    more = await index_bytes(store)
    await store.delete_workspace("ids")
    basis = "primary, merged"
    return [
        Figure("1 million calls of the recording", sizes["calls"] / total, "MB", basis=basis),
        Figure("1 million ids given by callers", more["ids"] / some, "MB", basis=basis),
        Figure("1 million cached verdicts", more["verdicts"] / len(verdicts), "MB", basis=basis),
        Figure("1,000 tools without guidance", sizes["tools"] / tools / 1000, "MB", basis=basis),
    ]


def call_documents(store: Any, batches: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """As the store writes them, ready for the client's own bulk."""
    from toolmem.store.codec import prepare
    from toolmem.store.elastic.call_documents import call_item, told_of
    from toolmem.store.elastic.tool_state import ToolState
    from toolmem.store.semantics import fresh

    documents = []
    for tool, calls in batches.items():
        state = ToolState(W, fresh(tool, 0))
        for seq, item in enumerate(prepare(tool, calls)[0], 1):
            operation = call_item(store._open_session(), state, seq, "t0", item, told_of(item, seq))
            documents.append({"_index": operation.index, "_id": operation.id, **(operation.source or {})})
    return documents


async def bare_bulk(url: str, documents: list[dict[str, Any]]) -> None:
    from elasticsearch import AsyncElasticsearch
    from elasticsearch.helpers import async_bulk

    client = AsyncElasticsearch(url, request_timeout=120)
    await async_bulk(client, documents)
    await client.close()


async def append_all(store: Any, batches: dict[str, list[Any]]) -> None:
    waiting = list(batches.items())

    async def worker() -> None:
        while waiting:
            tool, calls = waiting.pop()
            await store.append_calls(W, tool, calls, len(calls))

    await asyncio.gather(*(worker() for _ in range(4)))


async def index_bytes(store: Any) -> dict[str, int]:
    """Of the primaries, merged into one segment, so that the figure does not depend on when it is taken."""
    session = store._open_session()
    found = {}
    for kind in ("calls", "ids", "tools", "verdicts"):
        index = session.layout.alias(kind)
        await session.connection.call(lambda es, index=index: es.indices.forcemerge(index=index, max_num_segments=1))
        await session.connection.call(lambda es, index=index: es.indices.flush(index=index, force=True))
        answer = await session.connection.call(lambda es, index=index: es.indices.stats(index=index, metric="store"))
        found[kind] = answer["_all"]["primaries"]["store"]["size_in_bytes"]
    return found


async def drop(store: Any) -> None:
    from toolmem.store.elastic.indices import KINDS

    session = store._open_session()
    names = ",".join(session.layout.index(kind) for kind in KINDS)
    await session.connection.call(lambda es: es.indices.delete(index=names), ignore=(404,))


async def indexed(store: Any, kind: str) -> int:
    session = store._open_session()
    index = session.layout.alias(kind)
    answer = await session.connection.call(lambda es: es.indices.stats(index=index, metric="indexing"))
    return int(answer["_all"]["primaries"]["indexing"]["index_total"])


class Requests:
    """Counts what a store sends."""

    def __init__(self, store: Any) -> None:
        self._transport = store._open_session().connection._client.transport
        self._perform = self._transport.perform_request
        self.count = 0

    def __enter__(self) -> Requests:
        async def counted(*values: Any, **named: Any) -> Any:
            self.count += 1
            return await self._perform(*values, **named)

        self._transport.perform_request = counted
        return self

    def __exit__(self, *_: object) -> None:
        self._transport.perform_request = self._perform


async def adding(store: Any, tools: list[str]) -> list[Figure]:
    chance = random.Random(7)
    before = {kind: await indexed(store, kind) for kind in ("calls", "tools")}
    taken = []
    times = 200
    with Requests(store) as requests:
        for n in range(times):
            tool = chance.choice(tools)
            calls = made_calls(tool, 1, 5000 + n)
            taken.append(await timed(lambda tool=tool, calls=calls: store.append_calls(W, tool, calls, 100)))
    after = {kind: await indexed(store, kind) for kind in ("calls", "tools")}
    basis = f"one of {len(tools)} tools x 100 calls, median of {times}"
    return [
        Figure("add 1 call", statistics.median(taken) * 1000, "ms", basis=basis),
        Figure("add 1 call: requests", requests.count / times, "requests", 4, basis="read, bulk, swap, trim"),
        Figure("add 1 call: call documents written", (after["calls"] - before["calls"]) / times, "documents", 1),
        Figure("add 1 call: records written", (after["tools"] - before["tools"]) / times, "documents", 1),
    ]


async def deleting(store: Any, total: int, tools: int) -> list[Figure]:
    with Requests(store) as requests:
        seconds = await timed(lambda: store.delete_workspace(W))
    basis = f"{total:,} calls of {tools:,} tools, {requests.count} requests"
    return [Figure("delete a workspace", seconds, "s", basis=basis)]


async def idle(store: Any, names: list[str]) -> list[Figure]:
    before = {kind: await indexed(store, kind) for kind in ("calls", "tools", "records", "meta")}
    with Requests(store) as requests:
        taken = [await timed(lambda: store.records(W, names)) for _ in range(30)]
    after = {kind: await indexed(store, kind) for kind in before}
    return [
        Figure("records of 50 tools (an idle summary)", statistics.median(taken) * 1000, "ms", basis="median of 30"),
        Figure("records of 50 tools: requests", requests.count / 30, "requests", 1, basis="one multi-get"),
        Figure(
            "records of 50 tools: documents written", float(sum(after.values()) - sum(before.values())), "documents", 0
        ),
    ]


async def stamping(url: str, times: int) -> list[Figure]:
    """What a guard reads before each call, beside the client's own multi-get of the same documents."""
    from elasticsearch import AsyncElasticsearch

    from toolmem.store.elastic import rule_stamps

    keys = [("guard-conversation", "c1"), ("guard-forgiveness", "f"), ("guard-names", "n")]
    async with make_store(url, "bench-stamps") as store, AsyncElasticsearch(url) as client:
        for n in range(200):
            await store.put(W, f"tool-{n % 40}", f"rule/{n}", {"content": "never do this", "n": n})
        for namespace, key in keys:
            await store.put(W, namespace, key, {"told": "x" * 2000})
        session = store._open_session()
        wanted = [rule_stamps.wanted(session, W), *(_wanted(session, *key) for key in keys)]
        bare, ours = [], []
        for n in range(-50, times):  # fifty to warm up
            pair = await timed(lambda: client.mget(docs=wanted)), await timed(lambda: store.read_stamped(W, keys))
            if n >= 0:
                bare.append(pair[0] * 1000)
                ours.append(pair[1] * 1000)
        await drop(store)
    basis = f"the stamp and 3 records of 2 kB, {times} times, in turns"
    return [
        figure
        for name, taken in (("a bare multi-get", bare), ("read_stamped", ours))
        for figure in (
            Figure(f"{name}, p50", statistics.median(taken), "ms", basis=basis),
            Figure(f"{name}, p99", statistics.quantiles(taken, n=100)[98], "ms", basis=basis),
        )
    ]


def _wanted(session: Any, namespace: str, key: str) -> dict[str, Any]:
    from toolmem.store.elastic.document_ids import record_id

    return session.wanted("records", record_id(W, namespace, key), W, ["body", "value"])  # type: ignore[no-any-return]


# -- search


class Guidances:
    """Texts as the data-driven writer makes them, and questions, embedded by toolmem's own embedder."""

    def __init__(self, total: int, questions: int) -> None:
        from toolmem.providers.hashing import HashingEmbedder

        chance = random.Random(11)
        self.embedder = HashingEmbedder(384)
        self.texts = [guidance_text(chance, n) for n in range(total)]
        self.questions = [
            f"how do I {chance.choice(WORDS)} a {chance.choice(WORDS)} without {chance.choice(FAULTS)}"
            for _ in range(questions)
        ]

    async def embed(self) -> Guidances:
        import numpy as np

        pages = [self.texts[n : n + 2000] for n in range(0, len(self.texts), 2000)]
        self.vectors = np.concatenate([await self.embedder.embed(page) for page in pages])
        self.asked = await self.embedder.embed(self.questions)
        return self

    def recall(self, found: list[str], query: Any) -> float:
        """The share of the 10 nearest among those found; equal neighbours are equally good."""
        import numpy as np

        cosines = self.vectors @ query
        tenth = float(np.partition(cosines, -10)[-10]) - 1e-6
        return sum(float(cosines[int(key.removeprefix("tool_"))]) >= tenth for key in found) / 10


async def searching(url: str, guidances: Guidances, kind: str) -> list[Figure]:
    total, times = len(guidances.texts), len(guidances.questions)
    prefix = f"bench-{kind.replace('_', '-')}"
    async with make_store(url, prefix, guidances.embedder.identity, vector_index=kind) as store:
        session = store._open_session()
        loaded = await timed(lambda: load(store, guidances))
        sizes = await index_bytes(store)
        from toolmem.store.elastic import generations

        generation = await generations.stored_generation(session)
        bare, ours, recalls = [], [], []
        for n in range(-10, times):  # ten to warm up
            query, vector = guidances.questions[n], guidances.asked[n]
            seconds = await timed(lambda query=query, vector=vector: bare_search(session, generation, query, vector))
            our_seconds = await timed(lambda query=query, vector=vector: store.search(W, query, vector, 10))
            if n < 0:
                continue
            bare.append(seconds)
            ours.append(our_seconds)
            recalls.append(guidances.recall([hit.key for hit in await store.search(W, "", vector, 10)], vector))
        await drop(store)
    basis = f"{total:,} guidances, 384-d, top 10, median of {times}"
    return [
        Figure(f"search, {kind}: two bare queries", statistics.median(bare) * 1000, "ms", basis=basis),
        Figure(f"search, {kind}: toolmem, hybrid", statistics.median(ours) * 1000, "ms", basis="the same"),
        Figure(
            f"search, {kind}: against bare",
            statistics.median(ours) / statistics.median(bare),
            "x",
            1.25,
            basis="medians; each pair one after the other",
        ),
        Figure(
            f"search, {kind}: missed of the 10 nearest",
            1 - statistics.mean(recalls),
            "share",
            0.05,
            basis="1 - recall@10",
        ),
        Figure(f"{kind}: loading", total / loaded, "guidances/s", basis="2 bulks of 500 at a time"),
        Figure(f"{kind}: 1,000 tools with guidance", sizes["tools"] / total / 1000, "MB", basis="primary, merged"),
    ]


async def load(store: Any, guidances: Guidances) -> None:
    """The documents of the tools, as the store writes them; through `put_guidance` one by one it would take an hour."""
    from toolmem.store.elastic import generations
    from toolmem.store.elastic.cluster import BulkItem
    from toolmem.store.elastic.search_fields import Searchable
    from toolmem.store.elastic.tool_state import ToolState, source_of
    from toolmem.store.semantics import fresh

    session = store._open_session()
    generation = await generations.first_generation(session, guidances.embedder.identity)
    await generations.map_vectors(session, generation)
    pages = list(range(0, len(guidances.texts), 500))

    async def worker() -> None:
        while pages:
            first = pages.pop()
            operations = []
            for n in range(first, min(first + 500, len(guidances.texts))):
                state = ToolState(W, fresh(f"tool_{n:06}", 0))
                state.document = Searchable(guidances.texts[n], {generation.number: guidances.vectors[n]})
                operations.append(
                    BulkItem("index", session.layout.alias("tools"), state.id, source_of(state), _routing())
                )
            session.connection.require(await session.connection.bulk(operations))

    await asyncio.gather(worker(), worker())


def _routing() -> str:
    from toolmem.store.elastic.document_ids import workspace_key

    return workspace_key(W)


async def bare_search(session: Any, generation: Any, text: str, vector: Any) -> None:
    from toolmem.store.elastic.indices import vector_field
    from toolmem.store.words import query_words

    index, depth = session.layout.alias("tools"), 100
    of = [{"term": {"w": _routing()}}]
    match = {"match": {"words": " ".join(query_words(text))}}
    fetched: dict[str, Any] = {"size": depth, "source": False, "docvalue_fields": ["name"], "routing": _routing()}
    nearest = {"field": vector_field(generation.number), "query_vector": vector.tolist(), "k": depth}
    await session.connection.call(
        lambda es: es.search(index=index, knn={**nearest, "num_candidates": 2 * depth, "filter": of}, **fetched)
    )
    await session.connection.call(
        lambda es: es.search(index=index, query={"bool": {"must": [match], "filter": of}}, **fetched)
    )


async def measure(url: str, quick: bool) -> list[Figure]:
    total, times = (10_000, 30) if quick else (100_000, 100)
    figures = [*await ingest(url, total), *await stamping(url, 300 if quick else 1000)]
    show(figures, None)  # the rest takes a while
    guidances = await Guidances(total, times).embed()
    for kind in ("flat", "int8_hnsw"):
        part = await searching(url, guidances, kind)
        show(part, None)
        figures += part
    figures += await guarding(url, 200 if quick else 1000)
    print()
    return figures


async def guarding(url: str, times: int) -> list[Figure]:
    """What a guard's decision takes beside the one read that it makes."""
    from guard_over_a_store import on_elasticsearch

    from toolmem.providers.hashing import HashingEmbedder

    async with make_store(url, f"toolmem-bench-guard-{os.getpid()}", HashingEmbedder(64).identity) as store:
        try:
            return await on_elasticsearch(store, times)
        finally:
            await drop(store)


def main() -> None:
    options = arguments(__doc__)
    from elasticsearch_nodes.installation import Missing
    from elasticsearch_nodes.server import find_server

    try:
        server = find_server()
    except Missing as missing:
        print(f"nothing measured: {missing}", file=sys.stderr)
        return
    try:
        print(f"server: {server.source}")
        show(asyncio.run(measure(server.url, options.quick)), options.json)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
