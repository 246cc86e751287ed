"""Nodes that die or hang: what was acknowledged is there, and work goes on as soon as it can."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence

import pytest
from elasticsearch_nodes.cluster import Cluster
from elasticsearch_nodes.node import Node

from toolmem import ToolMemApp
from toolmem.errors import StoreError, StoreUnavailable
from toolmem.protocols import MemoryStore
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import EMBEDDER, W, append, call, document, kept_calls, numbers_of

TOOLS = ("a", "b", "c")
PATIENCE = 300.0  # seconds: ends what hangs, on however busy a machine


def store_at(hosts: str | Sequence[str], **params: object) -> ElasticsearchStore:
    return ElasticsearchStore(hosts, clock=ManualClock(), embedder=EMBEDDER, **params)


@pytest.fixture
def small_queue(_own_node: Node) -> Iterator[Node]:
    """A node that soon has too much to do."""
    with Node({"discovery.type": "single-node", "thread_pool.write.queue_size": "1"}) as own:
        yield own


class Adders:
    """Each adds batches to its tool and notes which ids were acknowledged; after an error it sends the batch again."""

    def __init__(self, store: ElasticsearchStore, batch: int) -> None:
        self.store = store
        self.batch = batch
        self.acknowledged: dict[str, list[str]] = {tool: [] for tool in TOOLS}
        self.errors: list[StoreError] = []
        self.busy = True

    async def add(self, tool: str) -> None:
        number = 0
        while self.busy:
            batch = [call(n, tool, id=f"{n}", output="x" * 500) for n in range(number, number + self.batch)]
            try:
                appended = await self.store.append_calls(W, tool, batch, 100_000)
            except StoreError as error:
                self.errors.append(error)
                await asyncio.sleep(0.2)
                continue
            assert appended.stored + len(appended.duplicates) == self.batch
            self.acknowledged[tool] += [f"{n}" for n in range(number, number + self.batch)]
            number += self.batch

    async def check(self, store: ElasticsearchStore) -> None:
        """Every acknowledged call once, in order, without gaps; after them at most a batch whose answer was lost."""
        for tool, ids in self.acknowledged.items():
            stored = await kept_calls(store, tool)
            assert [each.id for each in stored][: len(ids)] == ids
            assert len(stored) - len(ids) in (0, self.batch)
            assert [each.seq for each in stored] == list(range(1, len(stored) + 1))
            assert await store.known_ids(W, tool, ids) == set(ids)


async def _until(condition) -> None:
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up, "it took too long"
        await asyncio.sleep(0.1)


def _count(adders: Adders) -> int:
    return sum(len(ids) for ids in adders.acknowledged.values())


async def test_a_single_node_killed_loses_nothing_acknowledged_and_work_resumes(node: Node):
    async with store_at(node.url, number_of_replicas=0):
        pass  # indices are made, which may take longer than the timeout of what follows
    async with store_at(node.url, number_of_replicas=0, timeout=15) as store:
        adders = Adders(store, batch=200)
        await store.put(W, "n", "k", {"n": 1}, document=document("umbrella", 1, 0, 0, 0))
        tasks = [asyncio.create_task(adders.add(tool)) for tool in TOOLS]
        await _until(lambda: _count(adders) > 3000)
        node.kill()  # in the middle of a bulk
        begun = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"cannot be reached.*Start the server"):
            await store.append_calls(W, "d", [call(1, "d")], 10)
        assert time.monotonic() - begun < 120
        await _until(lambda: len(adders.errors) >= 3)
        before = _count(adders)
        await asyncio.to_thread(node.start)
        await _until(lambda: _count(adders) > before + 1000)  # the same store object goes on
        adders.busy = False
        await asyncio.gather(*tasks)
        await adders.check(store)
        assert (await store.search(W, "umbrella", None, 3, None)) == []
        assert [record.key for record in await store.list(W, "n")] == ["k"]
    assert all(isinstance(error, StoreUnavailable) for error in adders.errors)


async def test_a_request_that_the_loss_of_the_node_broke_off_goes_on_when_it_is_sent_again(node: Node):
    """The main job's own flow: what was stored is recognized by its id, the rest is judged and stored."""
    records = [
        {"id": f"{n}", "tool_name": f"tool_{n % 40}", "input": {"n": n}, "output": "ok " * 400, "success": True}
        for n in range(2_000)
    ]
    overrides = [
        *("vector_store.default.backend=elasticsearch", f"vector_store.default.params.hosts={node.url}"),
        *("vector_store.default.params.index_prefix=flow", "vector_store.default.params.number_of_replicas=0"),
        "op.parse_tool_call_result_op.params.evaluation_sleep_interval=0",
    ]
    async with ToolMemApp(overrides=overrides) as app:
        warm = await app.run_flow("add_tool_call_result", workspace_id="team", tool_call_results=records[:1])
        assert warm.success
        sent = asyncio.create_task(app.run_flow("add_tool_call_result", workspace_id="team", tool_call_results=records))
        store = await app.services.store_named("default")
        await _until_async(lambda: _kept(store, "team"), more_than=1)
        node.kill()
        with pytest.raises(StoreUnavailable, match=r"cannot be reached.*Start the server"):
            await sent
        await asyncio.to_thread(node.start)
        before = await _kept(store, "team")
        again = await app.run_flow("add_tool_call_result", workspace_id="team", tool_call_results=records)
        assert again.success
        assert 1 < before < len(records)
        assert again.metadata["evaluation"]["duplicates"] == before
        kept = await store.memories("team", None, calls=True)
        assert sorted(int(each.id or -1) for memory in kept for each in memory.calls) == list(range(len(records)))


