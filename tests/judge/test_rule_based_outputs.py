"""The rule-based check on outputs written by hand, from many domains (outputs.jsonl).

`part`: the rules were tuned on `tuned`; `held_out` was only counted until the last round; `second` to `fourth` were
each written against the rules as they stood, and tuned on afterwards. `error_class` is "" where more than one class
would do.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from toolmem.judge.rule_based import RuleBasedCheck
from toolmem.models import ToolCallResult, Verdict
from toolmem.readers.error_classes import ERROR_CLASSES

ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "outputs.jsonl").read_text(encoding="utf-8").splitlines()
]


def judged(rows: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], Verdict]]:
    when = datetime(2025, 1, 1, tzinfo=UTC)
    check = RuleBasedCheck()
    given = ("tool_name", "input", "output")
    return [(row, check.check(ToolCallResult(**{k: row[k] for k in given}, create_time=when))) for row in rows]


def test_the_list_holds_enough_of_both_kinds_in_each_part() -> None:
    for part in ("tuned", "held_out", "second", "third", "fourth"):
        rows = [row for row in ROWS if row["part"] == part]
        assert sum(row["failed"] for row in rows) >= 30, part
        assert sum(not row["failed"] for row in rows) >= 30, part


@pytest.mark.parametrize(
    ("part", "least"), [("tuned", 0.98), ("held_out", 0.96), ("second", 0.96), ("third", 0.95), ("fourth", 0.9)]
)
def test_failures_are_found_and_tempting_words_left_alone(part: str, least: float) -> None:
    results = judged([row for row in ROWS if row["part"] == part])
    wrong = [(r["tool_name"], r["output"][:80]) for r, v in results if v.execution_failed != r["failed"]]
    failures = [v.execution_failed for r, v in results if r["failed"]]
    clean = [not v.execution_failed for r, v in results if not r["failed"]]
    balanced = (sum(failures) / len(failures) + sum(clean) / len(clean)) / 2
    assert balanced >= least, wrong


def test_the_class_of_a_failure_is_the_expected_one() -> None:
    results = judged([row for row in ROWS if row["error_class"]])
    wrong = [
        (r["output"][:80], v.error_class, r["error_class"]) for r, v in results if v.error_class != r["error_class"]
    ]
    assert len(wrong) <= 0.05 * len(results), wrong


def test_every_class_given_is_in_the_vocabulary() -> None:
    assert {row["error_class"] for row in ROWS} - {""} <= ERROR_CLASSES.keys()
    assert {verdict.error_class for _, verdict in judged(ROWS)} - {""} <= ERROR_CLASSES.keys()


def test_a_call_has_a_class_exactly_where_it_failed() -> None:
    for row, verdict in judged(ROWS):
        assert (verdict.error_class != "") == (verdict.execution_failed is True), row
