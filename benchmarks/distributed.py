"""Print what the distributed store costs beside the bare requests that it is made of.

    python benchmarks/distributed.py

The server is found as the tests find it: ELASTICSEARCH_URL, else Docker, else a node put together
by Maven, here with 1.5 GB of heap. One node, one shard, no replica. Bare ingest is the client's
own bulk of the same call documents; bare search is the two queries, one after the other, with as
many hits as the store asks for. Both take turns with toolmem, in one process.
"""

from __future__ import annotations

import statistics
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import numpy as np
from elasticsearch import Elasticsearch, helpers
from elasticsearch_nodes import find_server
from msgspec.structs import replace
from shared import Table, publish

from toolmem.models.calls import ToolCallResult
from toolmem.models.records import Document, EmbedderIdentity
from toolmem.research.evaluation import evaluate, sample
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.store.search import query_words

CALLS, BATCH, WRITERS = 10_000, 1000, 4
BATCHES = CALLS // BATCH
DOCUMENTS, DIMENSION, LIMIT = 2_000, 512, 10
IDENTITY = EmbedderIdentity("bench", "random", DIMENSION)
QUERIES = ("order customer refund", "calendar meeting", "retry limit page token", "image resize")


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def recorded(tools: int) -> list[ToolCallResult]:
    """Judged calls of the packaged sample, again and again, on so many tools."""
    files, schemas = sample()
    calls = [each.call for each in evaluate(files, tools=schemas).calls]
    return [
        replace(calls[n % len(calls)], id=None, seq=None, tool_name=f"tool {n % tools}")
        for n in range(CALLS)
    ]


def drop(bare: Elasticsearch, prefix: str) -> None:
    kinds = ("tools-1", "calls-1", "records-1", "bare")
    names = ",".join(f"{prefix}-{kind}" for kind in kinds)
    bare.indices.delete(index=names, ignore_unavailable=True)


def ingest(store: ElasticsearchStore, calls: list[ToolCallResult], tools: int) -> None:
    """BATCH calls a commit, by WRITERS threads; each batch is of some of the tools."""
    by_tool = sorted(calls, key=lambda call: int(call.tool_name.split()[1]) // (tools // BATCHES))
    batches = [by_tool[first : first + BATCH] for first in range(0, len(calls), BATCH)]
    with ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(lambda batch: store.append_calls("w", batch, 100), batches))


def bare_documents(bare: Elasticsearch, prefix: str, index: str) -> list[dict[str, Any]]:
    """The documents that the store wrote, for another index of the same mapping."""
    source = f"{prefix}-calls"
    bare.indices.refresh(index=source)
    (mapping,) = bare.indices.get_mapping(index=source).body.values()
    settings = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"}
    bare.indices.create(index=index, mappings=mapping["mappings"], settings=settings)
    hits = bare.search(index=source, size=CALLS, query={"match_all": {}})["hits"]["hits"]
    return [{"_index": index, "_id": hit["_id"], **hit["_source"]} for hit in hits]


def ingest_rows(
    url: str, bare: Elasticsearch, tools: int, mask: bool = True
) -> list[tuple[str, object, str]]:
    calls, ours, theirs, few = recorded(tools), [], [], []
    for turn in range(4):  # the first pays for a JVM that has compiled nothing yet
        prefix = f"bench-{uuid.uuid4().hex[:8]}"
        with ElasticsearchStore(url, index_prefix=prefix, mask=mask, timeout=120) as store:
            store.tool_names("w")  # the indices are made
            ours.append(seconds(lambda store=store: ingest(store, calls, tools)))
            documents = bare_documents(bare, prefix, f"{prefix}-bare")
            assert len(documents) == CALLS
            work = lambda docs=documents: helpers.bulk(bare, docs, chunk_size=BATCH)  # noqa: E731
            theirs.append(seconds(work))
            if turn:
                one = calls[:100]
                few += [seconds(lambda s=store, c=c: s.append_calls("w", [c], 100)) for c in one]
        drop(bare, prefix)
    case = f"{CALLS:,} calls on {tools} tools, {BATCH} a commit, {WRITERS} threads"
    case += "" if mask else ", secrets not masked"
    return [
        (f"{case}: calls/s", CALLS / min(ours[1:]), ""),
        ("  the same documents by the client's bulk, calls/s", CALLS / min(theirs[1:]), ""),
        ("  time against bare", min(ours[1:]) / min(theirs[1:]), "2.0"),
        ("  one call added, ms", 1000 * statistics.median(few), ""),
    ]


def search_rows(url: str, bare: Elasticsearch) -> list[tuple[str, object, str]]:
    chance = np.random.default_rng(7)
    words = sorted({word for query in QUERIES for word in query.split()}) + list("abcdefghij")
    prefix = f"bench-{uuid.uuid4().hex[:8]}"
    with ElasticsearchStore(url, index_prefix=prefix, timeout=120) as store:
        store.use_embedder(IDENTITY)
        for number in range(DOCUMENTS):
            text = " ".join(chance.choice(words, 60))
            store.put("w", "notes", f"note {number}", {}, document=Document(text))
        while rows := store.texts_without_vector("w", "notes", 500):
            vectors = chance.normal(size=(len(rows), DIMENSION)).astype(np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            store.put_vectors(IDENTITY, {r.id: v for r, v in zip(rows, vectors, strict=True)})
        unit = chance.normal(size=DIMENSION).astype(np.float32)
        index, depth = f"{prefix}-records", max(100, 10 * LIMIT)
        filters = [{"term": {"workspace": "w"}}, {"term": {"namespace": "notes"}}]

        def two_queries(query: str) -> None:
            match = {"match": {"words": {"query": " ".join(query_words(query))}}}
            options = {"size": depth, "source": False, "docvalue_fields": ["key"]}
            body = {"bool": {"must": [match], "filter": filters}}
            bare.search(index=index, query=body, **options)
            knn = {"field": f"vector_{DIMENSION}", "query_vector": unit.tolist(), "k": depth}
            knn |= {"num_candidates": depth, "filter": filters}
            bare.search(index=index, knn=knn, **options)

        ours, theirs = [], []
        for number in range(120):
            query = QUERIES[number % len(QUERIES)]
            theirs.append(seconds(lambda q=query: two_queries(q)))
            ours.append(seconds(lambda q=query: store.search("w", "notes", q, unit, LIMIT)))
    drop(bare, prefix)
    ours, theirs = ours[20:], theirs[20:]
    return [
        (f"two bare queries over {DOCUMENTS:,} documents, ms", 1e3 * statistics.median(theirs), ""),
        ("search by words and vectors, ms", 1e3 * statistics.median(ours), ""),
        ("  time against bare", statistics.median(ours) / statistics.median(theirs), "1.5"),
    ]


def main() -> None:
    server = find_server(heap="1536m")
    try:
        bare = Elasticsearch(server.url, request_timeout=120)
        rows = [row for tools in (20, 200) for row in ingest_rows(server.url, bare, tools)]
        rows += ingest_rows(server.url, bare, 200, mask=False)
        rows += search_rows(server.url, bare)
        table = Table(f"On {server.source}", ("figure", "measured", "goal"), rows)
        publish("elasticsearch", "The distributed store beside the bare client", table)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
