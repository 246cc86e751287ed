"""The guard's own tests, those of two processes among them, on the distributed store."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable

import pytest

from tests.engine import test_call_guard
from toolmem.engine.guarding import CallGuard
from toolmem.protocols import MemoryStore
from toolmem.rules.rule_store import RuleStore
from toolmem.store.masked import masking
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


for _name, _test in vars(test_call_guard).items():
    _is_test = _name.startswith("test_") and inspect.iscoroutinefunction(_test)
    if _is_test and "tmp_path" not in inspect.signature(_test).parameters:  # the others open a file
        globals()[_name] = _test
