"""A recording becomes tables: what is written, and what is said of bad records."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest

from toolmem.errors import RequestError
from toolmem.research.csv_files import cell
from toolmem.research.evaluation import evaluate


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_sample_is_judged_and_written(tmp_path):
    command = [sys.executable, "-m", "toolmem", "evaluate", "--out", "report"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    calls = rows(tmp_path / "report" / "calls.csv")
    assert len(calls) == 1176
    assert {each["evaluation_status"] for each in calls} == {"ok"}
    tools = rows(tmp_path / "report" / "tools.csv")
    assert sum(int(each["calls_ever"]) for each in tools) == 1176
    assert all(each["guidance"] for each in tools)


def test_a_bad_line_is_named_and_the_others_are_judged(tmp_path):
    good = {"tool_name": "search", "output": "a\u2028b", "success": True}
    lines = [
        json.dumps(good, ensure_ascii=False),
        "{broken",
        "",
        '{"tool_name": "search", "output": "half \\ud83d"}',
        '{"tool_name": "search", "time_cost": -1}',
    ]
    path = tmp_path / "calls.jsonl"
    path.write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    found = evaluate(path)
    assert [call.output for call in found.calls] == ["a\u2028b", "half \ufffd"]
    assert [each.line for each in found.bad_records] == [2, 5]
    assert "time_cost" in found.bad_records[1].error


def test_a_withheld_flag_is_not_seen_by_the_judge(tmp_path):
    path = tmp_path / "calls.jsonl"
    path.write_text('{"tool_name": "search", "output": "sunny", "success": false}')
    assert evaluate(path).calls[0].score == 0.0
    (call,) = evaluate(path, ignore_success=True).calls
    assert (call.success, call.score) == (None, 1.0)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RequestError, match="missing.jsonl"):
        evaluate(tmp_path / "missing.jsonl")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("=1+1", "'=1+1"), ("＝x", "'＝x"), ("@a", "'@a"), ("-1.5", "-1.5"), (-1.5, "-1.5")],
)
def test_a_cell_is_never_a_formula(value, expected):
    assert cell(value) == expected
