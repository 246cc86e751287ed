"""Labels of recorded calls as scores, and how they say that they are read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from toolmem.errors import RequestError
from toolmem.formats.labels import LabelColumn, RecordedFlag, check_label
from toolmem.models import ToolCallResult


def call(success=None, **metadata):
    return ToolCallResult(
        tool_name="t", create_time=datetime(2026, 1, 1, tzinfo=UTC), success=success, metadata=metadata
    )


@pytest.mark.parametrize(
    ("column", "value", "score"),
    [
        ("useful", True, 1.0),
        ("useful", False, 0.0),
        ("step_reward", 1.0, 1.0),
        ("step_reward", 0.5, 1.0),
        ("step_reward", 0.49, 0.0),
        ("step_reward", float("nan"), None),
        ("step_reward", None, None),
        ("step_reward", "high", None),
        ("expected_failure", True, 0.0),
        ("expected_failure", False, 1.0),
        ("soft_error", 1, 0.0),
        ("step_reward<1", 0.99, 0.0),
        ("step_reward<1", 1, 1.0),
        ("exit_code>0", 1, 0.0),
        ("exit_code>0", 0, 1.0),
        ("exit_code>0", -1, 1.0),
        ("verdict:bad", "bad", 0.0),
        ("verdict:bad", "good", 1.0),
        ("verdict:bad", None, None),
        ("verdict:a:b", "a:b", 0.0),
    ],
)
def test_a_column_is_read_as_it_says(column, value, score):
    label = LabelColumn.read(column)
    assert label.score(call(**{label.name: value})) == score
    assert f"metadata.{label.name}" in label.reading


def test_a_column_may_lie_inside_another_or_have_dots_in_its_name():
    label = LabelColumn.read("check.passed")
    assert label.score(call(check={"passed": False})) == 0.0
    assert label.score(call(**{"check.passed": True})) == 1.0
    assert label.score(call(check=3)) is None


def test_the_recorded_flag_is_a_label_where_it_is_known():
    assert [RecordedFlag().score(call(success)) for success in (True, False, None)] == [1.0, 0.0, None]


@pytest.mark.parametrize("column", ["", "<3", "reward<", "reward<much", "reward>", "verdict:"])
def test_a_column_that_says_nothing_is_refused(column):
    with pytest.raises(RequestError, match="column"):
        LabelColumn.read(column)


def test_a_label_that_no_call_has_is_refused_and_those_there_are_named():
    with pytest.raises(RequestError, match="task_reward"):
        check_label("column:reward", LabelColumn.read("reward"), [call(task_reward=1.0)])
    check_label("column:task_reward", LabelColumn.read("task_reward"), [call(), call(task_reward=1.0)])
