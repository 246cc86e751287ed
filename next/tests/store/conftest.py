"""The store under test: `pytest tests/store --store MODULE:FACTORY` tries another one."""

from importlib import import_module

import pytest

from toolmem.models.guidance import Guidance
from toolmem.models.records import Document


@pytest.fixture
def open_store(request, path):
    """Open the same place once more. Every handle is closed after the test."""
    module, _, factory = request.config.getoption("--store").partition(":")
    make = getattr(import_module(module), factory)
    opened = []

    def open_again():
        opened.append(make(path))
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
