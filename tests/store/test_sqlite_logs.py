"""The logs of the embedded store: what only this backend can show."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from toolmem.errors import RequestError
from toolmem.store.sqlite import SqliteStore
from toolmem.stored import LogLimits
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import TOOL, W, call, kept_calls

make = partial(SqliteStore, clock=ManualClock(), embedder=None, synchronous="NORMAL")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


async def test_a_call_is_stored_once_for_window_and_log(path: Path):
    output = "only once " * 1000
    async with make(path) as store:
        await store.append_calls(W, TOOL, [call(1, output=output)], 10)
        assert len(await store.call_log(W)) == len(await kept_calls(store)) == 1
    assert path.read_bytes().count(b"only once only once ") <= len(output) / 20


@pytest.mark.parametrize("limits", [{"max_calls": 0}, {"max_bytes": -1}, {"max_decisions": True}, {"max_calls": "5"}])
def test_a_limit_that_is_no_limit_is_refused_by_its_name(limits: dict[str, object]):
    with pytest.raises(RequestError, match=f"log.{next(iter(limits))}"):
        LogLimits(**limits)  # type: ignore[arg-type]
