"""Secrets masked above any store: equal ones alike, by a key that the store keeps and no list shows."""

from __future__ import annotations

import asyncio
import json

from toolmem.protocols import MemoryStore
from toolmem.readers.secret_spans import MASK
from toolmem.store.masked import masking, store_key
from toolmem.stored import Document
from toolmem.testing.store_contract.scenario import (
    TOOL,
    Scenario,
    StoreFactory,
    W,
    append,
    call,
    driven,
    guidance,
    kept_calls,
    numbers_of,
    verdict,
)

SECRET = "hunter2!x"


class SecretsContract(Scenario):
    @driven
    async def test_no_secret_of_a_call_is_stored(self, store: MemoryStore) -> None:
        secret = call(1, input={"user": "bob", "password": SECRET}, output=f"bob:{SECRET} is unknown", id="one")
        await masking(store).append_calls(W, TOOL, [secret, call(2)], 10)
        first, second = await kept_calls(store)
        assert SECRET not in first.model_dump_json()
        assert first.input == {"user": "bob", "password": MASK.findall(first.output)[0]}
        assert (second.input, second.output) == (call(2).input, call(2).output)

    @driven
    async def test_no_secret_of_guidance_and_verdicts_is_stored(self, store: MemoryStore) -> None:
        masked = masking(store)
        await append(store, 1)
        text = f'Worked, for example: {{"password": "{SECRET}"}}'
        await masked.put_guidance(W, TOOL, guidance(text), document=Document(f"{TOOL}\n{text}"), guidance_version=0)
        told = verdict().model_copy(update={"evaluation": f"password={SECRET} was refused"})
        await masked.put_verdicts(W, {"k": told})
        await masked.update_verdicts(W, TOOL, {1: call(1).judged(told)})
        (stored,) = await store.memories(W, [TOOL], calls=True)
        documents = await store.documents(W, None, [TOOL])
        assert stored.record.guidance is not None
        shown = (
            stored.record.guidance.text,
            documents[TOOL].text,
            stored.calls[0].evaluation,
            (await store.verdicts(W, ["k"]))["k"].evaluation,
        )
        assert all(SECRET not in each and MASK.search(each) for each in shown)

    @driven
    async def test_equal_secrets_are_alike_in_all_workspaces_and_to_every_handle(
        self, store: MemoryStore, store_factory: StoreFactory
    ) -> None:
        other = store_factory()
        await other.open()
        try:
            given = [call(1, input={"password": SECRET})]
            await asyncio.gather(
                *(masking(each).append_calls(f"w{n}", TOOL, given, 10) for n, each in enumerate((store, other) * 4))
            )
            stored = [await kept_calls(store, workspace=f"w{n}") for n in range(8)]
            assert len({json.dumps(kept[0].input) for kept in stored}) == 1
            assert await store_key(store) == await store_key(other)
        finally:
            await other.close()

    @driven
    async def test_the_key_is_in_no_list_and_outlives_every_workspace(self, store: MemoryStore) -> None:
        masked = masking(store)
        await masked.append_calls(W, TOOL, [call(1, input={"password": SECRET})], 10)
        assert await store.workspaces() == [W]
        assert list((await store.info())["workspaces"]) == [W]
        assert await store.namespaces(W) == []
        (before,) = await kept_calls(store)
        await masked.delete_workspace(W)
        assert await store.workspaces() == []
        await masking(store).append_calls(W, TOOL, [call(1, input={"password": SECRET})], 10)
        (after,) = await kept_calls(store)
        assert before.input == after.input

    @driven
    async def test_a_store_without_secrets_has_no_key(self, store: MemoryStore) -> None:
        masked = masking(store)
        await append(masked, 1, 2)
        await masked.put_verdicts(W, {"k": verdict()})
        assert numbers_of(await kept_calls(masked)) == [1, 2]
        assert await store.get(".store", "secrets", "key") is None
