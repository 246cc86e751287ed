from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.guidance.counted.render import Wording, quoted
from toolmem.guidance.counted.repairs import Repair
from toolmem.models import Claim, Guidance, Language
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.readers.error_classes import ERROR_CLASSES
from toolmem.research.backtest.opportunities import Opportunity
from toolmem.research.backtest.reading import GENERIC_UNITS, Reading, named, read_within
from toolmem.research.backtest.vocabulary import CLASS_PHRASES

COLUMN = "Unknown column … in …"


def asked(repair: Repair, error_class: str = "unknown_column", message: str = COLUMN) -> Opportunity:
    return Opportunity(0, 1, "t", error_class, message, frozenset({repair}), "c", "")


TO_DESCRIBE = Repair("statement", "query", "SELECT", "DESCRIBE")
REPAIRS = [
    Repair("added", "page_size"),
    Repair("dropped", "page_size"),
    Repair("changed", "page_size"),
    Repair("changed", "when", "slash_date", "date"),
    Repair("renamed", "recipients", "to_address"),
    TO_DESCRIBE,
    Repair("statement", "query", "", "SHOW"),
    Repair("program", "command", "cat", "ls"),
    Repair("action", "command", "edit", "view"),
    Repair("tables", "query", "SELECT", "SELECT"),
    Repair("names", "query", "SELECT", "SELECT"),
    Repair("clause_added", "query", "SELECT", "GROUP BY"),
    Repair("clause_dropped", "query", "SELECT", "a subquery"),
    Repair("flag_added", "command", "grep", "grep -r"),
    Repair("flag_dropped", "command", "tail", "tail -f"),
    Repair("arguments", "command", "find", "find"),
    Repair("rewritten", "query", "SELECT"),
    Repair("repeated", ""),
]


@pytest.mark.parametrize("language", ["", "zh"])
@pytest.mark.parametrize("repair", REPAIRS, ids=lambda repair: f"{repair.kind}-{repair.path}")
def test_every_kind_of_repair_is_read_from_the_writers_own_sentences(repair: Repair, language: Language) -> None:
    say = Wording(language)
    text = "- " + say.say("repair", error=quoted("Unknown column '…' in '…'"), repair=say.repair(repair), k=3, n=4)
    others = [other for other in REPAIRS if other.kind != repair.kind or other.path != repair.path]
    assert named(asked(repair), text, 200)
    confused = {other.kind for other in others if named(asked(other), text, 200)}
    assert confused <= {"changed", "tables", "names", "arguments", "dropped", "added"}
    assert len(confused) <= 3


@pytest.mark.parametrize(
    ("text", "repair"),
    [
        ("If you get “Unknown column”, run DESCRIBE on the table first.", TO_DESCRIBE),
        ("Unknown column errors: SELECT -> DESCRIBE.", TO_DESCRIBE),
        ("遇到未知列时，先执行 DESCRIBE 查看表结构。", TO_DESCRIBE),
        ("When a column does not exist, check the column names and correct them.", Repair("names", "query", "SELECT")),
        ("On an unknown column, always pass the `page_size` parameter.", Repair("added", "page_size")),
        ("Unknown column: do not pass page size.", Repair("dropped", "page_size")),
        ("### Unknown column\n- Try again with a different `page_size`.", Repair("changed", "page_size")),
    ],
)
def test_a_repair_is_read_from_a_models_words(text: str, repair: Repair) -> None:
    assert named(asked(repair), text, 200)


@pytest.mark.parametrize(
    ("text", "repair"),
    [
        ("After “Table 'x' is locked”: use DESCRIBE next.", TO_DESCRIBE),  # another error
        ("Unknown column errors are frequent.", TO_DESCRIBE),  # no repair
        ("After “Unknown column”: keep the DESCRIBE, change its columns.", TO_DESCRIBE),
        ("After “Unknown column”: use SHOW next, not another DESCRIBE.", TO_DESCRIBE),
        ("After “Unknown column”: do not send the same call again.", Repair("repeated", "")),
        ("出现 “Unknown column” 之后：不要原样重发。", Repair("repeated", "")),
        ("After “Unknown column”: send it to somebody and change the table.", Repair("changed", "to")),  # a plain word
    ],
)
def test_what_is_not_said_is_not_read(text: str, repair: Repair) -> None:
    assert not named(asked(repair), text, 200)


def test_a_message_without_a_class_is_known_by_its_words() -> None:
    one = asked(Repair("changed", "genre"), "error", "genre must be an integer: …")
    assert named(one, "- “genre must be an integer”: change `genre` to its number.", 100)
    assert not named(one, "- “services must be a list”: change `genre` to its number.", 100)


def test_advice_for_any_failure_counts_for_every_class_but_only_the_first_of_it() -> None:
    lines = [f"- After any failure: change `param_{i}`." for i in range(GENERIC_UNITS + 1)]
    reading = Reading("\n".join(lines))
    hits = [reading.names(asked(Repair("changed", f"param_{i}"))) for i in range(GENERIC_UNITS + 1)]
    assert hits == [True] * GENERIC_UNITS + [False]


def test_one_long_sentence_about_any_failure_names_nothing() -> None:
    everything = ", ".join(f"change `param_{i}`" for i in range(30))
    assert not named(asked(Repair("changed", "param_0")), f"- After any failure: {everything}.", 1000)


def test_no_guidance_names_nothing() -> None:
    assert not named(asked(TO_DESCRIBE), None, 500)
    assert not named(asked(TO_DESCRIBE), "", 500)


def test_the_budget_cuts_whole_sentences_the_most_valuable_claim_first() -> None:
    first, second = (f"After “Unknown column”: {what}." for what in ("change `page_size`", "use DESCRIBE next"))
    claims = [Claim(text=text, k=1, n=1, call_ids=()) for text in (second, first)]
    guidance = Guidance(text=f"- {first}\n- {second}", claims=claims, author="a/b", prompt_version="1")
    budget = QwenTokenizer().count(f"- {second}")
    assert read_within(guidance, budget).text == f"- {second}"
    assert named(asked(TO_DESCRIBE), guidance, budget)
    assert not named(asked(Repair("changed", "page_size")), guidance, budget)


def test_a_paragraph_is_cut_between_its_sentences() -> None:
    text = "Unknown column: use DESCRIBE. It lists columns. " + "Nothing else is known. " * 30
    assert named(asked(TO_DESCRIBE), text, 40)


@given(st.text(max_size=400), st.integers(1, 60))
def test_whatever_the_text_is_it_is_read_within_the_budget(text: str, budget: int) -> None:
    reading = read_within(text, budget)
    assert QwenTokenizer().count(reading.text) <= budget
    for repair in REPAIRS:
        assert reading.names(asked(repair)) in (True, False)


def test_every_class_of_error_has_phrases_in_both_languages() -> None:
    assert set(CLASS_PHRASES) == (set(ERROR_CLASSES) - {"error"}) | {"no_output"}
    for phrases in CLASS_PHRASES.values():
        assert any(phrase.isascii() for phrase in phrases)
        assert any("\u4e00" <= phrase[0] <= "\u9fff" for phrase in phrases)
