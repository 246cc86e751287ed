"""Guidance of earlier conversations is asked about later ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from benchmarks.backtest import backtest
from toolmem.guidance.card import CardWriter
from toolmem.models.calls import ToolCallResult
from toolmem.research.backtest import (
    is_named,
    later_repairs,
    repaired_failures,
    split,
    written_in_use,
)

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


def calls(*rows):
    """(conversation, input, output, worked), a minute apart."""
    return [
        ToolCallResult(
            tool_name="book",
            create_time=BEGIN + timedelta(minutes=minute),
            input=given,
            output=output,
            success=worked,
            score=float(worked),
            metadata={"conversation_id": conversation} if conversation else {},
        )
        for minute, (conversation, given, output, worked) in enumerate(rows)
    ]


def repaired(conversation, before, after, error="E5 weight implausible"):
    failed = (conversation, {"weight": before}, error, False)
    return [failed, (conversation, {"weight": after}, "ok", True)]


def test_a_repair_that_was_seen_earlier_is_named_later():
    rows = [row for name in "abcd" for row in repaired(name, 4.3, 4300)]
    (found,) = backtest(calls(*rows), budgets=(200,))
    assert (found.named, found.repaired, found.share) == (2, 2, 1.0)


def test_another_kind_of_repair_or_another_error_is_not_named():
    earlier = [row for name in "ab" for row in repaired(name, 4.3, 4300)]
    added = [("c", {}, "E5 weight implausible", False), ("c", {"depot": "BGO"}, "ok", True)]
    other = repaired("d", 1, 2, "the lid of the scale stands open")
    (found,) = backtest(calls(*earlier, *added, *other), budgets=(200,))
    assert (found.named, found.repaired) == (0, 2)


def test_an_error_is_known_by_its_class_or_by_the_words_that_it_begins_with():
    earlier = [row for name in "ab" for row in repaired(name, 4.3, 4300, "E5 weight refused")]
    later = repaired("c", 1, 2, "the parcel is too heavy")
    made = calls(*earlier, *later, *repaired("d", 1, 2, "weight refused again"))
    for call in made:
        call.error_class = "invalid_value" if call.conversation_id in "abc" else "error"
    asked = repaired_failures(made[4:])
    guidance = written_in_use(CardWriter(), made[:4])
    (line,) = [each for each in guidance.lines if each.kind == "failure"]
    by_class = replace(guidance, lines=[replace(line, error="invalid date: bad value")])
    assert [is_named(one, guidance, 200) for one in asked] == [False, True]
    assert [is_named(one, by_class, 200) for one in asked] == [True, False]


def test_guidance_that_does_not_fit_names_nothing():
    rows = [row for name in "abcd" for row in repaired(name, 4.3, 4300)]
    few, enough = backtest(calls(*rows), budgets=(5, 200))
    assert (few.named, enough.named) == (0, 2)


@pytest.mark.parametrize("names", [("", ""), ("", "b"), ("a", "b")])
def test_without_one_named_conversation_nothing_counts_as_repaired(names):
    failed, worked = repaired("", 4.3, 4300)
    rows = [(names[0], *failed[1:]), (names[1], *worked[1:])]
    assert repaired_failures(calls(*rows)) == []


def test_no_call_of_the_earlier_part_is_younger_than_the_later_part_and_none_is_on_both_sides():
    rows = [row for name in "abcdef" for row in repaired(name, 1, 2)]
    made = calls(*rows)
    parts = split(made)
    assert len(parts.earlier) == len(parts.later) == 6
    assert max(c.create_time for c in parts.earlier) < min(c.create_time for c in parts.later)


def test_no_task_is_on_both_sides_and_each_is_asked_about_once_over_both_folds():
    rows = [row for name in "abcdefgh" for row in repaired(name, 1, 2)]
    made = calls(*rows)
    for call in made:  # each task runs twice, once on either side of the cut
        call.metadata["task_id"] = "abcdefgh".index(call.conversation_id) % 4
    asked = []
    for fold in (0, 1):
        parts = split(made, fold)
        halves = (parts.earlier, parts.later)
        earlier, later = ({call.metadata["task_id"] for call in half} for half in halves)
        assert earlier.isdisjoint(later)
        asked += sorted(later)
    assert sorted(asked) == [0, 1, 2, 3]


def test_the_share_of_later_repairs_that_guidance_names_is_told_with_its_interval():
    rows = [row for n in range(22) for row in repaired(f"c{n}", 4.3, 4300)]
    new = [row for n in range(2) for row in repaired(f"new{n}", 1, 2, "the lid is open")]
    told = later_repairs(calls(*rows, *new)).sentence(48)
    assert "older half says how 10 of 12 later failures were repaired. The 95 % interval" in told
    assert "in 12 conversations. The guidance had seen 10 of these errors." in told
    of_another_page = later_repairs(calls(*rows, *new)).sentence(9)
    assert "Both halves are of the newest 48 calls." in of_another_page


def test_an_error_counts_once_per_conversation_and_more_errors_in_one_prove_no_more():
    once = [row for n in range(20) for row in repaired(f"c{n}", 4.3, 4300)]
    twice = [row for n in range(20) for row in 2 * repaired(f"c{n}", 4.3, 4300)]
    one, same = later_repairs(calls(*once)), later_repairs(calls(*twice))
    assert (same.repaired, same.named, same.low) == (one.repaired, one.named, one.low)
    two = []
    for n in range(20):
        lid = [(f"c{n}", {"lid": "open"}, "the lid is open", False)]
        two += [*repaired(f"c{n}", 4.3, 4300), *lid, (f"c{n}", {"lid": "shut"}, "ok", True)]
    both = later_repairs(calls(*two))
    assert (both.repaired, both.named, both.low) == (20, 20, pytest.approx(one.low))


@pytest.mark.parametrize(("conversation", "why"), [("c", "1 conversation has"), ("", "No call")])
def test_without_enough_conversations_no_share_is_told(conversation, why):
    rows = [row for n in range(4) for row in repaired(conversation and f"c{n // 2}", 4.3, 4300)]
    found = later_repairs(calls(*rows))
    assert why in found.sentence(8) and found.low is None
