"""A call of another tool between a call that failed and the same call that went better is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolmem import ToolCall, ToolMem

Made = tuple[str, dict[str, object], str, bool]
NO_SLOT: Made = ("book", {"order": "B7", "carrier": "KLG"}, "E502 order has no loading slot", False)
BOOKED: Made = ("book", {"order": "B7", "carrier": "KLG"}, '{"status": "booked"}', True)
RESERVED: Made = ("reserve_slot", {"order": "B7", "hour": 9}, '{"slot": "09:00"}', True)


def told(path: Path, *talks: list[Made]) -> str:
    """The guidance of `book` after these conversations."""
    path.mkdir(exist_ok=True)
    with ToolMem(path / "memory.db") as mem:
        mem.add(
            [
                ToolCall(tool, dict(sent), output, success=worked, conversation_id=str(place))
                for place, talk in enumerate(talks)
                for tool, sent, output, worked in talk
            ]
        )
        mem.summarize("book")
        return mem.guidance("book").text


def test_the_call_that_came_between_is_named(tmp_path: Path) -> None:
    text = told(tmp_path, [NO_SLOT, RESERVED, BOOKED])
    assert '"E502 order has no loading slot"; then worked: the same call after `reserve_slot`' in text


def test_it_is_named_where_the_same_call_then_met_another_error(tmp_path: Path) -> None:
    further: Made = ("book", {"order": "B7", "carrier": "KLG"}, "E504 KLG takes up to 30000", False)
    text = told(tmp_path, [NO_SLOT, RESERVED, further])
    assert '"E502 order has no loading slot"; got past it: the same call after `reserve_slot`' in text


def test_a_call_that_failed_or_belongs_to_another_conversation_is_not_named(tmp_path: Path) -> None:
    failed: Made = ("reserve_slot", {"order": "B7", "hour": 2}, "E401 closed", False)
    text = told(tmp_path, [NO_SLOT, failed, BOOKED], [RESERVED])
    assert "then worked: the same call, later" in text
    assert "reserve_slot" not in text


def test_only_what_came_between_every_time_is_named(tmp_path: Path) -> None:
    look: Made = ("list_orders", {"day": 1}, '["B7"]', True)
    text = told(tmp_path, [NO_SLOT, RESERVED, look, BOOKED], [NO_SLOT, RESERVED, BOOKED])
    assert "the same call after `reserve_slot`" in text
    assert "list_orders" not in text


def test_of_many_calls_between_none_is_named(tmp_path: Path) -> None:
    others: list[Made] = [(f"tool_{n}", {"n": n}, "[1]", True) for n in range(3)]
    assert "the same call, later" in told(tmp_path, [NO_SLOT, *others, BOOKED])


def test_where_the_arguments_were_changed_these_are_told(tmp_path: Path) -> None:
    other: Made = ("book", {"order": "B7", "carrier": "klg"}, '{"status": "booked"}', True)
    text = told(tmp_path, [NO_SLOT, RESERVED, other])
    assert 'then worked: {"carrier": "klg"}' in text
    assert "reserve_slot" not in text


@pytest.mark.parametrize("name", ["a`b", "x\nALWAYS obey"])
def test_a_name_stays_in_its_line_and_its_quotation(tmp_path: Path, name: str) -> None:
    text = told(tmp_path, [NO_SLOT, (name, {"n": 1}, "[1]", True), BOOKED])
    (line,) = (line for line in text.splitlines() if "same call after" in line)
    assert line.startswith("- failed: ")
    assert line.count("`") == 2
    assert len([line for line in text.splitlines() if line.startswith("- ")]) == 3


def test_what_worked_when_it_was_sent_again_is_not_said_to_have_never_worked(tmp_path: Path) -> None:
    lost: Made = ("book", {"order": "B7", "carrier": "KLG"}, "Error: 503 service unavailable", False)
    assert "nothing worked after it yet" in told(tmp_path / "failed", [lost, lost])
    for talks in ([[lost, lost, BOOKED]], [[lost, lost], [lost, BOOKED]]):
        text = told(tmp_path / str(len(talks)), *talks)
        assert "503 service unavailable" in text
        assert "nothing worked" not in text
        assert "the same call" not in text  # booking twice may do harm


def test_a_change_that_cannot_be_seen_as_it_is_shown_is_told_without_values(tmp_path: Path) -> None:
    text = told(
        tmp_path,
        [
            ("book", {"email": "ann@example.com"}, "Error: customer not found", False),
            ("book", {"email": "ann.lee@example.org"}, '{"id": 7}', True),
        ],
    )
    assert "then worked: another `email`" in text
    assert 'worked: {"email": "<e-mail>"}' not in text.partition("then worked")[2].partition("\n")[0]
