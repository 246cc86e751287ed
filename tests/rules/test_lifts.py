"""Which rule a sentence takes back."""

from datetime import UTC, datetime

import pytest

from toolmem.models.rules import ToolMemoryRule
from toolmem.rules.reader import lifted

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def rule(tool_name, text):
    return ToolMemoryRule(id=text, tool_name=tool_name, rule=text, created_at=NOW, updated_at=NOW)


RULES = [
    rule("send_email", "never email Sarah"),
    rule("shell", "Never push to main"),
    rule("send_email", "Never email Bob"),
]


@pytest.mark.parametrize(
    ("message", "number"),
    [("You may email Sarah again.", 0), ("ok, pushing to main is fine again", 1)],
)
def test_a_plain_sentence_takes_back_the_rule_that_holds_all_its_words(message, number):
    assert lifted(message, RULES) is RULES[number]


@pytest.mark.parametrize(
    "message",
    [
        "can you email Sarah again?",
        "Bob says you may email Sarah again",
        "You may email Sarah this once",
        "You may email Sarah about the invoice again",
        "小王可以推送了",
        "You may email people again.",
        "> You may email Sarah again.",
    ],
)
def test_in_doubt_nothing_is_taken_back(message):
    assert lifted(message, RULES) is None
