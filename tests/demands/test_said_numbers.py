"""Numbers and times that a demand says count as said, however they are written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem import AsyncToolMem
from toolmem.demands.said_numbers import numbers_said, speaks_of_time


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("never above 5,000 euros", 5000),
        ("5k is the limit", 5000),
        ("at most 2.5 million", 2_500_000),
        ("five thousand at most", 5000),
        ("two hundred fifty a night", 250),
        ("at most three mails", 3),
        ("不能超过五千", 5000),
        ("最多5千元", 5000),
        ("一万两千三百", 12_300),
        ("二十个以内", 20),
        ("nothing over 140.50", 140.5),
    ],
)
def test_a_number_is_read_in_digits_and_in_words(said: str, number: float) -> None:
    assert number in numbers_said(said)


@pytest.mark.parametrize("said", ["never email Sarah", "上海的客户", "use v2.0.1 of it", ""])
def test_a_sentence_without_a_number_says_none(said: str) -> None:
    assert not numbers_said(said)


@given(st.text(max_size=200))
def test_whatever_is_said_is_read(said: str) -> None:
    assert all(number >= 0 for number in numbers_said(said))
    speaks_of_time(said)


def _note(quote: str, tool: str, when: dict[str, Any], stopped: dict[str, Any], passing: dict[str, Any]) -> Any:
    return {
        "quote": quote,
        "effect": "deny",
        "lasting": "always",
        "tools": [tool],
        "when": [when],
        "stops": [{"tool": tool, "arguments": stopped}],
        "passes": [{"tool": tool, "arguments": passing}],
    }


@pytest.mark.parametrize(
    "note",
    [
        _note(
            "转账一律不能超过五千。",
            "transfer",
            {"arg": {"name": "sum", "over": 5000}},
            {"sum": 6000},
            {"sum": 5000},
        ),
        _note(
            "Don't put anything in my calendar before 9 or after 18.",
            "create_event",
            {"clock": {"from": "18:00", "to": "09:00", "of": "start"}},
            {"start": "2026-11-25T08:00:00"},
            {"start": "2026-11-25T10:00:00"},
        ),
        _note(
            "no weekends for the roll-outs please",
            "deploy",
            {"arg": {"name": "environment", "matches": "^prod"}, "clock": {"weekday": ["sat", "sun"]}},
            {"environment": "prod"},
            {"environment": "staging"},
        ),
    ],
    ids=["amount", "hours", "weekday"],
)
async def test_a_bound_that_the_user_named_in_words_makes_a_lasting_rule(note: Any) -> None:
    async with AsyncToolMem(":memory:") as mem:
        kept = await mem.note_demand(
            **note, user_message=note["quote"], tools_available=["transfer", "create_event", "deploy"]
        )
        assert (kept.outcome, kept.why) == ("kept", "")


async def test_a_demand_for_another_time_of_day_is_tried_as_if_it_had_come() -> None:
    quote = "never deploy at night"
    clock = {"from": "22:00", "to": "06:00"}
    note = _note(quote, "deploy", {"always": True, "clock": clock}, {"service": "api"}, {"service": "api"})
    async with AsyncToolMem(":memory:") as mem:
        road: Any = {"user_message": quote, "tools_available": ["deploy", "read_status"]}
        same = await mem.note_demand(**note, **road)
        assert same.outcome == "refused"
        assert [each.field for each in same.problems] == ["passes[0]"]
        assert "had come" in same.problems[0].problem
        note["passes"] = [{"tool": "read_status", "arguments": {"service": "api"}}]
        assert (await mem.note_demand(**note, **road)).outcome == "kept"


async def test_a_condition_that_is_wide_at_another_time_is_as_wide_now() -> None:
    quote = "please be quick with the report this week"
    note = _note(quote, "Bash", {"always": True, "clock": {"weekday": ["mon", "tue", "wed"]}}, {"command": "ls"}, {})
    other = {**note, "when": [{"always": True, "clock": {"weekday": ["thu", "fri", "sat", "sun"]}}]}
    for each in (note, other):
        each["passes"] = [{"tool": "Read", "arguments": {"file_path": "a"}}]
        async with AsyncToolMem(":memory:") as mem:
            kept = await mem.note_demand(**each, user_message=quote, tools_available=["Bash", "Read"])
            assert (kept.outcome, bool(kept.why)) == ("kept", True)
