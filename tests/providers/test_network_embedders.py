"""Remote embedders against the loopback server: batches, order, unit length, the same errors as chat models."""

import asyncio
import gc
import json

import numpy as np
import pytest
from pydantic import SecretStr

from toolmem.config.settings import EmbeddingParams, EmbeddingSettings, Price
from toolmem.errors import ConfigError, ModelDenied, ModelError, ModelUnreachable, ReplyBroken
from toolmem.flow.runner import SystemClock
from toolmem.protocols import EmbedderIdentity
from toolmem.providers.budget import Budget
from toolmem.providers.dashscope import DashScopeEmbedder
from toolmem.providers.hashing import HashingEmbedder
from toolmem.providers.openai_compatible import OpenAICompatibleEmbedder
from toolmem.providers.prices import PriceTable
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.testing.model_script import FAULTS, PASSING, Behaviour, Rule, Script
from toolmem.testing.model_server import ModelServer

pytestmark = pytest.mark.filterwarnings("error")

EMBEDDERS = {"dashscope": DashScopeEmbedder, "openai_compatible": OpenAICompatibleEmbedder}
TEXTS = ["send an email", "", "发送电子邮件", "   ", "read a file", "a\ud800b"]


class Book:
    def __init__(self):
        self.entries = []

    def book(self, entry):
        self.entries.append(entry)


@pytest.fixture(params=list(EMBEDDERS))
def backend(request):
    return request.param


@pytest.fixture
def make(backend):
    def make_embedder(server, *, model="text-embedding-v4", meter=None, price=None, budget=None, **params):
        url = server.dashscope_url if backend == "dashscope" else server.openai_url
        return EMBEDDERS[backend](
            EmbeddingSettings(
                backend=backend,
                model_name=model,
                params=EmbeddingParams(base_url=url, api_key=SecretStr("sk-secret-of-mine"), **params),
            ),
            tokenizer=QwenTokenizer(),
            clock=SystemClock(),
            meter=meter,
            workspace="w",
            price=price,
            budget=budget,
            first_pause=0.01,
        )

    return make_embedder


async def test_rows_are_of_unit_length_in_order_and_blank_texts_are_zero_rows_unsent(make, backend):
    with ModelServer() as server:
        embedder = make(server, dimensions=64)
        assert embedder.identity == EmbedderIdentity(backend, "text-embedding-v4", 64)
        vectors = await embedder.embed(TEXTS)
        await embedder.close()
    assert (vectors.shape, vectors.dtype) == ((6, 64), np.float32)
    expected = HashingEmbedder(64).vectors([text.replace("\ud800", "\ufffd") for text in TEXTS])
    assert np.allclose(vectors, expected, atol=1e-6)
    assert np.allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1, 0, 1, 1], atol=1e-6)
    assert server.requests[0].texts == ["send an email", "发送电子邮件", "read a file", "a\ufffdb"]


async def test_texts_go_out_in_batches_within_the_cap(make):
    texts = [f"text number {number}" for number in range(25)]
    with ModelServer(Script(latency=0.02)) as server:
        embedder = make(server, dimensions=32, max_batch_size=4, max_concurrency=2)
        vectors = await embedder.embed(texts)
        await embedder.close()
    assert sorted(len(request.texts) for request in server.requests) == [1, 4, 4, 4, 4, 4, 4]
    assert server.most_in_flight == 2
    assert np.allclose(vectors, HashingEmbedder(32).vectors(texts), atol=1e-6)


async def test_nothing_to_embed_asks_nobody(make):
    with ModelServer() as server:
        embedder = make(server)
        assert (await embedder.embed([])).shape == (0, 1024)
        assert (await embedder.embed(["", " "])).shape == (2, 1024)
        await embedder.close()
    assert server.requests == []


async def test_dimensions_are_sent_only_where_they_are_configured(make, backend):
    with ModelServer() as server:
        for params in ({}, {"dimensions": 128}):
            embedder = make(server, **params)
            assert (await embedder.embed(["text"])).shape == (1, params.get("dimensions", 1024))
            await embedder.close()
    sent = [request.body["parameters"] if backend == "dashscope" else request.body for request in server.requests]
    name = "dimension" if backend == "dashscope" else "dimensions"
    assert [body.get(name) for body in sent] == [None, 128]


async def test_every_request_is_booked(make, backend):
    book, prices = Book(), PriceTable({"text-embedding-v4": Price(input=0.5)})
    with ModelServer(Script([Rule(FAULTS["unavailable"], nth=(1,))])) as server:
        embedder = make(server, dimensions=16, meter=book, price=prices)
        await embedder.embed(["one two three", "four five"])
        await embedder.close()
    failed, entry = book.entries
    assert (failed.outcome, failed.prompt_tokens) == ("error: ModelOverloaded", 0)
    assert (entry.workspace, entry.op, entry.backend, entry.outcome) == ("w", "embedding", backend, "ok")
    assert (entry.prompt_tokens, entry.completion_tokens, entry.estimated) == (5, 0, False)
    assert (entry.cost, entry.currency) == (pytest.approx(0.0025), "CNY")


