"""Search: the two legs, their fusion, the filters, and whose vectors they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from toolmem.errors import EmbedderMismatch, RequestError
from toolmem.protocols import EmbedderIdentity, MemoryStore
from toolmem.stored import Document, Hit, Where
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import (
    TOOL,
    Scenario,
    StoreFactory,
    W,
    append,
    document,
    drive,
    driven,
    guidance,
    vector,
)

NS = "notes"
IN_NS = Where(namespace=NS)


class LetterEmbedder:
    """Counts a, b, c and all other letters: another embedder than the contract's, and another dimension."""

    identity = EmbedderIdentity("test", "letters", 5)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.array(
            [[text.count("a"), text.count("b"), text.count("c"), len(text), 1.0] for text in texts], dtype=np.float32
        )
        unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit


def keys(hits: Sequence[Hit]) -> list[str]:
    return [hit.key for hit in hits]


def cosines_of(hits: Sequence[Hit]) -> list[float]:
    """To six decimals; each hit must have one."""
    found = [hit.similarity for hit in hits if hit.similarity is not None]
    assert len(found) == len(hits)
    return [round(cosine, 6) for cosine in found]


class SearchContract(Scenario):
    async def _noted(self, store: MemoryStore, **texts: str) -> None:
        for key, text in texts.items():
            await store.put(W, NS, key, {"text": text}, document=document(text))

    # -- the text leg

    @driven
    async def test_words_find_what_holds_one_of_them(self, store: MemoryStore) -> None:
        await self._noted(store, a="red umbrella", b="blue parasol", c="a red and blue hat", d="nothing")
        assert set(keys(await store.search(W, "red parasol", None, 9, IN_NS))) == {"a", "b", "c"}
        assert keys(await store.search(W, "UMBRELLA!", None, 9, IN_NS)) == ["a"]
        assert await store.search(W, "absent", None, 9, IN_NS) == []
        (hit,) = await store.search(W, "umbrella", None, 9, IN_NS)
        assert (hit.text_rank, hit.vector_rank, hit.similarity) == (1, None, None)

    @driven
    async def test_what_holds_more_of_the_words_comes_first(self, store: MemoryStore) -> None:
        await self._noted(store, a="umbrella", b="umbrella parasol", c="something else altogether")
        assert keys(await store.search(W, "umbrella parasol", None, 9, IN_NS)) == ["b", "a"]

    @driven
    async def test_identifiers_are_found_by_their_parts_and_as_a_whole(self, store: MemoryStore) -> None:
        await self._noted(store, snake="use send_email now", camel="call sendEmail now", other="use send-letter now")
        for query in ("email", "Email", "send_email", "sendEmail"):
            assert {"snake", "camel"} <= set(keys(await store.search(W, query, None, 9, IN_NS))), query
        assert keys(await store.search(W, "send_email", None, 9, IN_NS))[-1] == "other"

    @driven
    async def test_chinese_is_found_by_its_words(self, store: MemoryStore) -> None:
        await self._noted(store, mail="用这个工具发送邮件给联系人", data="查询数据库中的表", kana="メールを送る")
        assert keys(await store.search(W, "邮件", None, 9, IN_NS)) == ["mail"]
        assert keys(await store.search(W, "怎么查询数据", None, 9, IN_NS)) == ["data"]
        assert keys(await store.search(W, "表", None, 9, IN_NS)) == ["data"]
        assert keys(await store.search(W, "メール", None, 9, IN_NS)) == ["kana"]
        assert await store.search(W, "件给表", None, 9, IN_NS) != await store.search(W, "天气", None, 9, IN_NS) == []

    @driven
    async def test_any_text_can_be_asked_for(self, store: MemoryStore) -> None:
        await self._noted(store, a='quoted "word" AND NOT (near)')
        for query in (
            '"',
            "AND",
            "a OR (b",
            "NEAR(a b)",
            "x:y",
            "*",
            "-word",
            "\0",
            "\ud800 word",
            "'; DROP",
            "^",
            "{",
        ):
            await store.search(W, query, None, 9, IN_NS)
        assert keys(await store.search(W, "\ud800 word", None, 9, IN_NS)) == ["a"]
        assert await store.search(W, "", None, 9, IN_NS) == []
        assert await store.search(W, "word " * 5000, None, 0, IN_NS) == []
        assert keys(await store.search(W, "word " * 5000, None, 1, IN_NS)) == ["a"]

    # -- the vector leg

    @driven
    async def test_similarity_is_the_cosine(self, store: MemoryStore) -> None:
        vectors = {"same": (1, 0, 0, 0), "near": (3, 4, 0, 0), "across": (0, 0, 1, 0), "against": (-1, 0, 0, 0)}
        for key, numbers in vectors.items():
            await store.put(W, NS, key, {}, document=document("x", *numbers))
        hits = await store.search(W, "", vector(1, 0, 0, 0), 9, IN_NS)
        assert [(hit.key, hit.vector_rank) for hit in hits] == [
            ("same", 1),
            ("near", 2),
            ("across", 3),
            ("against", 4),
        ]
        assert cosines_of(hits) == pytest.approx([1.0, 0.6, 0.0, -1.0], abs=2e-6)
        assert all(hit.text_rank is None for hit in hits)
        assert keys(await store.search(W, "", vector(1, 0, 0, 0), 2, IN_NS)) == ["same", "near"]

    @driven
    async def test_equal_vectors_are_ordered_by_key(self, store: MemoryStore) -> None:
        names = [f"k{n:03}" for n in range(150)]
        for name in reversed(names):
            await store.put(W, NS, name, {}, document=document("x", 1, 1, 0, 0))
        assert keys(await store.search(W, "", vector(1, 0.9, 0, 0), 7, IN_NS)) == names[:7]

    @driven
    async def test_the_nearest_are_those_of_the_plain_product(self, store: MemoryStore) -> None:
        numbers = np.random.default_rng(7).normal(size=(300, 4)).astype(np.float32)
        for i, row in enumerate(numbers):
            await store.put(W, NS, f"{i:03}", {}, document=document("x", *row.tolist()))
        query = vector(0.3, -0.2, 0.9, 0.1)
        cosines = (numbers / np.linalg.norm(numbers, axis=1, keepdims=True)).astype(np.float64) @ query
        hits = await store.search(W, "", query, 10, IN_NS)
        assert keys(hits) == [f"{i:03}" for i in np.argsort(-cosines)[:10]]
        assert cosines_of(hits) == pytest.approx(np.sort(cosines)[::-1][:10].tolist(), abs=1e-5)

    @driven
    async def test_a_zero_vector_has_no_direction(self, store: MemoryStore) -> None:
        await store.put(W, NS, "zero", {}, document=document("umbrella", 0, 0, 0, 0))
        await store.put(W, NS, "real", {}, document=document("parasol", -1, 0, 0, 0))
        hits = await store.search(W, "umbrella", vector(1, 0, 0, 0), 9, IN_NS)
        assert {hit.key: (hit.similarity, hit.vector_rank) for hit in hits} == {"zero": (0.0, None), "real": (-1.0, 1)}
        (hit,) = await store.search(W, "parasol", vector(0, 0, 0, 0), 9, IN_NS)
        assert (hit.key, hit.similarity, hit.vector_rank) == ("real", 0.0, None)

    @driven
    async def test_legs_are_fused_by_reciprocal_rank(self, store: MemoryStore) -> None:
        await store.put(W, NS, "both", {}, document=document("umbrella and more words around it", 1, 0.5, 0, 0))
        await store.put(W, NS, "text", {}, document=document("umbrella umbrella"))
        await store.put(W, NS, "vector", {}, document=document("nothing", 1, 0, 0, 0))
        hits = await store.search(W, "umbrella", vector(1, 0, 0, 0), 9, IN_NS)
        assert keys(hits) == ["both", "text", "vector"]
        assert [(hit.text_rank, hit.vector_rank) for hit in hits] == [(2, 2), (1, None), (None, 1)]
        assert [hit.score for hit in hits] == pytest.approx([2 / 62, 1 / 61, 1 / 61])

    @driven
    async def test_what_is_replaced_or_deleted_is_no_longer_found(
        self, store: MemoryStore, store_factory: StoreFactory
    ) -> None:
        other = store_factory()
        await other.open()
        try:
            for key in ("a", "b", "c"):
                await other.put(W, NS, key, {}, document=document("umbrella", 1, 0, 0, 0))
            await store.search(W, "umbrella", vector(1, 0, 0, 0), 9, IN_NS)
            await other.put(W, NS, "a", {}, document=document("parasol", 0, 1, 0, 0))
            await other.put(W, NS, "b", {})
            await other.delete(W, NS, "c")
            await other.put(W, NS, "d", {}, document=document("umbrella", 0, 0, 1, 0))
            assert keys(await store.search(W, "umbrella", None, 9, IN_NS)) == ["d"]
            hits = await store.search(W, "", vector(0, 1, 0, 0), 9, IN_NS)
            assert [(hit.key, hit.similarity) for hit in hits] == [("a", 1.0), ("d", 0.0)]
            await other.delete_workspace(W)
            assert await store.search(W, "umbrella", vector(0, 1, 0, 0), 9, IN_NS) == []
            await other.put(W, NS, "e", {}, document=document("umbrella", 0, 1, 0, 0))
            assert keys(await store.search(W, "umbrella", vector(0, 1, 0, 0), 9, IN_NS)) == ["e"]
        finally:
            await other.close()

    # -- scopes and filters

    @driven
    async def test_guidance_records_and_workspaces_are_searched_apart(self, store: MemoryStore) -> None:
        await append(store, 1)
        await append(store, 1, workspace="other")
        same = document("umbrella", 1, 0, 0, 0)
        await store.put_guidance(W, TOOL, guidance(), document=same, guidance_version=0)
        await store.put(W, NS, "k", {}, document=same)
        await store.put("other", NS, "theirs", {}, document=same)
        await store.put(W, "", "unnamed", {}, document=same)
        for text, numbers in (("umbrella", None), ("", vector(1, 0, 0, 0))):
            assert keys(await store.search(W, text, numbers, 9)) == [TOOL]
            assert keys(await store.search(W, text, numbers, 9, IN_NS)) == ["k"]
            assert keys(await store.search(W, text, numbers, 9, Where(namespace=""))) == ["unnamed"]
            assert await store.search(W, text, numbers, 9, Where(namespace="absent")) == []
            assert await store.search("other", text, numbers, 9) == []
            assert await store.search("nowhere", text, numbers, 9) == []
        (record,) = await store.records(W, [TOOL])
        await store.delete_memories(W, [record.memory_id])
        assert await store.search(W, "umbrella", vector(1, 0, 0, 0), 9) == []

    def test_filters_hold_for_both_legs(self, store_factory: StoreFactory) -> None:
        clock = ManualClock()

        async def scenario(store: MemoryStore) -> None:
            moments: dict[str, datetime] = {}
            for n, (key, value) in enumerate(VALUES.items()):
                moments[key] = clock.now()
                await store.put(W, NS, key, value, document=document("umbrella", 1, n / 10, 0, 0))
                clock.advance(1)
            for where, expected in (
                (Where(NS, keys=("b", "d", "absent", "\ud800")), {"b", "d"}),
                (Where(NS, keys=()), set()),
                (Where(NS, modified_since=moments["c"]), {"c", "d"}),
                (Where(NS, equals={"flag": True}), {"a"}),
                (Where(NS, equals={"flag": 1}), {"b"}),
                (Where(NS, equals={"tags": "x"}), {"a", "c"}),
                (Where(NS, equals={"tags": "x", "n": 3}), {"c"}),
                (Where(NS, equals={"absent": None}), set()),
                (Where(NS, equals={"n": None}), {"d"}),
                (Where(NS, keys=("a", "b"), modified_since=moments["b"], equals={"flag": 1}), {"b"}),
            ):
                by_text = await store.search(W, "umbrella", None, 9, where)
                by_vector = await store.search(W, "", vector(1, 0, 0, 0), 9, where)
                assert set(keys(by_text)) == set(keys(by_vector)) == expected, where

        drive(store_factory(clock=clock), scenario)

    @driven
    async def test_tools_are_filtered_by_name_and_have_no_fields(self, store: MemoryStore) -> None:
        for tool in ("a, b", "c"):
            await append(store, 1, tool=tool)
            await store.put_guidance(W, tool, guidance(), document=document("umbrella", 1, 0, 0, 0), guidance_version=0)
        hits = await store.search(W, "umbrella", vector(1, 0, 0, 0), 9, Where(keys=("a, b",)))
        assert keys(hits) == ["a, b"]
        with pytest.raises(RequestError, match="equals"):
            await store.search(W, "umbrella", None, 9, Where(equals={"x": 1}))

    # -- embedders

    @driven
    async def test_vectors_that_are_none_are_refused(self, store: MemoryStore) -> None:
        for numbers in ((1.0, 0.0), (math.nan, 0.0, 0.0, 0.0), (math.inf, 0.0, 0.0, 0.0)):
            bad = np.array(numbers, dtype=np.float32)
            with pytest.raises(RequestError):
                await store.search(W, "", bad, 9, IN_NS)
            with pytest.raises(RequestError):
                await store.put(W, NS, "k", {}, document=Document("x", bad))
        assert await store.get(W, NS, "k") is None

    @driven
    async def test_another_embedder_is_refused_and_told_what_to_do(
        self, store: MemoryStore, store_factory: StoreFactory
    ) -> None:
        await store.put(W, NS, "k", {}, document=document("umbrella", 1, 0, 0, 0))
        await append(store, 1)
        other = store_factory(embedder=EmbedderIdentity("test", "other axes", 4))
        await other.open()
        try:
            for attempt in (
                other.search(W, "", vector(1, 0, 0, 0), 9, IN_NS),
                other.put(W, NS, "new", {}, document=document("x", 1, 0, 0, 0)),
                other.put_guidance(W, TOOL, guidance(), document=document("x", 1, 0, 0, 0), guidance_version=0),
            ):
                with pytest.raises(EmbedderMismatch, match="toolmem store reembed"):
                    await attempt
            assert keys(await other.search(W, "umbrella", None, 9, IN_NS)) == ["k"]
            assert (await store.records(W, [TOOL]))[0].guidance is None
            assert await other.get(W, NS, "new") is None
        finally:
            await other.close()

    @driven
    async def test_reembed_takes_on_another_embedder_in_one_swap(
        self, store: MemoryStore, store_factory: StoreFactory
    ) -> None:
        await append(store, 1)
        await store.put_guidance(W, TOOL, guidance(), document=document("bbb", 1, 0, 0, 0), guidance_version=0)
        await store.put(W, NS, "a", {}, document=document("aaa", 0, 1, 0, 0))
        await store.put("other", NS, "c", {}, document=document("ccc"))
        await store.search(W, "", vector(1, 0, 0, 0), 9, IN_NS)
        embedder, steps = LetterEmbedder(), []
        other = store_factory(embedder=embedder.identity)
        await other.open()
        try:
            assert await other.reembed(embedder, lambda done, total: steps.append((done, total))) == 3
            assert steps[-1] == (3, 3)
            (b,) = await embedder.embed(["bbb"])
            (a,) = await embedder.embed(["aaa"])
            (c,) = await embedder.embed(["ccc"])
            hits = await other.search(W, "", b, 9)
            assert keys(hits) == [TOOL]
            assert cosines_of(hits) == pytest.approx([1.0])
            assert (await other.search(W, "aaa", a, 9, IN_NS))[0].similarity == pytest.approx(1.0)
            assert (await other.search("other", "", c, 9, IN_NS))[0].similarity == pytest.approx(1.0)
            with pytest.raises(EmbedderMismatch):
                await store.search(W, "", vector(1, 0, 0, 0), 9, IN_NS)
            assert (await store.info())["embedder"] == {"name": "test", "model": "letters", "dimension": 5}
        finally:
            await other.close()

    @driven
    async def test_reembed_misses_nothing_that_is_written_meanwhile(self, store: MemoryStore) -> None:
        for key in ("a", "b", "c"):
            await store.put(W, NS, key, {}, document=document("aaa", 1, 0, 0, 0))
        letters = LetterEmbedder()
        wrote = False

        class Interrupted(LetterEmbedder):
            async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
                nonlocal wrote
                if not wrote:
                    wrote = True
                    await store.put(W, NS, "b", {}, document=document("bbb", 1, 0, 0, 0))
                    await store.put(W, NS, "d", {}, document=document("ccc", 1, 0, 0, 0))
                    await store.delete(W, NS, "c")
                return await super().embed(texts)

        assert await store.reembed(Interrupted()) == 3
        for key, text in (("a", "aaa"), ("b", "bbb"), ("d", "ccc")):
            (numbers,) = await letters.embed([text])
            best = (await store.search(W, "", numbers, 9, IN_NS))[:1]
            assert keys(best) == [key]
            assert cosines_of(best) == pytest.approx([1.0])


VALUES: dict[str, dict[str, Any]] = {
    "a": {"flag": True, "tags": ["x", "y"], "n": 1},
    "b": {"flag": 1, "tags": [], "n": 2},
    "c": {"flag": False, "tags": "x", "n": 3},
    "d": {"flag": "1", "tags": ["xx"], "n": None},
}
