from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.guidance.counted.card_lines import Wording
from toolmem.guidance.counted.repairs import Repair
from toolmem.models import Claim, Guidance, Language, Subject
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.research.backtest.naming import GENERAL, kept, named
from toolmem.research.backtest.opportunities import Opportunity

COLUMN = "Unknown column … in …"


def asked(repair: Repair, error_class: str = "unknown_column", message: str = COLUMN) -> Opportunity:
    return Opportunity(0, 1, "t", error_class, message, frozenset({repair}), "c", "")


def claim(
    *repairs: Repair, error: str = COLUMN, form: str = "failed", language: Language = "", path: str = ""
) -> Claim:
    """As the data-driven writer makes it."""
    kind = "repair" if form == "repair_any" else "failure"
    shown = {"message": error, "repairs": [(repair, 3) for repair in repairs]}
    about = Subject(form=form, error="" if form == "repair_any" else error, repairs=repairs, path=path)
    made = Claim(text="", k=3, n=4, call_ids=(), kind=kind, subject=about, detail=shown)
    if form == "repair_any":
        return made.model_copy(update={"text": f"any: {[repair.path for repair in repairs]}"})
    return made.model_copy(update={"text": Wording(language).line(made)})


def guidance(*claims: Claim) -> Guidance:
    text = "\n".join(f"- {one.text}" for one in claims)
    return Guidance(text=text, claims=list(claims), author="a/b", prompt_version="1")


TO_DESCRIBE = Repair("statement", "query", "SELECT", "DESCRIBE")
REPAIRS = [
    Repair("added", "page_size"),
    Repair("dropped", "page_size"),
    Repair("changed", "page_size"),
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
def test_a_claim_names_its_own_repair_and_no_other_in_every_language(repair: Repair, language: Language) -> None:
    text = guidance(claim(repair, language=language))
    assert [other for other in REPAIRS if named(asked(other), text, 200)] == [repair]


def test_shapes_of_a_changed_value_and_what_was_there_before_need_not_agree() -> None:
    text = guidance(claim(Repair("changed", "when", "slash_date", "date"), TO_DESCRIBE))
    assert named(asked(Repair("changed", "when")), text, 200)
    assert named(asked(Repair("statement", "query", "DELETE", "DESCRIBE")), text, 200)


@pytest.mark.parametrize(
    ("error_class", "message", "known"),
    [
        ("unknown_column", "no such column: x", True),  # the class of the claim's error
        ("error", "Unknown column … where …", True),  # half of its words
        ("unknown_table", "Table … is locked", False),
        ("no_output", "", False),
    ],
)
def test_an_error_is_known_by_its_message_its_class_or_its_words(error_class: str, message: str, known: bool) -> None:
    assert named(asked(TO_DESCRIBE, error_class, message), guidance(claim(TO_DESCRIBE)), 200) is known


def test_a_failure_without_output_is_known() -> None:
    text = guidance(claim(Repair("changed", "page_size"), error=""))
    assert named(asked(Repair("changed", "page_size"), "no_output", ""), text, 200)


def test_advice_for_any_failure_counts_for_every_class_but_only_the_first_of_it_and_not_where_it_is_strict() -> None:
    claims = [claim(Repair("changed", f"param_{i}"), form="repair_any") for i in range(GENERAL + 1)]
    hits = [named(asked(Repair("changed", f"param_{i}")), guidance(*claims), 500) for i in range(GENERAL + 1)]
    assert hits == [True] * GENERAL + [False]
    assert not named(asked(Repair("changed", "param_0")), guidance(*claims), 500, strict=True)


def test_no_guidance_and_sentences_without_a_subject_name_nothing() -> None:
    told = Claim(text="After “Unknown column”: use DESCRIBE next.", k=1, n=1, call_ids=())
    assert not named(asked(TO_DESCRIBE), None, 500)
    assert not named(asked(TO_DESCRIBE), guidance(), 500)
    assert not named(asked(TO_DESCRIBE), guidance(told), 500)


def test_the_budget_cuts_whole_sentences_the_most_valuable_claim_first() -> None:
    first, second = claim(Repair("changed", "page_size")), claim(TO_DESCRIBE)
    text = guidance(second, first)
    budget = QwenTokenizer().count(f"- {second.text}")
    assert named(asked(TO_DESCRIBE), text, budget)
    assert not named(asked(Repair("changed", "page_size")), text, budget)


@given(st.lists(st.text(st.characters(exclude_categories=["C"]), max_size=80), max_size=8), st.integers(1, 60))
def test_whatever_the_claims_say_those_that_are_kept_stand_within_the_budget(texts: Sequence[str], budget: int) -> None:
    whole = guidance(*(Claim(text=text, k=1, n=1, call_ids=()) for text in texts))
    lines = {f"- {one.text}" for one in kept(whole, budget)}
    assert QwenTokenizer().count("\n".join(lines)) <= budget + len(lines)  # a line break may cost a token elsewhere
