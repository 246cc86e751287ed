"""The tables that the command prints."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from toolmem.models import ToolCallResult
from toolmem.pages.numbers import UNKNOWN, count, percent, seconds
from toolmem.readers.plain_text import counted
from toolmem.research.report import BadRecord, headline, rates_note, skip_table, summary_table, tools_frame


def test_the_printed_table_has_a_row_per_tool_and_names_the_judge(build):
    table = summary_table(build(per_tool=30, failures=[BadRecord(where="x:1", error="no tool_name")]))
    assert len(table.rows) == 3
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert "offline/rule_based_check" in table.notes[1]
    assert any("1 record " in note for note in table.notes)


def judged(tool, success, execution_failed):
    return ToolCallResult(
        tool_name=tool, create_time=datetime(2026, 1, 1, tzinfo=UTC), success=success, execution_failed=execution_failed
    )


def test_the_rate_is_that_of_calls_that_worked_and_the_flag_stands_beside_it_with_the_difference(build):
    calls = [*[judged("http", True, False)] * 7, *[judged("http", True, True)] * 2, judged("http", False, True)]
    evaluation = build(calls=[*calls, judged("sql", None, False), judged("sql", None, None)], memories=[])
    table = summary_table(evaluation)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [(row["worked"], row["rate"], row["by the flag"]) for row in rows] == [
        ("7", "70.0 %", "90.0 %"),
        ("1", "100 %", "100 %"),
    ]
    assert "neither the recorded flag nor the judge says that the call failed; 72.7 % of all calls." in table.notes[0]
    assert table.notes[0].endswith("By the flag 90.9 %: it passes 2 calls that the judge saw fail.")
    page = headline(evaluation).text
    assert page.index("72.7 %") < page.index("90.9 %")
    assert "it passes 2 calls that the judge saw fail" in page
    assert "is higher, because it passes 2 calls" in rates_note(evaluation, tools_frame(evaluation)).text


def test_where_the_flag_and_the_judge_agree_one_rate_is_told(build):
    evaluation = build(calls=[judged("sql", True, False), judged("sql", False, True)], memories=[])
    assert "flag 5" not in summary_table(evaluation).notes[0]
    assert "success by the recorded flag" not in headline(evaluation).text
    assert "is higher" not in rates_note(evaluation, tools_frame(evaluation)).text


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
    assert (count(12827), counted(1, "call"), counted(2, "reply"), counted(None, "class")) == (
        *("12,827", "1 call", "2 replies", "– classes"),
    )
