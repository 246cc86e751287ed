"""A rule store on a file of the embedded store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from toolmem.providers.hashing import HashingEmbedder
from toolmem.rules.rule_store import RuleStore
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def embedder() -> HashingEmbedder:
    return HashingEmbedder(64)


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock, embedder: HashingEmbedder) -> AsyncIterator[SqliteStore]:
    async with SqliteStore(tmp_path / "memory.db", clock=clock, embedder=embedder.identity) as store:
        yield store


@pytest.fixture
def rules(store: SqliteStore, clock: ManualClock, embedder: HashingEmbedder) -> RuleStore:
    return RuleStore(store, "team", clock=clock, embedder=embedder)