async def _kept(store: MemoryStore, workspace: str) -> int:
    return sum(record.last_seq - record.first_seq + 1 for record in await store.records(workspace, None))


async def _until_async(count: Callable[[], Awaitable[int]], more_than: int) -> None:
    give_up = time.monotonic() + PATIENCE
    while await count() <= more_than:
        assert time.monotonic() < give_up, "it took too long"
        await asyncio.sleep(0.01)


async def test_a_disk_that_has_filled_up_is_named_and_writing_goes_on_by_itself(node: Node):
    """The server's own flood-stage watermark, set higher than any disk."""
    watermark = "cluster.routing.allocation.disk.watermark"
    full: dict[str, str | None] = {
        "cluster.info.update.interval": "10s",  # the shortest there is
        "cluster.routing.allocation.disk.threshold_enabled": "true",
        **{f"{watermark}.{name}": f"{n}pb" for name, n in (("flood_stage", 901), ("high", 902), ("low", 903))},
    }
    async with store_at(node.url, index_prefix="disk", number_of_replicas=0) as store:
        await append(store, 1, keep=1000)
        await asyncio.to_thread(node.ask, "/_cluster/settings", {"persistent": full}, method="PUT")
        refused: StoreUnavailable | None = None
        acknowledged = [1]
        for number in range(2, 400):
            try:
                await append(store, number, keep=1000)
            except StoreUnavailable as error:
                refused = error
                break
            acknowledged.append(number)
            await asyncio.sleep(0.2)
        assert refused is not None
        assert "takes no writes" in str(refused)
        assert "Free disk space" in str(refused)
        assert numbers_of(await kept_calls(store)) == acknowledged
        low = {f"{watermark}.{name}": f"{n}kb" for name, n in (("flood_stage", 1), ("high", 2), ("low", 3))}
        await asyncio.to_thread(node.ask, "/_cluster/settings", {"persistent": {**full, **low}}, method="PUT")
        give_up = time.monotonic() + PATIENCE
        while True:
            try:
                await append(store, 1000, keep=1000)
                break
            except StoreUnavailable:
                assert time.monotonic() < give_up
                await asyncio.sleep(0.5)
        await asyncio.to_thread(node.ask, "/_cluster/settings", {"persistent": dict.fromkeys(full)}, method="PUT")
        assert numbers_of(await kept_calls(store)) == [*acknowledged, 1000]


