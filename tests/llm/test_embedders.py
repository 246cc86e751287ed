"""Remote embedders over HTTP, in both protocols."""

import numpy as np
import pytest

from toolmem import ToolMem
from toolmem.config.sections import OpSection
from toolmem.errors import ConfigError, ModelError
from toolmem.models.calls import with_all_fields
from toolmem.operations.results import Ledger
from toolmem.testing.faults import Fault
from toolmem.testing.model_server import ModelServer


@pytest.fixture(params=["openai_compatible", "dashscope"])
def opened(request, path):
    """A memory whose embedder is a server on this machine."""

    def make(server, *more):
        openai = request.param == "openai_compatible"
        url = server.openai_url if openai else server.dashscope_url
        section = "embedding_model.default."
        return ToolMem(
            path,
            overrides=[
                f"{section}backend={request.param}",
                f"{section}model_name=text-embedding-v4",
                f"{section}params.base_url={url}",
                f"{section}params.api_key=k",
                f"{section}params.dimensions=64",
                *more,
            ],
        )

    return make


def test_texts_go_out_in_batches_and_come_back_in_order_as_unit_rows(opened):
    with ModelServer() as server, opened(server) as memory:
        embedder = memory.services.embedder(OpSection())
        texts = [f"text {n}" for n in range(23)] + ["  "]
        rows = embedder.embed(texts)
        assert sorted(len(asked.texts) for asked in server.requests) == [3, 10, 10]
        assert np.allclose(np.linalg.norm(rows[:23], axis=1), 1)
        assert not rows[23].any()
        assert np.allclose(rows[7], embedder.embed(["text 7"])[0])
        assert embedder.identity.dimension == 64


def test_a_query_by_a_remote_embedder_is_in_the_ledger(opened, records):
    with ModelServer() as server, opened(server) as memory:
        memory.add(records(1))
        memory.summarize()
        found = memory.retrieve("search")
        assert [each.when_to_use for each in found.memory_list] == ["search"]
        rows = memory.ledger()
        assert {(row.op, row.outcome) for row in rows} == {("retrieve_tool_memory_op", "ok")}
        assert len(rows) == len(server.requests)
        assert list(rows.to_frame()["prompt_tokens"]) == [row.prompt_tokens for row in rows]
        assert memory.ledger(newest=1) == rows[-1:]
        assert Ledger.read(Ledger, with_all_fields(rows)) == rows  # as a client reads it


@pytest.mark.parametrize(
    ("fault", "told"),
    [("unauthorized", "is the key right"), ("broken_json", "tokens|no JSON|SDK"), ("cut", "cut")],
)
def test_an_embedder_that_fails_says_why(opened, fault, told):
    once = "embedding_model.default.params.max_retries=0"
    with ModelServer([Fault(fault)]) as server, opened(server, once) as memory:
        embedder = memory.services.embedder(OpSection())
        with pytest.raises(ModelError, match=told):
            embedder.embed(["a"])


def test_vectors_of_another_length_are_refused(path):
    with ModelServer() as server:
        section = "embedding_model.default."
        overrides = [
            f"{section}backend=openai_compatible",
            f"{section}params.base_url={server.openai_url}",
            f"{section}model_name=text-embedding-v2",
        ]
        with ToolMem(path, overrides=overrides) as memory:
            embedder = memory.services.embedder(OpSection())
            with pytest.raises(ModelError, match="vectors of 1024 numbers, expected 1536"):
                embedder.embed(["a"])
        unknown = [*overrides[:2], f"{section}model_name=mine"]
        with (
            ToolMem(path, overrides=unknown) as memory,
            pytest.raises(ConfigError, match="dimensions: missing"),
        ):
            memory.services.embedder(OpSection())
