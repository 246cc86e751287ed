"""Answers that are lost, requests that are rejected, writers that die between two steps."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from elasticsearch_nodes.proxy import Answer, Proxy, once, rejection, reply
from elasticsearch_nodes.server import Server

from toolmem.errors import Conflict, StoreError, StoreUnavailable
from toolmem.store.elastic.document_ids import id_doc_id
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import (
    EMBEDDER,
    TOOL,
    W,
    append,
    call,
    document,
    guidance,
    kept_calls,
    numbers_of,
    verdict,
)


def store_at(url: str, prefix: str, **params: object) -> ElasticsearchStore:
    return ElasticsearchStore(
        url, clock=ManualClock(), embedder=EMBEDDER, index_prefix=prefix, number_of_replicas=0, **params
    )


SWAP = "-tools/_doc/"


@pytest.mark.parametrize("place", ["drop before", "drop after"])
@pytest.mark.parametrize("request_name", ["_bulk", SWAP, "_mget"])
async def test_a_lost_answer_neither_loses_nor_doubles_a_call(
    server: Server, fresh_prefix: Callable[[], str], place: str, request_name: str
):
    prefix = fresh_prefix()
    async with Proxy(server.url) as proxy, store_at(proxy.url, prefix) as store:
        await append(store, 0, 1, keep=3)
        for number in range(2, 6):
            proxy.faults = [once(request_name, place)]
            appended = await store.append_calls(W, TOOL, [call(number)], 3)
            assert appended.stored == 1
            assert appended.record is not None
            assert (appended.record.last_seq, appended.record.counters.calls) == (number + 1, number + 1)
            assert (await store.records(W, [TOOL])) == [appended.record]
        assert numbers_of(await kept_calls(store)) == [3, 4, 5]


async def test_a_lost_answer_to_guidance_or_a_put_is_no_conflict(server: Server, fresh_prefix: Callable[[], str]):
    prefix = fresh_prefix()
    async with Proxy(server.url) as proxy, store_at(proxy.url, prefix) as store:
        await append(store, 1, 2)
        proxy.faults = [once(SWAP, "drop after")]
        record = await store.put_guidance(W, TOOL, guidance(covered=[1]), document=document(), guidance_version=0)
        assert (record.guidance_version, record.covered) == (1, [(1, 1)])
        proxy.faults = [once(SWAP, "drop after")]
        judged = await store.update_verdicts(W, TOOL, {2: call(2).judged(verdict(0.0))})
        assert judged is not None
        assert (judged.guidance_version, judged.counters.score_sum) == (2, 1.0)
        proxy.faults = [once("-records/_doc/", "drop after")]
        assert (await store.put(W, "n", "k", {"n": 1}, expected_version=0)).version == 1
        proxy.faults = [once("-records/_doc/", "drop after")]
        assert (await store.put(W, "n", "k", {"n": 2}, expected_version=1)).version == 2
        with pytest.raises(Conflict):
            await store.put(W, "n", "k", {"n": 2}, expected_version=1)


async def test_rejected_requests_and_items_are_sent_again(server: Server, fresh_prefix: Callable[[], str]):
    prefix = fresh_prefix()
    async with Proxy(server.url) as proxy, store_at(proxy.url, prefix) as store:
        proxy.faults = [once("_bulk", rejection(429), times=3), once(SWAP, rejection(503), times=2)]
        await append(store, *range(5))
        proxy.faults = [_rejecting_some_items()]
        await append(store, *range(5, 10))
        assert numbers_of(await kept_calls(store)) == list(range(10))


async def test_a_node_that_lags_behind_the_cluster_is_asked_again(server: Server, fresh_prefix: Callable[[], str]):
    """As seen of a node that had hung: its view of who is primary is an old one for a moment."""
    reason = {"type": "illegal_state_exception", "reason": "operation primary term [1] is too old (current [2])"}
    shards = {"_shards": {"total": 2, "successful": 1, "failed": 1, "failures": [{"reason": reason}]}}
    gone = {"error": {"type": "node_disconnected_exception", "reason": "disconnected"}, "status": 500}
    prefix = fresh_prefix()
    async with Proxy(server.url) as proxy, store_at(proxy.url, prefix) as store:
        await append(store, 1)
        proxy.faults = [once("_refresh", lambda: reply(shards, 500)), once(SWAP, lambda: reply(gone, 500), times=2)]
        assert await store.tool_names(W) == [TOOL]
        await append(store, 2)
        assert numbers_of(await kept_calls(store)) == [1, 2]


async def test_documents_whose_shard_is_not_there_yet_are_asked_for_again(
    server: Server, fresh_prefix: Callable[[], str]
):
    """As a node answers that has just been told of an index, or has just lost one."""
    error = {"type": "no_shard_available_action_exception", "reason": "No shard available"}

    def without_the_first(content: bytes) -> bytes:
        first, *others = json.loads(content)["docs"]
        gone = {"_index": first["_index"], "_id": first["_id"], "error": error}
        return json.dumps({"docs": [gone, *others]}).encode()

    prefix = fresh_prefix()
    async with store_at(server.url, prefix) as patient:
        for tool in ("a", "b", "c"):
            await append(patient, 1, tool=tool)
    async with Proxy(server.url) as proxy, store_at(proxy.url, prefix, timeout=3) as store:
        proxy.faults = [once("_mget", lambda: without_the_first, times=2)]
        assert [record.tool_name for record in await store.records(W, ["c", "a", "b"])] == ["c", "a", "b"]
        proxy.faults = [once("_mget", lambda: without_the_first, times=1000)]
        with pytest.raises(StoreUnavailable, match=r"No shard available.*health"):
            await store.records(W, ["c", "a", "b"])


def _rejecting_some_items() -> Callable[[str, bytes], Answer]:
    """The first bulk: nothing is done, every item is answered with a 429, as a full write queue does."""
    done = False

    def fault(name: str, body: bytes) -> Answer:
        nonlocal done
        if "_bulk" not in name or done:
            return None
        done = True
        heads = [json.loads(line) for line in body.splitlines() if line.startswith(b'{"index"')]
        error = {"type": "es_rejected_execution_exception", "reason": "rejected execution"}
        items = [{"index": {"_id": head["index"]["_id"], "status": 429, "error": error}} for head in heads]
        assert items
        return reply({"errors": True, "items": items, "took": 1})

    return fault


async def test_a_server_that_rejects_for_good_is_an_error_within_the_timeout(
    server: Server, fresh_prefix: Callable[[], str]
):
    prefix = fresh_prefix()
    async with store_at(server.url, prefix) as patient:  # indices are made, which may take longer
        await append(patient, 1)
    async with Proxy(server.url) as proxy, store_at(proxy.url, prefix, timeout=3) as store:
        proxy.faults = [once("_bulk", rejection(429), times=1000)]
        with pytest.raises(StoreUnavailable, match=r"429.*lower the load"):
            await store.append_calls(W, TOOL, [call(2, id="x")], 10)
        proxy.faults = [once(SWAP, "silence", times=1000)]
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            await store.append_calls(W, TOOL, [call(2, id="x")], 10)
        proxy.faults = []
        assert (await store.append_calls(W, TOOL, [call(2, id="x")], 10)).stored == 1
        assert numbers_of(await kept_calls(store)) == [1, 2]


async def test_one_call_that_the_server_refuses_is_named_and_the_others_are_stored(
    server: Server, fresh_prefix: Callable[[], str]
):
    def refusing_the_second(name: str, body: bytes) -> Answer:
        lines = body.splitlines()
        if "_bulk" not in name or b"question 2" not in body:
            return None
        heads = [json.loads(line) for line in lines[::2]]
        error = {"type": "document_parsing_exception", "reason": "it does not like this one"}
        items = [
            {"index": {"status": 400, "error": error} if b"question 2" in source else {"status": 201}}
            for _, source in zip(heads, lines[1::2], strict=True)
        ]
        return reply({"errors": True, "items": items})

    prefix = fresh_prefix()
    async with Proxy(server.url) as proxy, store_at(proxy.url, prefix) as store:
        proxy.faults = [refusing_the_second]
        appended = await store.append_calls(W, TOOL, [call(1), call(2), call(3)], 10)
        assert appended.stored == 2
        ((index, tool, error),) = [(each.index, each.tool_name, each.error) for each in appended.failures]
        assert (index, tool) == (1, TOOL)
        assert "it does not like this one" in error
        assert numbers_of(await kept_calls(store)) == [1, 3]


async def test_a_commit_that_fails_half_way_shows_nothing(server: Server, fresh_prefix: Callable[[], str]):
    prefix = fresh_prefix()
    async with Proxy(server.url) as proxy, store_at(proxy.url, prefix) as store:
        await append(store, 1)
        before = await store.memories(W, None, calls=True)
        proxy.faults = [once(SWAP, rejection(500, "internal"), times=9)]
        with pytest.raises(StoreError, match="internal"):
            await store.append_calls(W, TOOL, [call(2), call(3, id="x")], 10)
        assert await store.memories(W, None, calls=True) == before
        assert await store.known_ids(W, TOOL, ["x"]) == set()
        proxy.faults = []
        assert (await store.append_calls(W, TOOL, [call(2), call(3, id="x")], 10)).stored == 2


async def test_a_trim_that_fails_is_made_up_for_by_the_next_commit(server: Server, fresh_prefix: Callable[[], str]):
    prefix = fresh_prefix()
    async with Proxy(server.url) as proxy, store_at(proxy.url, prefix) as store:
        await append(store, 0, 1, 2, keep=2)
        proxy.faults = [_second_bulk_fails()]
        await append(store, 3, keep=2)
        async with store_at(server.url, prefix) as other:
            await append(other, 4, keep=2)
        assert numbers_of(await kept_calls(store)) == [3, 4]
        assert numbers_of([each.call for each in await store.call_log(W)]) == [0, 1, 2, 3, 4]
        await store.update_verdicts(W, TOOL, {4: call(3).judged(verdict(0.0))})
        assert await _documents(store, "calls") == 5


def _second_bulk_fails() -> Callable[[str, bytes], Answer]:
    bulks = 0

    def fault(name: str, body: bytes) -> Answer:
        nonlocal bulks
        bulks += "_bulk" in name
        return rejection(500, "internal")() if bulks == 2 and "_bulk" in name else None

    return fault


async def _documents(store: ElasticsearchStore, kind: str) -> int:
    """As the index itself counts them."""
    session = store._open_session()
    index = session.layout.alias(kind)
    await session.connection.refresh(index)
    answer = await session.connection.call(lambda es: es.count(index=index))
    return int(answer["count"])


DIE = """
import asyncio, os, signal, sys
from toolmem.store.elastic.cluster import Cluster
from toolmem.store.elastic.document_ids import id_doc_id
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import EMBEDDER, TOOL, W, call

