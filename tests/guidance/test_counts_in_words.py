"""Counts in sentences of guidance: one call, two calls."""

from __future__ import annotations

import re
from string import Formatter

import pytest

from toolmem.guidance.counted.phrases import PHRASES
from toolmem.guidance.counted.render import Wording, sentence
from toolmem.models import Claim, Subject

EVERY = {name for english, _ in PHRASES.values() for _, name, _, _ in Formatter().parse(english) if name}


@pytest.mark.parametrize("key", PHRASES)
def test_one_is_never_said_of_several(key):
    said = Wording().say(key, **dict.fromkeys(EVERY, 1))
    assert not re.search(
        r"\b1 (calls|failures|repeats|recoveries|errors|answers|cases|comparisons|working calls)\b", said
    ), said


def test_a_count_takes_its_noun():
    say = Wording()
    rates = {"rate": "9%", "low": "1%", "high": "20%", "extras": ""}
    assert say.say("overall", k=0, n=1, **rates).startswith("0 of 1 call worked")
    assert say.say("overall", k=0, n=12, **rates).startswith("0 of 12 calls worked")
    assert "1 次调用" in Wording("zh").say("overall", k=0, n=1, **rates)


@pytest.mark.parametrize("n", [1, 2])
def test_a_sentence_takes_the_nouns_of_its_counts(n):
    one = Claim(
        text="", kind="error_class", k=1, n=n, call_ids=("a",), subject=Subject(form="error"), detail={"label": "no"}
    )
    assert sentence(one, Wording()) == f"“no”: 1 of {'1 failure' if n == 1 else '2 failures'}."
