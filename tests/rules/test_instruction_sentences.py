"""Sentences stay whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.rules.capture.pasted import MASK, mask_pasted
from toolmem.sentences.split_text import Sentence, split_message


def sentences(message: str) -> list[Sentence]:
    return list(split_message(message, mask_pasted))


def texts(message: str) -> list[str]:
    return [sentence.text for sentence in sentences(message)]


@pytest.mark.parametrize(
    "sentence",
    [
        "never email Sarah at sarah@example.com",
        "do not use v2.3.1 of the API",
        "never write to /etc/nginx/nginx.conf",
        "only call https://api.example.com/v1?x=1.5&y=2 please",
        "never pay more than 1,240.50 EUR",
        "ask Dr. Smith, e.g. by mail, before you book",
        "never call before 8 a.m. on Mondays",
        "no files that end in .lock",
        "send it to J. Smith",
        "永远不要给 sarah@example.com 发邮件",
        "不要用 v2.3.1",
    ],
)
def test_dots_inside_a_sentence_do_not_end_it(sentence: str) -> None:
    assert texts(f"Well then. {sentence}. Thanks!") == ["Well then.", f"{sentence}.", "Thanks!"]
    assert texts(f"好的。{sentence}。谢谢！") == ["好的。", f"{sentence}。", "谢谢！"]


def test_each_mark_ends_a_sentence() -> None:
    assert texts("One. Two! Three? Four\nFive。六！七？八") == [
        "One.",
        "Two!",
        "Three?",
        "Four",
        "Five。",
        "六！",
        "七？",
        "八",
    ]


def test_bullets_and_numbers_are_left_off() -> None:
    assert texts("- never push\n* stop it\n1. one\n2) two\n• three") == ["never push", "stop it", "one", "two", "three"]


def test_a_line_that_was_wrapped_goes_on() -> None:
    message = "Please never send any mail to the people of the\naccounting department without asking.\nThanks"
    assert texts(message) == [
        "Please never send any mail to the people of the\naccounting department without asking.",
        "Thanks",
    ]


def test_questions_are_marked() -> None:
    assert [sentence.question for sentence in sentences("Why? Go. 好吗？ Really?! ok? 😊")] == [
        True,
        False,
        True,
        True,
        True,
    ]


@given(st.text(max_size=300))
def test_masking_keeps_every_position_and_line_break(message: str) -> None:
    masked = mask_pasted(message)
    assert len(masked) == len(message)
    assert all(now in (before, MASK) for before, now in zip(message, masked, strict=True))
    assert [i for i, c in enumerate(message) if c == "\n"] == [i for i, c in enumerate(masked) if c == "\n"]


@given(st.text(alphabet=st.sampled_from("ab .!?\n@/'\"“”。，>-`别不要"), max_size=200))
def test_sentences_are_parts_of_the_message_in_order(message: str) -> None:
    position = 0
    for sentence in sentences(message):
        assert len(sentence.text) == len(sentence.masked)
        position = message.index(sentence.text, position) + len(sentence.text)
