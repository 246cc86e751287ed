"""The guard's own tests, those of two processes among them, on the distributed store."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable

import pytest

from tests.engine import test_call_guard, test_call_histories
from toolmem.engine.guarding import CallGuard
from toolmem.protocols import MemoryStore
from toolmem.rules.rule_store import RuleStore
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.store.masked import masking, unmasked
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract import StoreFactory


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store_factory(fresh_store: Callable[[], StoreFactory]) -> StoreFactory:
    return fresh_store()


@pytest.fixture
async def store(store_factory: StoreFactory, clock: ManualClock) -> AsyncIterator[MemoryStore]:
    async with store_factory(clock=clock) as opened:
        yield masking(opened)


@pytest.fixture
def guard(store: MemoryStore, clock: ManualClock) -> CallGuard:
    return CallGuard(store, "w", clock=clock, modes=test_call_guard.ENFORCE, timeout=60)


@pytest.fixture
def rules(store: MemoryStore, clock: ManualClock) -> RuleStore:
    return RuleStore(store, "w", clock=clock)


def _runs_here(test: object) -> bool:
    """The others open a file, or need no store."""
    return inspect.iscoroutinefunction(test) and "tmp_path" not in inspect.signature(test).parameters


TESTS = [
    (name, test)
    for module in (test_call_guard, test_call_histories)
    for name, test in vars(module).items()
    if name.startswith("test_") and _runs_here(test)
]
globals().update(TESTS)  # collected as tests of this file, with the fixtures above


async def test_the_guards_own_tests_run_on_the_distributed_store(store: MemoryStore, guard: CallGuard) -> None:
    """Were none of them borrowed, or on another store, this file would pass whatever the store does."""
    assert isinstance(unmasked(store), ElasticsearchStore)
    assert len(dict(TESTS)) == len(TESTS) >= 60
    await RuleStore(store, "w", clock=ManualClock()).put_rule("bash", "never run it", effect="deny", when=True)
    decision = await guard.before("bash", {"command": "ls"}, conversation_id="c")
    assert (decision.action, decision.stops) == ("deny", True)
    assert await store.list_raw("w", None, prefix="tool-", key_prefix="rule/") != []
