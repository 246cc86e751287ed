"""What goes in: arguments of any shape, many documents, many names; and what it may cost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
from elasticsearch_nodes.proxy import Proxy
from elasticsearch_nodes.server import Server
from hypothesis import HealthCheck, given, settings

from toolmem.protocols import MemoryStore
from toolmem.store.elastic.cluster import BulkItem
from toolmem.store.elastic.document_ids import record_id, scope_key, workspace_key
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.store.sqlite import SqliteStore
from toolmem.stored import Hit, Where
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import (
    EMBEDDER,
    TOOL,
    W,
    append,
    call,
    calls,
    document,
    guidance,
    kept_calls,
    vector,
)

KINDS = ("tools", "calls", "ids", "records", "verdicts", "meta")


def store_at(url: str, prefix: str, **params: object) -> ElasticsearchStore:
    return ElasticsearchStore(
        url, clock=ManualClock(), embedder=EMBEDDER, index_prefix=prefix, number_of_replicas=0, **params
    )


async def mappings(store: ElasticsearchStore) -> str:
    session = store._open_session()
    answer = await session.connection.call(
        lambda es: es.indices.get_mapping(index=",".join(session.layout.alias(kind) for kind in KINDS))
    )
    return json.dumps(answer.body, sort_keys=True)


async def statistics(store: ElasticsearchStore, kind: str) -> dict[str, int]:
    """Documents there are, and write operations ever done, as the index itself counts them."""
    session = store._open_session()
    index = session.layout.alias(kind)
    await session.connection.refresh(index)
    answer = await session.connection.call(lambda es: es.indices.stats(index=index, metric=["docs", "indexing"]))
    figures = answer["_all"]["primaries"]
    return {
        "documents": figures["docs"]["count"],
        "indexed": figures["indexing"]["index_total"],
        "deleted": figures["indexing"]["delete_total"],
    }


# -- shapes


async def test_arguments_of_any_shape_never_touch_the_mapping(server: Server, fresh_prefix: Callable[[], str]):
    async with store_at(server.url, fresh_prefix()) as store:
        await append(store, 0)
        await store.put(W, "n", "k", {"a": 1}, document=document("x", 1, 0, 0, 0))
        before = await mappings(store)
        wide = {f"argument {n}": {"deep": [n, {"a.b": None}]} for n in range(3000)}
        shapes: list[Any] = [
            {"q": {"x": 1}},
            "text",
            ["q", 1],
            {"q": "now text"},
            wide,
            {"": "", ".": [[]]},
            {"q": [1]},
        ]
        await store.append_calls(W, TOOL, [call(n, input=shape) for n, shape in enumerate(shapes, 1)], 100)
        for n, shape in enumerate(shapes):
            await store.put(W, "n", f"{n}", {"value": shape}, document=document("x"))
        assert [each.input for each in await kept_calls(store)][1:] == shapes
        found = {record.key: record.value for record in await store.list(W, "n")}
        assert [found[f"{n}"]["value"] for n in range(len(shapes))] == shapes
        assert await mappings(store) == before


# -- many documents


async def test_more_than_10000_records_are_listed(server: Server, fresh_prefix: Callable[[], str]):
    count = 10_100
    async with store_at(server.url, fresh_prefix()) as store:
        await store.put(W, "tool-0", "rule/00000", {"n": 0})
        session = store._open_session()
        index, routing = session.layout.alias("records"), workspace_key(W)
        (made,) = await session.connection.multi_get(
            [{"_index": index, "_id": record_id(W, "tool-0", "rule/00000"), "routing": routing}]
        )
        copies = []
        for n in range(1, count):  # one by one through `put` would take a minute
            namespace, key = f"tool-{n % 3}", f"rule/{n:05}"
            body = {**json.loads(made["_source"]["body"]), "namespace": namespace, "key": key}
            source = {**made["_source"], "namespace": namespace, "key": key, "body": json.dumps(body)}
            source["scope"] = scope_key(W, namespace)
            copies.append(BulkItem("index", index, record_id(W, namespace, key), source, routing))
        session.connection.require(await session.connection.bulk(copies))
        raw = await store.list_raw(W, None, prefix="tool-", key_prefix="rule/")
        expected = sorted((f"tool-{n % 3}", f"rule/{n:05}") for n in range(count))
        assert [(each.namespace, each.key) for each in raw] == expected
        assert len(await store.list(W, "tool-1")) == 3367
        assert (await store.info())["workspaces"][W]["records"] == count
        await store.delete_workspace(W)
        assert await store.list_raw(W, None) == []


async def test_more_hits_may_be_asked_for_than_a_search_hands_over(server: Server, fresh_prefix: Callable[[], str]):
    async with store_at(server.url, fresh_prefix()) as store:
        for n in range(3):
            await store.put(W, "n", f"{n}", {}, document=document("umbrella", 1, n, 0, 0))
        hits = await store.search(W, "umbrella", vector(1, 0, 0, 0), 50_000, Where(namespace="n"))
        assert [hit.key for hit in hits] == ["0", "1", "2"]


# -- names

NAMES = st.one_of(
    st.sampled_from(["a", "A", "a,b", "*", "_all", "..", "漢字", "a" * 520, "a" * 520 + "b", "x/y?z#", "\0", "ı"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
)


def test_two_workspaces_never_see_each_other_whatever_their_names(server: Server, fresh_prefix: Callable[[], str]):
    prefix = fresh_prefix()

    async def scenario(one: str, other: str, tool: str, key: str) -> None:
        async with store_at(server.url, prefix) as store:
            for workspace in (one, other):
                await store.delete_workspace(workspace)
            await store.append_calls(one, tool, [call(1, tool, id=key)], 5)
            await store.put_guidance(
                one, tool, guidance(), document=document("umbrella", 1, 0, 0, 0), guidance_version=0
            )
            await store.put(one, tool, key, {"of": one}, document=document("umbrella", 1, 0, 0, 0))
            for where in (
                Where(),
                Where(namespace=tool),
                Where(keys=(tool,)),
                Where(tool, keys=(key,), equals={"of": one}),
            ):
                expected = [tool] if where.namespace is None else [key]
                assert [
                    hit.key for hit in await store.search(one, "umbrella", vector(1, 0, 0, 0), 9, where)
                ] == expected
                assert await store.search(other, "umbrella", vector(1, 0, 0, 0), 9, where) == []
            assert [record.tool_name for record in await store.records(one, None)] == [tool]
            assert (await store.tool_names(one), await store.namespaces(one)) == ([tool], [tool])
            assert one in await store.workspaces()
            assert await store.tool_names(other) == await store.namespaces(other) == []
            assert await store.records(other, [tool]) == []
            assert await store.known_ids(other, tool, [key]) == set()
            assert await store.get(other, tool, key) is None
            assert (await store.delete(other, tool, key), await store.delete_workspace(other)) == (False, 0)
            assert (await store.get(one, tool, key)) is not None

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(NAMES, NAMES, NAMES, NAMES)
    def law(one: str, other: str, tool: str, key: str) -> None:
        if one != other:
            asyncio.run(scenario(one, other, tool, key))

    law()


# -- both backends rank alike

NUMBERS = st.tuples(*[st.integers(-3, 3)] * 4)
WORDS = st.lists(
    st.sampled_from(["umbrella", "Umbrella's", "send_email", "sendEmail", "email", "发送邮件", "邮件", "メール", "x1"]),
    min_size=1,
    max_size=4,
).map(" ".join)


def test_both_backends_find_the_same_words_and_rank_vectors_alike(
    server: Server, fresh_prefix: Callable[[], str], tmp_path: Path
):
    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.tuples(WORDS, NUMBERS), min_size=1, max_size=12), WORDS, NUMBERS)
    def law(documents: list[tuple[str, tuple[int, ...]]], text: str, query: tuple[int, ...]) -> None:
        asyncio.run(scenario(documents, text, vector(*query)))

    prefix = fresh_prefix()

    async def scenario(documents: list[tuple[str, tuple[int, ...]]], text: str, query: Any) -> None:
        async with (
            store_at(server.url, prefix) as ours,
            SqliteStore(tmp_path / "memory.db", clock=ManualClock(), embedder=EMBEDDER) as embedded,
        ):
            found = []
            for store in (ours, embedded):
                await store.delete_workspace(W)
                for n, (words, numbers) in enumerate(documents):
                    await store.put(W, "n", f"{n:02}", {}, document=document(words, *numbers))
                found.append(await _legs(store, text, query))
            assert found[0] == found[1]

    law()


async def _legs(store: MemoryStore, text: str, query: Any) -> tuple[set[str], list[Any], dict[str, float]]:
    by_text: list[Hit] = await store.search(W, text, None, 20, Where(namespace="n"))
    by_vector = await store.search(W, "", query, 20, Where(namespace="n"))
    both = await store.search(W, text, query, 20, Where(namespace="n"))
    ranks = [(hit.key, hit.vector_rank) for hit in by_vector]
    return {hit.key for hit in by_text}, ranks, {hit.key: round(hit.similarity or 0.0, 9) for hit in both}


async def test_the_approximate_index_gives_exact_cosines_too(server: Server, fresh_prefix: Callable[[], str]):
    numbers = np.random.default_rng(5).normal(size=(200, 4)).astype(np.float32)
    async with store_at(server.url, fresh_prefix(), vector_index="int8_hnsw") as store:
        for n, row in enumerate(numbers):
            await store.put(W, "n", f"{n:03}", {}, document=document("x", *row.tolist()))
        query = vector(1, 2, 3, 4)
        cosines = (numbers / np.linalg.norm(numbers, axis=1, keepdims=True)).astype(np.float64) @ query
        hits = await store.search(W, "", query, 5, Where(namespace="n"))
        assert [hit.key for hit in hits] == [f"{n:03}" for n in np.argsort(-cosines)[:5]]
        assert np.allclose([hit.similarity for hit in hits], np.sort(cosines)[::-1][:5], atol=1e-6)
        assert '"type": "int8_hnsw"' in await mappings(store)


# -- costs


async def test_a_call_added_takes_four_requests_and_rewrites_no_other_call(
    server: Server, fresh_prefix: Callable[[], str]
):
    async with Proxy(server.url) as proxy, store_at(proxy.url, fresh_prefix()) as store:
        for n in range(5):
            await store.append_calls(W, f"tool {n}", calls(range(100), f"tool {n}"), 100)
        calls_before, tools_before = await statistics(store, "calls"), await statistics(store, "tools")
        for n in range(20):
            proxy.seen.clear()
            await store.append_calls(W, f"tool {n % 5}", [call(n, f"tool {n % 5}", id=f"given {n}")], 100)
            assert [name.split("/")[-1] if "_doc" not in name else "swap" for name in proxy.seen] == [
                *("_mget", "_bulk", "swap", "_bulk")
            ]
        calls_after, tools_after = await statistics(store, "calls"), await statistics(store, "tools")
        assert calls_after["indexed"] - calls_before["indexed"] == 20
        assert calls_after["deleted"] == calls_before["deleted"]
        assert tools_after["indexed"] - tools_before["indexed"] == 20
        assert calls_after["documents"] == 520  # those that the windows dropped are the log's


async def test_records_of_fifty_tools_are_one_request_and_no_write(server: Server, fresh_prefix: Callable[[], str]):
    async with Proxy(server.url) as proxy, store_at(proxy.url, fresh_prefix()) as store:
        names = [f"tool {n}" for n in range(50)]
        for name in names:
            await append(store, 1, 2, tool=name)
        proxy.seen.clear()
        assert len(await store.records(W, names)) == 50
        assert proxy.seen == ["POST /_mget"]
        proxy.seen.clear()
        assert len(await store.memories(W, names, recent=1)) == 50
        assert proxy.seen == ["POST /_mget"] * 2


async def test_calls_sent_twice_write_nothing(server: Server, fresh_prefix: Callable[[], str]):
    async with Proxy(server.url) as proxy, store_at(proxy.url, fresh_prefix()) as store:
        batch = [call(n, id=f"{n}") for n in range(30)]
        await store.append_calls(W, TOOL, batch, 10)
        proxy.seen.clear()
        again = await store.append_calls(W, TOOL, batch, 10)
        assert len(again.duplicates) == 30
        assert proxy.seen == ["POST /_mget"]
