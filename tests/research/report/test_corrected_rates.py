"""The share of calls that worked, corrected by the labels of a person: figures, draws and files of labels."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.errors import RequestError
from toolmem.models import ToolCallResult
from toolmem.readers.proportions import wilson_interval
from toolmem.research.report.corrected_rates import (
    ALL_TOOLS,
    OWN_LABELS,
    corrected_rates,
    draw,
    interval,
    passed_by_judge,
)
from toolmem.research.report.label_files import COLUMNS, LabelRow, labels_of, read_labels, write_labels

WHEN = datetime(2026, 3, 1, tzinfo=UTC)


def calls_of(passed: list[bool | None], tool: str = "search", start: int = 0) -> list[tuple[int, str, bool | None]]:
    return [(row, tool, verdict) for row, verdict in enumerate(passed, start)]


def test_the_sentence_says_both_rates_the_interval_and_the_labels():
    passed = [row < 81 for row in range(100)]
    labels = dict.fromkeys(range(40), True) | {38: False, 39: False} | dict.fromkeys(range(81, 91), False)
    whole, tool = corrected_rates(calls_of(passed), labels)
    assert str(whole).startswith("81 % by the judge, 77 % (")
    assert str(whole).endswith(") corrected with 50 labels")
    assert (whole.tool, tool.tool, tool.pooled) == (ALL_TOOLS, "search", False)
    assert (whole.of_passed, whole.of_failed) == ((38, 40), (0, 10))


def test_without_labels_nothing_is_corrected_and_it_says_so():
    whole, _ = corrected_rates(calls_of([True, False]), {})
    assert (whole.rate, whole.low, whole.high) == (None, None, None)
    assert str(whole) == "50 % by the judge, not corrected: there are no labels"


def test_calls_without_a_verdict_and_labels_of_other_rows_count_nowhere():
    whole, *_ = corrected_rates(calls_of([True, None, True]), {0: True, 1: False, 99: False})
    assert (whole.calls, whole.passed, whole.labels) == (2, 2, 1)
    assert str(corrected_rates([], {})[0]) == "no call has a verdict"


def test_a_tool_with_few_labels_is_corrected_by_those_of_all_and_named_so():
    many = calls_of([True] * 50, "many")
    few = calls_of([True] * 20, "few", 50)
    labels = dict.fromkeys(range(OWN_LABELS), True) | {50: False}
    whole, own, pooled = corrected_rates([*many, *few], labels)
    assert (own.tool, own.pooled, own.of_passed) == ("many", False, (10, 10))
    assert (pooled.tool, pooled.pooled, pooled.labels) == ("few", True, 1)
    assert pooled.of_passed == whole.of_passed == (10, 11)
    assert str(pooled).endswith("corrected with 11 labels of all tools")


def test_a_judge_that_errs_is_corrected_towards_the_truth():
    """It passes every call; a third of the labelled ones had failed."""
    passed = [True] * 900
    whole, _ = corrected_rates(calls_of(passed), {row: row % 3 != 0 for row in range(90)})
    assert whole.by_judge == 1.0
    assert whole.low < 2 / 3 < whole.high
    assert whole.rate == pytest.approx(2 / 3, abs=0.01)


@given(st.integers(1, 500), st.data())
def test_the_interval_holds_its_rate_and_lies_between_nothing_and_everything(calls: int, data: st.DataObject):
    passed = data.draw(st.integers(0, calls))
    m1, m0 = data.draw(st.integers(0, 60)), data.draw(st.integers(0, 60))
    k1, k0 = data.draw(st.integers(0, m1)), data.draw(st.integers(0, m0))
    rate, low, high = interval(passed, calls, (k1, m1), (k0, m0))
    assert 0.0 <= low <= rate <= high <= 1.0
    assert interval(passed, calls, (k1, m1), (k0, m0)) == (rate, low, high)


@pytest.mark.parametrize("turned", [0.0, 0.2])
def test_the_interval_covers_the_truth_and_is_narrower_than_that_of_the_labels_alone(turned: float):
    chance = random.Random(5)
    worked = [chance.random() < 0.7 for _ in range(600)]
    passed = [verdict ^ (chance.random() < turned) for verdict in worked]
    truth, covered, widths, alone = sum(worked) / 600, 0, 0.0, 0.0
    for seed in range(200):
        rows = draw(range(600), 30, seed)
        whole, _ = corrected_rates(calls_of(passed), {row: worked[row] for row in rows})
        low, high = wilson_interval(sum(worked[row] for row in rows), 30)
        covered += whole.low <= truth <= whole.high
        widths, alone = widths + whole.high - whole.low, alone + high - low
    assert covered >= 0.91 * 200
    assert widths < (0.5 if turned == 0.0 else 0.95) * alone


def test_a_draw_is_random_repeatable_and_a_larger_one_begins_with_it():
    rows = range(1000)
    assert draw(rows, 30, 0) == draw(rows, 30, 0) == draw(rows, 50, 0)[:30]
    assert draw(rows, 30, 0) != draw(rows, 30, 1)
    assert 350 < sum(draw(rows, 300, 2)) / 300 < 650
    assert sorted([*draw(rows, 990, 0, but=range(10)), *range(10)]) == list(rows)
    assert len(draw(range(5), 30, 0)) == 5


@pytest.mark.parametrize(
    ("success", "failed", "passed"),
    [
        (None, None, None),
        (True, None, True),
        (None, False, True),
        (False, False, False),
        (True, True, False),
        (None, True, False),
    ],
)
def test_a_call_passes_where_neither_flag_nor_judge_says_that_it_failed(success, failed, passed):
    call = ToolCallResult(tool_name="t", success=success, execution_failed=failed, create_time=WHEN)
    assert passed_by_judge(call) is passed


# ---------------------------------------------------------------- files


def test_a_file_of_labels_is_read_as_it_was_written(tmp_path: Path):
    call = ToolCallResult(tool_name="=SUM(1)", input={"q": 'a,b\n"c"'}, output="x" * 9000, create_time=WHEN)
    rows = [LabelRow.of(7, call, None), LabelRow(2, "t", "in", "out\r", True, False)]
    file = tmp_path / "new" / "labels.csv"
    write_labels(file, rows)
    first, second = read_labels(file)
    assert second == rows[1]
    assert (first.index, first.tool_name, first.label, first.passed) == (7, "'=SUM(1)", None, None)
    assert first.output.endswith("... (9,000 characters)")
    assert len(first.output) < 4_100
    assert labels_of([first, second], {7: "=SUM(1)", 2: "t"}, file) == {2: False}
    assert file.read_text().splitlines()[0] == ",".join(COLUMNS)


def test_labels_in_words_and_of_a_spreadsheet_are_read(tmp_path: Path):
    file = tmp_path / "labels.csv"
    file.write_text("\ufeffindex,tool_name,label\n0,t,Yes\n1,t,0\n2,t,\n", encoding="utf-8")
    assert labels_of(read_labels(file), dict.fromkeys(range(3), "t"), file) == {0: True, 1: False}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("index,tool_name\n0,t\n", "has no column 'label'"),
        ("", "has no column 'index'"),
        ("index,tool_name,label\n0,t,maybe\n", r"line 2: label: expected 1 \(worked\), 0 \(did not work\)"),
        ("index,tool_name,label\n-1,t,1\n", "line 2: index: expected a position"),
        ("index,tool_name,label\n0,t,1\n0,t,0\n", "line 3: index 0 was there before"),
        ("index,tool_name,label\n0\n", "is a call of 't' in the recording, and of ''"),
        ("index,tool_name,label\n9,t,1\n", "has no call at index 9; label the same --input"),
        ("index,tool_name,label\n0,other,1\n", "were they drawn from another --input"),
    ],
)
def test_what_is_no_file_of_labels_is_refused_with_the_place(tmp_path: Path, text: str, told: str):
    file = tmp_path / "labels.csv"
    file.write_text(text)
    with pytest.raises(RequestError, match=told):
        labels_of(read_labels(file), {0: "t", 1: "t"}, file)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b'index,tool_name,label\n0,"' + b"x" * 200_000])
def test_a_file_that_is_no_csv_in_utf_8_is_refused(tmp_path: Path, content: bytes):
    file = tmp_path / "labels.csv"
    file.write_bytes(content)
    with pytest.raises(RequestError, match="labels"):
        labels_of(read_labels(file), {0: "t"}, file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(RequestError, match=r"none\.csv is not there: `toolmem judge label`"):
        read_labels(tmp_path / "none.csv")
