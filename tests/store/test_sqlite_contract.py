"""The embedded store keeps every promise of the contract."""

import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import apsw
import pytest

from toolmem.protocols import MemoryStore
from toolmem.store.sqlite import SqliteStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract import EMBEDDER, StoreContract, StoreFactory


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def fresh_store(self, tmp_path: Path) -> Callable[[], StoreFactory]:
        def fresh() -> StoreFactory:
            path = tmp_path / uuid.uuid4().hex / "memory.db"
            return partial(SqliteStore, path, clock=ManualClock(), embedder=EMBEDDER)

        return fresh

    @pytest.fixture
    def damage_record(self) -> Callable[[MemoryStore, str, str, str], Awaitable[None]]:
        async def damage(store: MemoryStore, workspace: str, namespace: str, key: str) -> None:
            assert isinstance(store, SqliteStore)
            db = apsw.Connection(store.location)
            db.execute("UPDATE records SET value = '{\"torn' WHERE key = ?", (key,))
            db.close()

        return damage

    @pytest.fixture
    def verify_data(self, tmp_path: Path) -> Callable[[], None]:
        def verify() -> None:
            (file,) = tmp_path.glob("*/memory.db")
            db = apsw.Connection(str(file))
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            db.close()

        return verify
