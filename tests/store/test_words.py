"""How texts become words, for both sides of the text leg."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.store.words import MAX_QUERY_WORDS, MAX_WORD_CHARACTERS, index_words, query_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Send an e-mail!", ["send", "an", "e", "mail"]),
        ("send_email", ["sendemail", "send", "email"]),
        ("sendEmailToHTTPServer2", ["sendemailtohttpserver2", "send", "email", "to", "http", "server2"]),
        ("__init__", ["init"]),
        ("Café ÀÉÎ ﬁle Straße", ["cafe", "aei", "file", "strasse"]),
        ("发送邮件", ["发送", "送邮", "邮件", "发", "送", "邮", "件"]),
        ("用API发", ["用", "api", "发"]),
        ("メール", ["メー", "ール", "メ", "ー", "ル"]),
        ("пришлёт", ["пришлет"]),
        ("... --- !!!", []),
    ],
)
def test_texts_are_indexed_under_these_words(text: str, words: list[str]):
    assert index_words(text) == words


def test_a_query_asks_for_pairs_and_for_single_characters_only_where_there_is_but_one():
    assert query_words("发送邮件 表") == ["发送", "送邮", "邮件", "表"]


def test_a_query_asks_for_each_word_once_and_not_for_too_many():
    assert query_words("red RED Red blue") == ["red", "blue"]
    assert len(query_words(" ".join(f"w{n}" for n in range(1000)))) == MAX_QUERY_WORDS


def test_a_word_without_end_is_cut():
    assert index_words("x" * 10_000) == ["x" * MAX_WORD_CHARACTERS]


@given(st.text(max_size=60))
def test_every_word_of_a_query_is_a_word_of_the_same_text_indexed(text: str):
    assert set(query_words(text)) <= set(index_words(text))


@given(st.text(max_size=60))
def test_words_hold_no_spaces_and_are_never_empty(text: str):
    assert all(word and not word.isspace() and " " not in word for word in index_words(text))


@given(st.text(max_size=30), st.text(max_size=30))
def test_words_of_two_texts_do_not_run_together(one: str, other: str):
    assert index_words(f"{one} . {other}") == index_words(one) + index_words(other)
