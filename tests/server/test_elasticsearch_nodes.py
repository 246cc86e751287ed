"""Nodes that die or hang: what was acknowledged is there, and work goes on as soon as it can."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest
from elasticsearch_nodes.cluster import Cluster
from elasticsearch_nodes.node import Node

from toolmem.errors import StoreError, StoreUnavailable
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import EMBEDDER, W, append, call, document, kept_calls

TOOLS = ("a", "b", "c")


def store_at(hosts: str | Sequence[str], **params: object) -> ElasticsearchStore:
    return ElasticsearchStore(hosts, clock=ManualClock(), embedder=EMBEDDER, **params)


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


async def _until(condition, seconds: float) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "it took too long"
        await asyncio.sleep(0.1)


def _count(adders: Adders) -> int:
    return sum(len(ids) for ids in adders.acknowledged.values())


async def test_a_single_node_killed_loses_nothing_acknowledged_and_work_resumes(node: Node):
    async with store_at(node.url, number_of_replicas=0, timeout=4) as store:
        adders = Adders(store, batch=200)
        await store.put(W, "n", "k", {"n": 1}, document=document("umbrella", 1, 0, 0, 0))
        tasks = [asyncio.create_task(adders.add(tool)) for tool in TOOLS]
        await _until(lambda: _count(adders) > 3000, 60)
        node.kill()  # in the middle of a bulk
        begun = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"cannot be reached.*Start the server"):
            await store.append_calls(W, "d", [call(1, "d")], 10)
        assert time.monotonic() - begun < 5
        await _until(lambda: len(adders.errors) >= 3, 30)
        before = _count(adders)
        await asyncio.to_thread(node.start)
        await _until(lambda: _count(adders) > before + 1000, 60)  # the same store object goes on
        adders.busy = False
        await asyncio.gather(*tasks)
        await adders.check(store)
        assert (await store.search(W, "umbrella", None, 3, None)) == []
        assert [record.key for record in await store.list(W, "n")] == ["k"]
    assert all(isinstance(error, StoreUnavailable) for error in adders.errors)


async def test_a_cluster_goes_on_when_its_master_is_killed_in_mid_bulk(cluster: Cluster):
    async with store_at(cluster.urls, number_of_replicas=1, timeout=40) as store:
        adders = Adders(store, batch=200)
        tasks = [asyncio.create_task(adders.add(tool)) for tool in TOOLS]
        await _until(lambda: _count(adders) > 2000, 90)
        victim = cluster.elected()
        await asyncio.to_thread(victim.kill)
        before = _count(adders)
        await _until(lambda: _count(adders) > before + 2000, 120)
        assert adders.errors == []  # the caller did not even notice
        await asyncio.to_thread(victim.launch)
        await asyncio.to_thread(victim.wait, 3)
        await _until(lambda: _count(adders) > before + 3000, 90)
        adders.busy = False
        await asyncio.gather(*tasks)
        await adders.check(store)


async def test_a_replica_that_hangs_is_left_behind_and_nothing_is_lost(cluster: Cluster):
    """A node that is stopped keeps its connections open: writes wait until the cluster has put it out."""
    async with store_at(cluster.urls, number_of_replicas=1, timeout=60) as store:
        adders = Adders(store, batch=100)
        await append(store, 0, tool="warm")
        master = cluster.elected()
        hung = next(node for node in cluster.nodes if node is not master)
        tasks = [asyncio.create_task(adders.add(tool)) for tool in TOOLS]
        await _until(lambda: _count(adders) > 500, 90)
        hung.pause()
        try:
            before = _count(adders)
            await _until(lambda: _count(adders) > before + 1500, 150)
        finally:
            hung.resume()
        before = _count(adders)
        await _until(lambda: _count(adders) > before + 500, 90)
        adders.busy = False
        await asyncio.gather(*tasks)
        assert adders.errors == []
        # A node that has just woken up answers from what it knew before, until it has joined again.
        for node in cluster.nodes:
            await asyncio.to_thread(node.wait_until_green, 3)
        for url in cluster.urls:  # whichever copy answers
            async with store_at(url, timeout=30) as each:
                await adders.check(each)
