"""What sentences are worth: one table, read from the claim alone."""

from __future__ import annotations

import pytest

from toolmem.guidance.counted.phrases import PHRASES
from toolmem.guidance.counted.worth import value
from toolmem.models import Claim, Subject


def claim(form: str, k: int = 5, n: int = 7, kind: str = "") -> Claim:
    return Claim(text="", k=k, n=n, call_ids=(), kind=kind, subject=Subject(form=form), counts={"ok": 1, "on": 9})


def test_a_repair_is_worth_more_for_its_error_than_for_any_and_more_than_the_error_itself() -> None:
    order = ["repair", "repair_any", "target_named", "error"]
    assert sorted(order, key=lambda form: -value(claim(form), 9)) == order


def test_what_was_seen_once_is_worth_less_than_what_was_seen_twice() -> None:
    assert value(claim("repair", 1, 1), 9) < value(claim("repair", 2, 2), 9)


@pytest.mark.parametrize("form", ["usage", "usage_none", "usage_optional"])
def test_what_a_tool_takes_is_worth_more_the_more_calls_fail(form: str) -> None:
    assert form in PHRASES
    assert 0 < value(claim(form, kind="usage"), 1) < value(claim(form, kind="usage"), 9)


def test_a_claim_without_data_is_worth_nothing() -> None:
    assert value(Claim(text="A line of 0.1.", k=9, n=9, call_ids=(), kind="repair"), 9) == 0.0