url, prefix, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
done = 0

async def main():
    store = ElasticsearchStore(
        url, clock=ManualClock(), embedder=EMBEDDER, index_prefix=prefix, number_of_replicas=0
    )
    await store.open()
    await store.append_calls(W, "warm", [call(0, "warm")], 9)   # the writer is registered
    answered = Cluster.call

    async def counted(self, *values, **named):
        global done
        if done == step:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = await answered(self, *values, **named)
        done += 1
        return answer

    Cluster.call = counted
    await store.append_calls(W, TOOL, [call(n, id=f"id {n}") for n in (7, 8)], 3)
    print("acknowledged", flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("step", "visible"),
    [(1, False), (2, False), (3, True)],
    ids=["after reading", "between bulk and swap", "between swap and trim"],
)
async def test_a_writer_that_dies_between_two_steps_leaves_all_or_nothing(
    server: Server, fresh_prefix: Callable[[], str], step: int, visible: bool
):
    prefix = fresh_prefix()
    async with store_at(server.url, prefix) as store:
        await append(store, 0, 1, 2, keep=3)
        died = subprocess.run(
            [sys.executable, "-c", DIE, server.url, prefix, str(step)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (died.returncode, died.stdout) == (-9, ""), died.stderr
        assert numbers_of(await kept_calls(store)) == ([2, 7, 8] if visible else [0, 1, 2])
        assert await store.known_ids(W, TOOL, ["id 7", "id 8"]) == ({"id 7", "id 8"} if visible else set())
        # The caller heard nothing, so it sends the calls again.
        again = await store.append_calls(W, TOOL, [call(n, id=f"id {n}") for n in (7, 8)], 3)
        assert (again.stored, len(again.duplicates)) == ((0, 2) if visible else (2, 0))
        assert numbers_of(await kept_calls(store)) == [2, 7, 8]
        await append(store, 9, keep=3)
        assert await store.known_ids(W, TOOL, ["id 7", "id 8"]) == {"id 7", "id 8"}
        await store.sweep(silent_seconds=-5)
        assert numbers_of(await kept_calls(store)) == [7, 8, 9]
        assert numbers_of([each.call for each in await store.call_log(W, tool=TOOL)]) == [0, 1, 2, 7, 8, 9]
        assert await _documents(store, "calls") == 7  # these, and the one of the tool `warm`


async def test_ids_that_came_between_two_reads_are_recognized(server: Server, fresh_prefix: Callable[[], str]):
    """The id documents are read with the record; where a commit came between the two, they are older than it."""
    prefix = fresh_prefix()
    async with store_at(server.url, prefix) as other, Proxy(server.url) as proxy, store_at(proxy.url, prefix) as store:
        await other.append_calls(W, TOOL, [call(1, id="given")], 10)
        await append(other, 2)
        proxy.faults = [once("_mget", lambda: _without_id_documents)]
        known = await store.append_calls(W, TOOL, [call(1, id="given"), call(5, id="new")], 10)
        assert (known.stored, known.duplicates) == (1, (0,))
        assert numbers_of(await kept_calls(other)) == [1, 2, 5]
        assert await _documents(store, "calls") == 3


def _without_id_documents(content: bytes) -> bytes:
    answer = json.loads(content)
    head, *ids = answer["docs"]
    assert ids[0]["found"]
    return json.dumps({"docs": [head, *({"_id": each["_id"], "found": False} for each in ids)]}).encode()


def _as_a_lost_node_shows_it(change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Callable[[bytes], bytes]:
    """The record with a commit on it that the cluster will undo: it was never acknowledged, its position never was."""

    def doctored(content: bytes) -> bytes:
        answer = json.loads(content)
        head = answer["docs"][0]
        body = json.loads(head["_source"]["body"])
        body["left_by"] = "lost"
        change(body, head["_source"])
        head["_source"]["body"] = json.dumps(body)
        head["_seq_no"] += 1000
        return json.dumps(answer).encode()

    return doctored


async def test_a_call_is_no_duplicate_of_one_that_only_a_lost_node_has(server: Server, fresh_prefix: Callable[[], str]):
    """Nobody is told "it is there already" on the strength of a read that the cluster may undo."""
    lost = id_doc_id(W, TOOL, "sent")

    def with_the_id(body: dict[str, Any], source: dict[str, Any]) -> None:
        source["outbox"] = json.dumps([lost])

    async with Proxy(server.url) as proxy, store_at(proxy.url, fresh_prefix()) as store:
        await append(store, 1)
        proxy.faults = [once("_mget", lambda: _as_a_lost_node_shows_it(with_the_id))]
        assert await store.known_ids(W, TOOL, ["sent"]) == set()
        proxy.faults = [once("_mget", lambda: _as_a_lost_node_shows_it(with_the_id))]
        appended = await store.append_calls(W, TOOL, [call(2, id="sent")], 10)
        assert (appended.stored, appended.duplicates) == (1, ())
        assert numbers_of(await kept_calls(store)) == [1, 2]


async def test_no_call_is_deleted_because_a_lost_node_has_trimmed_it(server: Server, fresh_prefix: Callable[[], str]):
    def trimmed(body: dict[str, Any], source: dict[str, Any]) -> None:
        body["leaving"], body["runs"], body["seqs"] = body["runs"], [], [4, 3]

    async with Proxy(server.url) as proxy, store_at(proxy.url, fresh_prefix()) as store:
        await append(store, 1, 2, 3)
        proxy.faults = [once("_mget", lambda: _as_a_lost_node_shows_it(trimmed))]
        await append(store, 4)
        assert numbers_of(await kept_calls(store)) == [1, 2, 3, 4]
        assert await _documents(store, "calls") == 4


async def test_an_old_read_never_overwrites_what_was_written_since(server: Server, fresh_prefix: Callable[[], str]):
    """A node that lags behind shows seqs as free that this very writer has given away."""
    seen: list[bytes] = []

    def remember(content: bytes) -> bytes:
        seen.append(content)
        return content

    async with Proxy(server.url) as proxy, store_at(proxy.url, fresh_prefix()) as store:
        await append(store, 1, 2)
        proxy.faults = [once("_mget", lambda: remember)]
        await append(store, 3, 4)
        await append(store, 5)
        proxy.faults = [once("_mget", lambda: lambda _: seen[0])]
        await append(store, 6)
        assert numbers_of(await kept_calls(store)) == [1, 2, 3, 4, 5, 6]
        assert await _documents(store, "calls") == 6