@pytest.mark.parametrize("fault", [fault for fault in PASSING if fault not in ("empty", "truncated")])
async def test_what_may_pass_is_tried_again(fault, make):
    texts = [f"text {number}" for number in range(6)]
    with ModelServer(Script.failing(fault, every=2)) as server:
        embedder = make(server, dimensions=16, max_batch_size=2, timeout=0.3 if fault == "hang" else 5.0)
        vectors = await embedder.embed(texts)
        await embedder.close()
    assert np.allclose(vectors, HashingEmbedder(16).vectors(texts), atol=1e-6)
    assert len(server.requests) > 3


async def test_a_denial_ends_it_at_the_first_request_without_the_key_in_the_error(make):
    with ModelServer(Script(key="another")) as server:
        embedder = make(server, max_batch_size=1)
        with pytest.raises(ModelDenied) as caught:
            await embedder.embed(["a", "b", "c"])
        await embedder.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}
    assert len(server.requests) == 1
    assert caught.value.fatal
    assert "sk-secret" not in f"{caught.value} {caught.value!r} {embedder!r}"


async def test_a_hang_is_a_timeout(make):
    with ModelServer(Script.failing("hang")) as server:
        embedder = make(server, timeout=0.1, max_retries=0)
        with pytest.raises(ModelUnreachable, match=r"within 0\.1 s"):
            await embedder.embed(["a"])
        await embedder.close()


async def test_the_budget_holds_embeddings_too(make):
    with ModelServer() as server:
        embedder = make(server, dimensions=16, budget=Budget(max_tokens=2))
        await embedder.embed(["one two"])
        with pytest.raises(ModelError, match=r"budget\.max_tokens"):
            await embedder.embed(["three"])
        await embedder.close()
    assert len(server.requests) == 1


def answer(backend, vectors, indexes=None):
    names = ("text_index", "embeddings") if backend == "dashscope" else ("index", "data")
    indexes = range(len(vectors)) if indexes is None else indexes
    items = [{names[0]: index, "embedding": vector} for index, vector in zip(indexes, vectors, strict=True)]
    body = {"output": {names[1]: items}} if backend == "dashscope" else {names[1]: items}
    return Script([Rule(Behaviour(body=json.dumps(body).encode()))])


async def test_vectors_in_another_order_find_their_texts(make, backend):
    with ModelServer(answer(backend, [[0, 2], [3, 0]], indexes=[1, 0])) as server:
        embedder = make(server, dimensions=2)
        assert (await embedder.embed(["a", "b"])).tolist() == [[1, 0], [0, 1]]
        await embedder.close()


async def test_vectors_of_another_length_are_refused_and_the_setting_is_named(make, backend):
    with ModelServer(answer(backend, [[1.0, 2.0, 3.0]])) as server:
        embedder = make(server, dimensions=4)
        with pytest.raises(ReplyBroken, match=r"3 numbers, expected 4; set embedding_model\.default") as caught:
            await embedder.embed(["a"])
        await embedder.close()
    assert caught.value.fatal
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("vectors", "indexes"),
    [
        ([[1, 2]], None),
        ([[1, 2], [1, 2]], [0, 0]),
        ([[1, 2], "x"], None),
        ([[0, 0], [1, 2]], None),
        ([[1e999, 1]] * 2, None),
    ],
    ids=["missing", "doubled", "no vector", "zero", "infinite"],
)
async def test_vectors_that_cannot_be_used_are_broken_replies(vectors, indexes, make, backend):
    with ModelServer(answer(backend, vectors, indexes)) as server:
        embedder = make(server, dimensions=2, max_retries=0)
        with pytest.raises(ReplyBroken):
            await embedder.embed(["a", "b"])
        await embedder.close()


def test_an_embedder_outlives_its_event_loops(make):
    with ModelServer() as server:
        embedder = make(server, dimensions=16, max_batch_size=1)
        for _ in range(2):
            asyncio.run(embedder.embed(["a", "b", "c"]))
        gc.collect()
    assert len(server.requests) == 6


def test_unknown_dimensions_and_a_missing_key_are_configuration_errors():
    clock, tokenizer = SystemClock(), QwenTokenizer()
    with pytest.raises(ConfigError, match=r"DASHSCOPE_API_KEY(.|\n)*embedding_model\.mine\.params\.api_key"):
        DashScopeEmbedder(EmbeddingSettings(), tokenizer=tokenizer, clock=clock, setting="embedding_model.mine")
    settings = EmbeddingSettings(model_name="bge-m3", params=EmbeddingParams(api_key=SecretStr("k")))
    with pytest.raises(ConfigError, match=r"embedding_model\.default\.params\.dimensions"):
        OpenAICompatibleEmbedder(settings, tokenizer=tokenizer, clock=clock)
