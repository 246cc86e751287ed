"""The distributed store keeps every promise of the contract, on a real server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from toolmem.protocols import MemoryStore
from toolmem.store.elastic.document_ids import record_id, workspace_key
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.testing.store_contract import StoreContract, StoreFactory


class TestElasticsearchStore(StoreContract):
    @pytest.fixture
    def fresh_store(self, fresh_store: Callable[[], StoreFactory]) -> Callable[[], StoreFactory]:
        return fresh_store

    @pytest.fixture
    def damage_record(self) -> Callable[[MemoryStore, str, str, str], Awaitable[None]]:
        async def damage(store: MemoryStore, workspace: str, namespace: str, key: str) -> None:
            assert isinstance(store, ElasticsearchStore)
            session = store._open_session()
            await session.connection.call(
                lambda es: es.update(
                    index=session.layout.alias("records"),
                    id=record_id(workspace, namespace, key),
                    routing=workspace_key(workspace),
                    doc={"value": '{"torn'},
                )
            )

        return damage
