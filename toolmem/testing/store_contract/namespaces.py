"""Keyed records: versions, namespaces, order, what is refused."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from toolmem.errors import Conflict, RequestError, StoreError
from toolmem.protocols import MemoryStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import Scenario, StoreFactory, W, document, drive, driven

NS = "tool-send_email"


class KeyedRecordsContract(Scenario):
    @pytest.fixture
    def damage_record(self) -> Callable[[MemoryStore, str, str, str], Awaitable[None]] | None:
        """`await damage(store, workspace, namespace, key)` makes a stored record unreadable. A backend's suite
        provides it where its engine lets damaged records exist.
        """
        return None

    @driven
    async def test_a_record_comes_back_as_it_was_put(self, store: MemoryStore) -> None:
        value = {"rule": "never email Sarah 绝不", "tags": ["a", 1, None, 2.5], "deep": {"flag": False}, "": "\0"}
        put = await store.put(W, NS, "rule/1", value)
        assert (put.namespace, put.key, put.value, put.version) == (NS, "rule/1", value, 1)
        assert await store.get(W, NS, "rule/1") == put
        assert await store.list(W, NS) == [put]

    def test_a_record_keeps_its_birth_and_counts_its_versions(self, store_factory: StoreFactory) -> None:
        clock = ManualClock()

        async def scenario(store: MemoryStore) -> None:
            first = await store.put(W, NS, "k", {"n": 1})
            clock.advance(1.000001)
            second = await store.put(W, NS, "k", {"n": 2})
            assert second.version == 2
            assert second.time_created == first.time_created
            assert second.time_modified - first.time_modified == timedelta(seconds=1, microseconds=1)
            assert await store.get(W, NS, "k") == second

        drive(store_factory(clock=clock), scenario)

    @driven
    async def test_an_expected_version_decides_who_wins(self, store: MemoryStore) -> None:
        await store.put(W, NS, "k", {"n": 1}, expected_version=0)
        with pytest.raises(Conflict):
            await store.put(W, NS, "k", {"n": 2}, expected_version=0)
        await store.put(W, NS, "k", {"n": 2}, expected_version=1)
        with pytest.raises(Conflict):
            await store.put(W, NS, "k", {"n": 3}, expected_version=1)
        with pytest.raises(Conflict):
            await store.put(W, NS, "other", {"n": 3}, expected_version=1)
        record = await store.get(W, NS, "k")
        assert record is not None
        assert (record.value, record.version) == ({"n": 2}, 2)
        assert await store.get(W, NS, "other") is None

    @driven
    async def test_of_many_who_create_at_once_one_wins(self, store: MemoryStore) -> None:
        puts = [store.put(W, NS, "k", {"n": n}, expected_version=0) for n in range(8)]
        outcomes = await asyncio.gather(*puts, return_exceptions=True)
        assert sum(isinstance(each, Conflict) for each in outcomes) == 7

    @driven
    async def test_increments_by_compare_and_swap_are_all_counted(self, store: MemoryStore) -> None:
        await store.put(W, NS, "k", {"n": 0})

        async def increment() -> None:
            for _ in range(5):
                while True:
                    record = await store.get(W, NS, "k")
                    assert record is not None
                    try:
                        value = {"n": record.value["n"] + 1}
                        await store.put(W, NS, "k", value, expected_version=record.version)
                        break
                    except Conflict:
                        continue

        await asyncio.gather(*(increment() for _ in range(4)))
        record = await store.get(W, NS, "k")
        assert record is not None
        assert (record.value["n"], record.version) == (20, 21)

    @driven
    async def test_keys_and_namespaces_are_exact_and_sorted(self, store: MemoryStore) -> None:
        keys = ["b", "a", "A", "rule/2", "rule/10", "漢", "with space", "%"]
        namespaces = ["tool-a", "tool-A", "tool-a,b", "工具", "tool-"]
        for namespace in namespaces:
            for key in keys:
                await store.put(W, namespace, key, {"at": [namespace, key]})
        assert await store.namespaces(W) == sorted(namespaces)
        for namespace in namespaces:
            records = await store.list(W, namespace)
            assert [record.key for record in records] == sorted(keys)
            assert [record.value["at"] for record in records] == [[namespace, key] for key in sorted(keys)]
        assert await store.list("elsewhere", "tool-a") == []
        assert await store.namespaces("elsewhere") == []
        assert await store.get("elsewhere", "tool-a", "a") is None

    @driven
    async def test_many_namespaces_are_listed_by_name_or_by_prefix(self, store: MemoryStore) -> None:
        for namespace in ("tool-b", "tool-a", "tool", "tool-\U0010ffff", "tool.x", "Tool-a"):
            for key in ("rule/2", "rule/1", "memory/1"):
                await store.put(W, namespace, key, {"at": [namespace, key]})
        await store.put("other", "tool-a", "rule/1", {"mine": False})

        async def listed(namespaces: list[str] | None, **chosen: str) -> list[list[str]]:
            records = await store.list_raw(W, namespaces, **chosen)
            for raw in records:
                record = await store.get(W, raw.namespace, raw.key)
                assert record is not None
                assert json.loads(raw.text) == record.value == {"at": [raw.namespace, raw.key]}
                born = (record.time_created - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
                assert (raw.version, raw.born) == (record.version, born)
            return [[raw.namespace, raw.key] for raw in records]

        rules = [["tool-a", "rule/1"], ["tool-a", "rule/2"], ["tool-b", "rule/1"], ["tool-b", "rule/2"]]
        last = [["tool-\U0010ffff", "rule/1"], ["tool-\U0010ffff", "rule/2"]]
        assert await listed(None, prefix="tool-", key_prefix="rule/") == rules + last
        assert await listed(["tool-b", "tool-a", "tool-b", "none"], key_prefix="rule/") == rules
        assert await listed(["tool-a"]) == [["tool-a", "memory/1"], *rules[:2]]
        assert len(await listed(None)) == 18
        assert await listed([]) == []
        assert await listed(None, prefix="tool-\U0010ffff", key_prefix="memory/1") == [["tool-\U0010ffff", "memory/1"]]
        assert await listed(None, prefix="\ud800") == []

    @driven
    async def test_a_deleted_record_is_gone_and_starts_anew(self, store: MemoryStore) -> None:
        await store.put(W, NS, "k", {"n": 1}, document=document("umbrella"))
        await store.put(W, NS, "k", {"n": 2}, document=document("umbrella"))
        assert await store.delete(W, NS, "k") is True
        assert await store.delete(W, NS, "k") is False
        assert await store.get(W, NS, "k") is None
        assert await store.namespaces(W) == []
        assert (await store.put(W, NS, "k", {"n": 3}, expected_version=0)).version == 1

    @driven
    async def test_what_is_no_json_object_is_refused_and_changes_nothing(self, store: MemoryStore) -> None:
        await store.put(W, NS, "k", {"n": 1})
        bad: list[Any] = [{"x": math.nan}, {"x": math.inf}, {"x": "\ud800"}, {"x": object()}, ["list"], "text", None]
        for value in bad:
            with pytest.raises(RequestError):
                await store.put(W, NS, "k", value)
        for namespace, key in ((NS, "\ud800"), ("\ud800", "k")):
            with pytest.raises(RequestError):
                await store.put(W, namespace, key, {})
            assert await store.get(W, namespace, key) is None
            assert await store.delete(W, namespace, key) is False
        assert [record.value for record in await store.list(W, NS)] == [{"n": 1}]

    @driven
    async def test_deleting_a_workspace_takes_its_records_and_no_others(self, store: MemoryStore) -> None:
        await store.put(W, NS, "k", {}, document=document("umbrella"))
        await store.put("other", NS, "k", {"mine": 1}, document=document("umbrella"))
        assert await store.workspaces() == ["other", W]
        await store.delete_workspace(W)
        assert await store.list(W, NS) == []
        assert await store.workspaces() == ["other"]
        assert [record.value for record in await store.list("other", NS)] == [{"mine": 1}]

    def test_a_damaged_record_never_hides_the_others(
        self,
        store_factory: StoreFactory,
        damage_record: Callable[[MemoryStore, str, str, str], Awaitable[None]] | None,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        if damage_record is None:
            pytest.skip("this backend gives no way to damage a record")

        async def scenario(store: MemoryStore) -> None:
            for key in ("a", "b", "c"):
                await store.put(W, NS, key, {"k": key})
            await damage_record(store, W, NS, "b")
            assert [record.key for record in await store.list(W, NS)] == ["a", "c"]
            raw = await store.list_raw(W, None, prefix=NS[:4])
            assert [record.key for record in raw] == ["a", "b", "c"]
            with pytest.raises(ValueError):
                json.loads(raw[1].text)
            assert "'b'" in caplog.text
            with pytest.raises(StoreError, match="damaged"):
                await store.get(W, NS, "b")
            await store.put(W, NS, "b", {"k": "new"})
            assert [record.value["k"] for record in await store.list(W, NS)] == ["a", "new", "c"]

        drive(store_factory(), scenario)
