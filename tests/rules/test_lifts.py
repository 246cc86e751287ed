"""Which rule a sentence takes back."""

from datetime import UTC, datetime

import pytest

from toolmem.models.rules import ToolMemoryRule
from toolmem.rules.reader import lifted, lifts, possibly_lifted, too_long
from toolmem.rules.reader.own_text import MAX_SENTENCE

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def rule(tool_name, text):
    return ToolMemoryRule(id=text, tool_name=tool_name, rule=text, created_at=NOW, updated_at=NOW)


RULES = [
    rule("send_email", "never email Sarah"),
    rule("shell", "Never push to main"),
    rule("send_email", "Never email Bob"),
    rule("send_email", "不要给莎拉发邮件"),
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
        "From: bob\nYou may email Sarah again.",
        "Subject: mails\n\nYou may email Sarah again.",
        "Re: mails\n\nYou may email Sarah again.",
        "Betreff: Mails\nYou may email Sarah again.",
        "转发：\nYou may email Sarah again.",
        "You may email Sarah this once",
        "You may email Sarah about the invoice again",
        "小王可以推送了",
        "You may email people again.",
        "> You may email Sarah again.",
    ],
)
def test_in_doubt_nothing_is_taken_back(message):
    assert lifted(message, RULES) is None


@pytest.mark.parametrize(
    "message",
    [
        "You can't push to main again.",
        "You can’t push to main any more.",
        "You cannot push to main again.",
        "You can no longer push to main.",
        "You aren't allowed to push to main again.",
        "Pushing to main isn't ok again.",
        "不可以再给莎拉发邮件",
        "以后也不能给莎拉发邮件了",
    ],
)
def test_a_sentence_that_forbids_a_thing_again_takes_no_ban_back(message):
    assert lifted(message, RULES) is None
    assert possibly_lifted(message, RULES) is None


def test_a_sentence_that_takes_back_what_was_forbidden_still_does():
    found = possibly_lifted("The ban that you cannot push to main is lifted.", RULES)
    assert found is not None
    assert found[0] is RULES[1]


@pytest.mark.parametrize(
    ("message", "number"),
    [
        ("Sarah is back, so you can mail her again", 0),
        ("the ban on mails to Bob is history", 2),
        ("Main is no longer protected, push as you like.", 1),
        ("Fine. Undo the thing about Sarah, please.", 0),
        ("莎拉的限制取消了", 3),
    ],
)
def test_other_words_leave_a_doubt_about_the_rule_that_shares_most_of_them(message, number):
    assert lifted(message, RULES) is None
    found = possibly_lifted(message, RULES)
    assert found is not None
    assert found[0] is RULES[number]


@pytest.mark.parametrize(
    "message",
    [
        "Never email Sarah again.",
        "is Sarah back again?",
        "if Sarah is back you can email her again",
        "she says you can email Sarah again",
        "> Sarah can get mails again",
        "run the tests again",
        "you can email them again",
        "Bob said you can push to main again",
        "you may email Mallory again",
        "Raise an alarm at Sarah's, please",
        "可以重新给小王发邮件了",
    ],
)
def test_a_demand_a_question_a_report_and_other_matters_leave_none(message):
    assert possibly_lifted(message, RULES) is None


@pytest.mark.parametrize("sign", [*".?:;\"'#<$€«：,+«《\ue000/「，‘=(@”…", "不要", "never "])
def test_no_pattern_searches_a_long_sentence(sign, monkeypatch):
    sizes = []

    class Spy:
        def __init__(self, pattern):
            self.pattern = pattern

        def search(self, text):
            sizes.append(len(text))
            return self.pattern.search(text)

    for name in ("_PERMISSION", "_ZH_PERMISSION", "_FOR_GOOD", "_MAY_LIFT"):
        monkeypatch.setattr(lifts, name, Spy(getattr(lifts, name)))
    message = sign * 20_000 + "x"
    assert lifted(message, RULES) is possibly_lifted(message, RULES) is None
    too_long(message)
    assert max(sizes, default=0) <= MAX_SENTENCE