async def test_a_full_write_queue_delays_writers_and_loses_nothing(small_queue: Node):
    async with store_at(small_queue.url, number_of_replicas=0, timeout=60) as store:
        tools = [f"tool {n}" for n in range(40)]
        for _ in range(3):
            batches = [[call(n, tool, id=f"{tool} {n}") for n in range(30)] for tool in tools]
            added = await asyncio.gather(
                *(store.append_calls(W, tool, batch, 100) for tool, batch in zip(tools, batches, strict=True))
            )
            assert all(not each.failures for each in added)
        stats = await asyncio.to_thread(small_queue.ask, "/_nodes/stats/thread_pool")
        (own,) = stats["nodes"].values()
        assert own["thread_pool"]["write"]["rejected"] > 0  # the server did say 429
        for tool in tools:
            assert [each.id for each in await kept_calls(store, tool)] == [f"{tool} {n}" for n in range(30)]


async def test_a_cluster_goes_on_when_its_master_is_killed_in_mid_bulk(cluster: Cluster):
    async with store_at(cluster.urls, index_prefix="master", number_of_replicas=1, timeout=60) as store:
        adders = Adders(store, batch=200)
        tasks = [asyncio.create_task(adders.add(tool)) for tool in TOOLS]
        await _until(lambda: _count(adders) > 2000)
        victim = cluster.elected()
        await asyncio.to_thread(victim.kill)
        before = _count(adders)
        await _until(lambda: _count(adders) > before + 2000)
        assert adders.errors == []  # the caller did not even notice
        await asyncio.to_thread(victim.launch)
        await asyncio.to_thread(victim.wait, 3)
        await _until(lambda: _count(adders) > before + 3000)
        adders.busy = False
        await asyncio.gather(*tasks)
        await adders.check(store)


async def test_a_replica_that_hangs_is_left_behind_and_nothing_is_lost(cluster: Cluster):
    """A node that is stopped keeps its connections open: writes wait until the cluster has put it out."""
    async with store_at(cluster.urls, index_prefix="replica", number_of_replicas=1, timeout=60) as store:
        adders = Adders(store, batch=100)
        await append(store, 0, tool="warm")
        master = cluster.elected()
        hung = next(node for node in cluster.nodes if node is not master)
        tasks = [asyncio.create_task(adders.add(tool)) for tool in TOOLS]
        await _until(lambda: _count(adders) > 500)
        hung.pause()
        try:
            before = _count(adders)
            await _until(lambda: _count(adders) > before + 1500)
        finally:
            hung.resume()
        before = _count(adders)
        await _until(lambda: _count(adders) > before + 500)
        adders.busy = False
        await asyncio.gather(*tasks)
        assert adders.errors == []
        # A node that has just woken up answers from what it knew before, until it has joined again.
        for node in cluster.nodes:
            await asyncio.to_thread(node.wait_until_green, 3)
        for url in cluster.urls:  # whichever copy answers
            async with store_at(url, index_prefix="replica", timeout=30) as each:
                await adders.check(each)


async def test_a_list_never_answers_with_the_part_that_is_left(cluster: Cluster):
    """Three shards without a replica, one on each node: whoever lists workspaces needs them all."""
    names = [f"team {n}" for n in range(12)]
    params = {"index_prefix": "parts", "number_of_shards": 3, "number_of_replicas": 0}
    async with store_at(cluster.urls, timeout=30, **params) as store:
        for name in names:
            await append(store, 1, workspace=name)
    victim = cluster.nodes[0]
    async with store_at([node.url for node in cluster.nodes[1:]], timeout=6, **params) as store:
        await asyncio.to_thread(victim.kill)
        for _ in range(2):  # each of the nodes that are left
            with pytest.raises(StoreUnavailable, match=r"could not serve within the timeout|did not answer in time"):
                await store.workspaces()
    cluster.mend()
    async with store_at(cluster.urls, timeout=30, **params) as store:
        assert await store.workspaces() == sorted(names)
