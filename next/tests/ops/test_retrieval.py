"""Tools found by what is asked, with the packaged encoder and without."""

import pytest

from toolmem import ToolMem
from toolmem.config.sections import OpSection
from toolmem.errors import ModelError, RequestError
from toolmem.llm.hashing import HashingEmbedder
from toolmem.ops import retrieval

TOOLS = {
    "send_email": "Deliver a message to somebody's mailbox.",
    "restart_service": "Stop a server process and start it again.",
    "get_weather": "Temperature, rain and wind at a place.",
    "convert_currency": "How much an amount of money is in another currency.",
}


@pytest.fixture
def filled(memory):
    schemas = [
        {"name": name, "description": text, "parameters": {}} for name, text in TOOLS.items()
    ]
    calls = [{"tool_name": name, "input": {}, "output": "done"} for name in TOOLS]
    memory.add(calls, tools=schemas)
    return memory


def best(memory, query, **request):
    return [each.when_to_use for each in memory.retrieve(query, **request).memory_list]


def test_a_query_finds_a_tool_whose_words_it_does_not_share(filled):
    assert best(filled, "bounce nginx", top_k=1) == ["restart_service"]
    assert best(filled, "今天会下雨吗", top_k=1) == ["get_weather"]
    assert best(filled, "how many yen are ten euros", top_k=1) == ["convert_currency"]
    assert len(best(filled, "bounce nginx", top_k=3)) == 3


def test_a_query_ranks_among_the_tools_that_are_named(filled):
    assert best(filled, "bounce nginx", tool_names=["get_weather", "send_email"])[-1:] != []
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


def test_another_embedder_makes_the_vectors_anew(path, records):
    for dimension in (64, 96):
        with ToolMem(path, embedders={"default": HashingEmbedder(dimension)}) as memory:
            memory.add(records(1))
            memory.summarize()
            assert best(memory, "search") == ["search"]


def test_top_k_is_a_number_of_at_least_one(filled):
    with pytest.raises(RequestError, match="top_k"):
        filled.retrieve("rain", top_k=0)


def test_hashed_ngrams_find_what_is_spelled_alike():
    embedder = HashingEmbedder()
    send, letter, weather, empty = embedder.embed(
        ["sendEmail", "sending e-mails", "get_weather", "!"]
    )
    assert send @ letter > 0.3 > send @ weather
    assert not empty.any()
