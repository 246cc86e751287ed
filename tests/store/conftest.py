"""The stores under test: both, or the one of `pytest tests/store --store MODULE:FACTORY`."""

import os
import uuid
from functools import partial
from importlib import import_module

import pytest
from elasticsearch_nodes import Missing, find_server

from toolmem.models.guidance import Guidance
from toolmem.models.records import Document
from toolmem.store.elasticsearch import ElasticsearchStore

BOTH = ["sqlite", pytest.param("elasticsearch", marks=pytest.mark.xdist_group("elasticsearch"))]


def pytest_generate_tests(metafunc):
    """Every test that asks for a store runs on each of them."""
    if "open_store" in metafunc.fixturenames:
        own = metafunc.config.getoption("--store")
        metafunc.parametrize("kind", [own] if own else BOTH, scope="session")


def started(make):
    """What a test needs of this machine; CI fails without it, and others skip the test."""
    try:
        return make()
    except Missing as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def server():
    """A real Elasticsearch."""
    found = started(find_server)
    yield found
    found.stop()


@pytest.fixture
def prefix(server):
    """Of indices that go after the test."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    yield name
    with ElasticsearchStore(server.url, index_prefix=name) as store:
        kinds = ("tools", "calls", "records", "rule-copies")
        names = ",".join(f"{name}-{kind}-1" for kind in kinds)
        store._client.ask(lambda es: es.indices.delete(index=names, ignore_unavailable=True))


@pytest.fixture
def open_store(kind, request, path):
    """Open the same place once more. Every handle is closed after the test."""
    if kind == "elasticsearch":
        url, name = request.getfixturevalue("server").url, request.getfixturevalue("prefix")
        make = partial(ElasticsearchStore, url, index_prefix=name)
    else:
        place = "toolmem.store.sqlite:SqliteStore" if kind == "sqlite" else kind
        module, _, factory = place.partition(":")
        make = partial(getattr(import_module(module), factory), path)
    opened = []

    def open_again():
        opened.append(make())
        return opened[-1]

    yield open_again
    for each in opened:
        each.close()


@pytest.fixture
def store(open_store):
    return open_store()


@pytest.fixture
def summarize(store):
    """Put guidance on `search` that covers these seqs."""

    def put(covered, version, text="ask for one thing"):
        return store.put_guidance(
            "w",
            "search",
            Guidance(text=text, author="x", covered=covered),
            document=Document(f"search\n{text}"),
            expected_version=version,
        )

    return put
