"""A real server for the tests of this folder: found or started once, skipped with the reason where none can be had."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `elasticsearch_nodes`, which the benchmarks use as well

from elasticsearch_nodes.cluster import Cluster
from elasticsearch_nodes.index_sets import IndexSets
from elasticsearch_nodes.installation import Missing
from elasticsearch_nodes.node import Node
from elasticsearch_nodes.server import Server, find_server, required

from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract import EMBEDDER, StoreFactory


def _without(reason: str) -> None:
    if required():
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    try:
        found = find_server()
    except Missing as missing:
        _without(str(missing))
    yield found
    found.stop()


@pytest.fixture(scope="session")
def index_sets(server: Server) -> Iterator[IndexSets]:
    with IndexSets(server.url) as sets:
        yield sets


@pytest.fixture
def fresh_prefix(index_sets: IndexSets) -> Iterator[Callable[[], str]]:
    """Names for indices that nobody has; whatever was made under them goes with the test."""
    made: list[str] = []

    def fresh() -> str:
        made.append(index_sets.new_prefix())
        return made[-1]

    yield fresh
    for prefix in made:
        index_sets.drop(prefix)


@pytest.fixture
def empty_prefix(index_sets: IndexSets) -> Iterator[Callable[[int], str]]:
    """empty_prefix(dimension): of indices without a document, for stores whose vectors have this dimension, made with
    `number_of_replicas=0`. Each call takes back what the one before it gave."""
    lent: list[str] = []

    def take_back() -> None:
        while lent:
            index_sets.give_back(lent.pop())

    def lend(dimension: int) -> str:
        take_back()
        lent.append(index_sets.lend(dimension))
        return lent[0]

    yield lend
    take_back()


@pytest.fixture
def fresh_store(server: Server, empty_prefix: Callable[[int], str]) -> Callable[[], StoreFactory]:
    def fresh() -> StoreFactory:
        return partial(_store, server.url, index_prefix=empty_prefix(EMBEDDER.dimension), number_of_replicas=0)

    return fresh


def _store(url: str, *, clock: object = None, embedder: object = EMBEDDER, **params: object) -> ElasticsearchStore:
    return ElasticsearchStore(url, clock=clock or ManualClock(), embedder=embedder, **params)


@pytest.fixture(scope="session")
def _own_node() -> Iterator[Node]:
    try:
        own = Node()
    except Missing as missing:
        _without(f"a node that may be killed has to be started here: {missing}")
    with own:
        yield own


@pytest.fixture
def node(_own_node: Node) -> Node:
    """A node that may be killed, whatever the other tests run on; it runs when a test begins."""
    if not _own_node.runs:
        _own_node.start()
    return _own_node


@pytest.fixture(scope="session")
def _own_cluster() -> Iterator[Cluster]:
    try:
        own = Cluster()
    except Missing as missing:
        _without(f"nodes that may be killed have to be started here: {missing}")
    with own:
        yield own


@pytest.fixture
def cluster(_own_cluster: Cluster) -> Cluster:
    """Three nodes that may be killed; all of them run, and agree, when a test begins."""
    _own_cluster.mend()
    return _own_cluster
