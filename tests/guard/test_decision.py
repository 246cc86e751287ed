"""What a host is told: deny over ask over advise, as the modes allow, and nothing of a call outside quotation marks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.guard.decision import STOPPED, CheckedRule, Finding, against_names, against_repeat, against_rules, decide
from toolmem.guard.known_names import Missing
from toolmem.guard.repeats import FailedCall, Held
from toolmem.guard.view import view_of

RULE = CheckedRule("r1", "never email Sarah", "deny", True, said_at=datetime(2026, 11, 22, tzinfo=UTC))


def finding(action: Any, mode: Any = "enforce", kind: Any = "rule") -> Finding:
    return Finding(kind, action, f"{action} it.", mode)


@pytest.mark.parametrize(
    ("findings", "action", "mode"),
    [
        ([], "allow", "enforce"),
        ([finding("deny"), finding("ask")], "deny", "enforce"),
        ([finding("ask"), finding("advise")], "ask", "enforce"),
        ([finding("deny", "advise")], "advise", "advise"),
        ([finding("deny", "shadow")], "allow", "shadow"),
        ([finding("deny", "shadow"), finding("ask")], "ask", "enforce"),
    ],
)
def test_the_strongest_source_decides_as_its_mode_allows(findings: list[Finding], action: str, mode: str) -> None:
    decision = decide("d", findings)
    assert (decision.action, decision.mode) == (action, mode)
    assert decision.stops is (action in {"ask", "deny"})


def test_a_stopped_call_is_told_who_said_what_and_when() -> None:
    decision = decide("d", against_rules([RULE], view_of("send_email", {}), "enforce"))
    assert decision.reason == (
        "toolmem: not run. The user said on 2026-11-22: never email Sarah. Leave it out, or ask them to take it back."
    )
    assert decision.as_json()["sources"] == [{"kind": "rule", "rule_id": "r1", "k": None, "n": None, "call_ids": []}]


def test_what_several_rules_have_in_common_is_said_once() -> None:
    twice = replace(RULE, id="r2")  # one sentence, kept for two classes of tools
    other = replace(RULE, id="r3", text="never write to anybody")
    decision = decide("d", against_rules([RULE, twice, other], view_of("send_email", {}), "enforce"))
    assert decision.reason == (
        "toolmem: not run. The user said on 2026-11-22: never email Sarah. "
        "The user said on 2026-11-22: never write to anybody. Leave it out, or ask them to take it back."
    )
    assert [each.rule_id for each in decision.sources] == ["r1", "r2", "r3"]


def test_advice_of_several_rules_says_what_to_do_once() -> None:
    rules = [RULE, replace(RULE, id="r2", text="never write to anybody")]
    assert decide("d", against_rules(rules, view_of("send_email", {}), "advise")).advice.count("Leave it out") == 1


def test_a_rule_without_a_condition_or_with_a_damaged_one_stops_nothing() -> None:
    view = view_of("send_email", {"to": "sarah@example.com"})
    for rule in (
        CheckedRule("a", "never email Sarah", "remind", None),
        CheckedRule("b", "never email Sarah", "deny", None),
        CheckedRule("c", "never email Sarah", "deny", {"type": 3}),
    ):
        assert against_rules([rule], view, "enforce") == []


@given(st.text(max_size=400))
def test_what_comes_from_a_call_is_one_bounded_line_inside_quotation_marks(line: str) -> None:
    held = Held(FailedCall("e", line, False, 3, times=2, call_ids=("a", "b")))
    missing = Missing("table", line, (line,), 1, (line,) * 20)
    for text in (
        decide("d", against_repeat(held, "enforce")).reason,
        decide("d", against_names([missing], "enforce")).reason,
    ):
        assert text.startswith(STOPPED)
        assert text.count("\n") == 0
        assert len(text) < 1200
        depth = 0
        for character in text:
            depth += (character == "“") - (character == "”")
            assert depth in {0, 1}
        assert depth == 0
