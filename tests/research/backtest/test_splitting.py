from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.models import ToolCallResult
from toolmem.research.backtest.splitting import split_calls, split_tools, task_of

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def call(second: int, conversation: str | None = None, task: str | None = None) -> ToolCallResult:
    known = {"conversation_id": conversation, "task_id": task}
    return ToolCallResult(
        tool_name="t",
        id=str(second),
        create_time=BEGIN + timedelta(seconds=second),
        metadata={key: value for key, value in known.items() if value is not None},
    )


runs = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=14)


def recorded(drawn: list[tuple[int, int]]) -> list[ToolCallResult]:
    """One conversation after the other: (task, calls)."""
    calls: list[ToolCallResult] = []
    for number, (task, length) in enumerate(drawn):
        calls += [call(len(calls) + i, f"c{number}", f"task{task}") for i in range(length)]
    return calls


@given(runs, st.floats(0.05, 0.95), st.integers(0, 1))
def test_no_task_stands_on_both_sides_and_nothing_earlier_comes_later(
    drawn: list[tuple[int, int]], share: float, fold: int
) -> None:
    calls = recorded(drawn)
    split = split_calls(calls, share, fold)
    if split.by == "task":
        assert {task_of(c) for c in split.earlier}.isdisjoint(task_of(c) for c in split.later)
    if split.earlier and split.later:
        assert max(c.create_time for c in split.earlier) < min(c.create_time for c in split.later)
    assert len(split.earlier) + len(split.later) + split.left_out == len(calls)


@given(runs)
def test_the_folds_together_ask_about_no_call_twice(drawn: list[tuple[int, int]]) -> None:
    calls = recorded(drawn)
    first, second = split_calls(calls, fold=0), split_calls(calls, fold=1)
    if first.by == "task":
        assert {c.id for c in first.later}.isdisjoint(c.id for c in second.later)


def test_tasks_with_as_many_runs_on_either_side_are_asked_about_in_one_of_the_folds() -> None:
    calls = recorded([(task, 2) for _ in range(2) for task in range(4)])
    asked = [c.id for fold in (0, 1) for c in split_calls(calls, fold=fold).later]
    assert sorted(asked, key=int) == [str(i) for i in range(8, 16)]


def test_without_tasks_conversations_are_split_and_it_says_so() -> None:
    calls = [call(i, f"c{i // 3}") for i in range(12)]
    split = split_calls(calls)
    assert split.by == "conversation"
    assert [c.id for c in split.earlier] == [str(i) for i in range(6)]


def test_without_conversations_calls_are_split_by_time_and_it_says_so() -> None:
    calls = [call(i) for i in (3, 1, 2, 0)]
    split = split_calls(calls)
    assert split.by == "time"
    assert [c.id for c in split.earlier] == ["0", "1"]
    assert split_calls(calls, fold=1).later == []


def test_calls_of_an_earlier_conversation_that_runs_across_the_cut_are_left_out() -> None:
    calls = [call(0, "a"), call(1, "a"), call(2, "b"), call(3, "a"), call(4, "b")]
    split = split_calls(calls)
    assert ([c.id for c in split.earlier], [c.id for c in split.later], split.left_out) == (["0", "1"], ["2", "4"], 1)


def test_a_task_repeated_in_another_run_is_the_same_task_and_one_of_another_domain_is_not() -> None:
    one = call(0, "a", "7")
    assert task_of(one) == task_of(one.model_copy(update={"metadata": {"task_id": "7", "run": "b", "trial": 2}}))
    assert task_of(one) != task_of(one.model_copy(update={"metadata": {"task_id": "7", "domain": "retail"}}))


def test_a_tool_with_a_single_conversation_is_left_out() -> None:
    assert split_tools({"t": [call(0, "a"), call(1, "a")]}) == {}


@pytest.mark.parametrize(("share", "fold"), [(0.0, 0), (1.0, 0), (0.5, 2)])
def test_a_share_or_fold_that_splits_nothing_is_refused(share: float, fold: int) -> None:
    with pytest.raises(ValueError, match="got"):
        split_calls([call(0, "a")], share, fold)
