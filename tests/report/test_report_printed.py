"""The tables that the command prints."""

from __future__ import annotations

import pytest

from toolmem.report import BadRecord, skip_table, summary_table
from toolmem.report.numbers import UNKNOWN, count, counted, percent, seconds


def test_the_printed_table_has_a_row_per_tool_and_names_the_judge(build):
    table = summary_table(build(per_tool=30, failures=[BadRecord(where="x:1", error="no tool_name")]))
    assert len(table.rows) == 3
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert "offline/rule_based_check" in table.notes[0]
    assert any("1 record " in note for note in table.notes)


def test_a_flag_that_was_withheld_from_the_judge_is_said_to_count_in_this_table(build):
    assert any("withheld from the judge" in note for note in summary_table(build(ignore_success=True)).notes)
    assert not any("withheld" in note for note in summary_table(build()).notes)


def test_more_tools_than_fit_are_counted_in_a_note(build):
    table = summary_table(build(tools=[f"tool{n}" for n in range(9)], per_tool=2), limit=5)
    assert len(table.rows) == 5
    assert any("4 more tools" in note for note in table.notes)


def test_the_skip_table_says_what_was_avoided_and_that_offline_sends_nothing(build):
    table = skip_table(build())
    assert [row[0] for row in table.rows] == ["all new", "nothing new", "newest 5 %"]
    assert "1,965" in table.rows[1]
    assert "sends nothing" in table.notes[0]
    assert "llm.default.backend=dry_run" in table.notes[0]


@pytest.mark.parametrize(("backend", "words"), [("dry_run", "nothing was sent"), ("dashscope", "0 requests were sent")])
def test_the_note_fits_the_backend(build, backend, words):
    assert words in skip_table(build(backend=backend)).notes[0]


def test_numbers_are_written_in_one_form():
    assert [seconds(value) for value in (None, 0, 5.7e-05, 0.0061, 0.614, 12.3, 265.4, 1200, 40000)] == [
        UNKNOWN, "0 s", "57 µs", "6.1 ms", "0.61 s", "12 s", "265 s", "20 min", "11 h",
    ]  # fmt: skip
    assert [percent(value) for value in (1.0, 0.9999, 0.0, 0.0001, 0.5, float("nan"))] == [
        "100 %", "99.9 %", "0 %", "0.1 %", "50.0 %", UNKNOWN,
    ]  # fmt: skip
    assert (count(12827), counted(1, "call"), counted(2, "call")) == ("12,827", "1 call", "2 calls")
