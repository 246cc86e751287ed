"""Documents are found by words and by vectors."""

import numpy as np
import pytest

from toolmem.errors import RequestError
from toolmem.models.records import Document, EmbedderIdentity
from toolmem.store.search import embed_missing

IDENTITY = EmbedderIdentity("test", "letters", 26)


class Letters:
    """Counts letters; remembers what it was asked."""

    identity = IDENTITY

    def __init__(self):
        self.asked = []

    def embed(self, texts):
        self.asked += texts
        return np.array([[text.count(chr(97 + n)) for n in range(26)] for text in texts], "f4")


def found(store, text, vector=None, **asked):
    return [hit.key for hit in store.search("w", "n", text, vector, 5, **asked)]


@pytest.mark.parametrize("query", ['AND "( note', "邮件", "sendEmail", "email", "NOTE*", "send -"])
def test_words_are_found_whatever_the_query_looks_like(store, query):
    store.put("w", "n", "k", {}, document=Document("note: send_email 发送邮件"))
    store.put("w", "other", "k2", {}, document=Document("note: send_email 发送邮件"))
    assert found(store, query) == ["k"]


def test_a_query_without_a_word_finds_nothing(store):
    store.put("w", "n", "k", {}, document=Document("note"))
    assert found(store, '"()*-') == []
    assert found(store, "") == []


def test_a_search_can_be_limited_to_keys(store):
    for key in "abc":
        store.put("w", "n", key, {}, document=Document("note"))
    assert found(store, "note", keys=["c", "a", "none"]) == ["a", "c"]


def test_a_record_that_is_written_without_its_document_is_no_longer_found(store):
    store.put("w", "n", "k", {}, document=Document("note"))
    store.put("w", "n", "k", {"a": 1})
    assert found(store, "note") == []
    assert store.documents("w", "n", ["k"]) == {}


def test_vectors_are_made_when_a_search_first_needs_them(store):
    embedder = Letters()
    store.use_embedder(IDENTITY)
    store.put("w", "n", "1", {}, document=Document("aaab"))
    store.put("w", "n", "2", {}, document=Document("bbba"))
    assert not embedder.asked
    query = embedder.embed(["bbb"])[0]
    assert found(store, "zzz", query) == []
    assert embed_missing(store, embedder, "w", "n") == 2
    assert found(store, "zzz", query) == ["2", "1"]
    store.put("w", "n", "1", {}, document=Document("bbbb"))
    assert found(store, "zzz", query) == ["2"]
    assert embed_missing(store, embedder, "w", "n") == 1
    assert found(store, "zzz", query) == ["1", "2"]
    store.delete("w", "n", "2")
    assert found(store, "zzz", query) == ["1"]


def test_a_zero_vector_is_unranked_and_equal_ones_are_ordered_by_key(store):
    embedder = Letters()
    store.use_embedder(IDENTITY)
    for key, text in [("b", "ab"), ("a", "ab"), ("zero", "123")]:
        store.put("w", "n", key, {}, document=Document(text))
    embed_missing(store, embedder, "w", "n")
    query = embedder.embed(["ab"])[0]
    assert found(store, "", query) == ["a", "b"]
    assert found(store, "ab", np.zeros(26)) == ["a", "b"]
    (hit,) = store.search("w", "n", "123", query, 5, keys=["zero"])
    assert (hit.vector_rank, hit.text_rank) == (None, 1)


def test_vectors_of_another_embedder_are_refused_and_words_are_still_found(store):
    embedder = Letters()
    store.use_embedder(IDENTITY)
    store.put("w", "n", "k", {}, document=Document("ab"))
    embed_missing(store, embedder, "w", "n")
    other = EmbedderIdentity("test", "other letters", 26)
    (row,) = [*store.documents("w", "n", ["k"])]
    with pytest.raises(RequestError, match="another embedder"):
        store.put_vectors(other, {1: np.ones(26, "f4")})
    with pytest.raises(RequestError, match="26 finite numbers"):
        found(store, "ab", np.ones(25))
    assert row == "k"
    store.use_embedder(other)
    assert store.embedder() == other
    assert [row.text for row in store.texts_without_vector("w", "n", 5)] == ["ab"]
    assert found(store, "ab", np.ones(26)) == ["k"]


def test_a_text_is_read_back_and_its_vector_is_of_unit_length(store):
    store.use_embedder(IDENTITY)
    store.put("w", "n", "k", {}, document=Document("aab"))
    embed_missing(store, Letters(), "w", "n")
    assert store.documents("w", "n", ["k", "none"]) == {"k": Document("aab")}
    (hit,) = store.search("w", "n", "", Letters().embed(["aab"])[0], 5)
    assert hit.similarity == pytest.approx(1)
    assert store.texts_without_vector("w", "n", 5) == []
