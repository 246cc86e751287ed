from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.guidance.counted.analysis import analyze
from toolmem.guidance.counted.repairs import Recovery, Repair
from toolmem.models import ToolCallResult


def call(given_: dict[str, object] | str, success: bool | None, conversation: object = "c") -> ToolCallResult:
    return ToolCallResult(
        tool_name="t",
        input=given_,
        output="ok" if success else "Error: no",
        success=success,
        create_time=datetime(2026, 1, 1, tzinfo=UTC),
        metadata={} if conversation is None else {"conversation_id": conversation},
    )


def recoveries(*calls: ToolCallResult) -> list[Recovery]:
    return list(analyze("t", calls).recoveries)


@pytest.mark.parametrize(
    ("before", "after", "repair"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, Repair("added", "b")),
        ({"a": 1, "b": 2}, {"a": 1}, Repair("dropped", "b")),
        ({"a": 1}, {"a": 2}, Repair("changed", "a")),
        ({"genre": "Comedy"}, {"genre": "35"}, Repair("changed", "genre", "", "integer_text")),
        ({"day": "5/14/2024"}, {"day": "2024-05-14"}, Repair("changed", "day", "slash_date", "date")),
        ({"a": 1}, {"a": 1}, Repair("repeated", "")),
        ({"location": "Oslo"}, {"city": "Oslo"}, Repair("renamed", "city", "location")),
        ({"q": {"size": 500, "page": 1}}, {"q": {"size": 50, "page": 1}}, Repair("changed", "q.size")),
        ({"q": {"page": 1}}, {"q": {"page": 1, "size": 5}}, Repair("added", "q.size")),
        ({"query": "SELECT a FROM t"}, {"query": "DESC t"}, Repair("statement", "query", "SELECT", "DESCRIBE")),
        ({"query": "SHOW COLUMNS FROM t"}, {"query": "SHOW TABLES"}, Repair("statement", "query", "SHOW", "SHOW")),
        ({"query": "SELECT a FROM t"}, {"query": "SELECT b FROM t"}, Repair("names", "query", "SELECT", "SELECT")),
        ({"query": "SELECT a FROM t"}, {"query": "SELECT a FROM u"}, Repair("tables", "query", "SELECT", "SELECT")),
        (
            {"query": "SELECT a FROM t"},
            {"query": "SELECT a FROM t GROUP BY a"},
            Repair("clause_added", "query", "SELECT", "GROUP BY"),
        ),
        ({"command": "find /x -name y"}, {"command": "ls /x"}, Repair("program", "command", "find", "ls")),
        ({"command": "ls -l /x"}, {"command": "ls -l -a /x"}, Repair("flag_added", "command", "ls", "ls -a")),
        ({"command": "ls /x"}, {"command": "ls /y"}, Repair("arguments", "command", "ls", "ls")),
    ],
)
def test_each_kind_of_repair_is_named(before: dict[str, object], after: dict[str, object], repair: Repair) -> None:
    (found,) = recoveries(call(before, False), call(after, True))
    assert found.repairs == {repair}


def test_only_the_next_three_calls_of_the_conversation_count() -> None:
    assert [r.success for r in recoveries(*[call({"a": i}, i == 3, "c") for i in range(5)])] == [3, 3, 3]
    assert [r.failure for r in recoveries(*[call({"a": i}, i == 4, "c") for i in range(5)])] == [1, 2, 3]
    assert recoveries(call({"a": 1}, False, "c"), call({"a": 2}, True, "d")) == []


def test_conversations_are_kept_apart_where_calls_alternate() -> None:
    found = recoveries(
        call({"a": 1}, False, "c"), call({"b": 1}, False, "d"), call({"a": 2}, True, "c"), call({"b": 2}, True, "d")
    )
    assert [(r.failure, r.success) for r in found] == [(0, 2), (1, 3)]


def test_another_action_is_one_repair_whatever_parameters_come_and_go() -> None:
    calls = [call({"command": "view", "path": f"/{i}"}, True, i) for i in range(4)]
    calls += [call({"command": "edit", "path": f"/{i}", "text": "x"}, False, "e") for i in range(3)]
    calls.append(call({"command": "view", "path": "/0"}, True, "e"))
    assert {repair for r in recoveries(*calls) for repair in r.repairs} == {Repair("action", "command", "edit", "view")}


def test_a_choice_that_takes_the_same_parameters_is_no_action() -> None:
    calls = [call({"units": "metric", "city": f"{i}"}, True, i) for i in range(4)]
    calls += [call({"units": "celsius", "city": f"{i}"}, False, "e") for i in range(3)]
    calls.append(call({"units": "metric", "city": "2"}, True, "e"))
    assert Repair("changed", "units") in {repair for r in recoveries(*calls) for repair in r.repairs}


def alike(a: dict[str, int], b: dict[str, int]) -> bool:
    """They differ in one parameter at most, or a value stands in both under one name, or under another one."""
    differing = {name for name in a.keys() | b.keys() if a.get(name) != b.get(name)}
    moved = any(a[old] == b[new] for old in a.keys() - b.keys() for new in b.keys() - a.keys())
    return len(differing) <= 1 or moved or any(a[name] == b[name] for name in a.keys() & b.keys())


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from("abc"), st.integers(0, 2), max_size=3),
            st.sampled_from([True, False, None]),
            st.integers(0, 2),
        ),
        max_size=25,
    )
)
def test_recoveries_agree_with_a_plain_recount(
    rows: list[tuple[dict[str, int], bool | None, int]],
) -> None:
    found = analyze("t", [call(dict(given_), success, conversation) for given_, success, conversation in rows])
    expected = []
    for i, (given_, success, conversation) in enumerate(rows):
        later = [j for j in range(i + 1, len(rows)) if rows[j][2] == conversation][:3]
        if success is False and (good := [j for j in later if rows[j][1] and alike(given_, rows[j][0])]):
            expected.append((i, good[0]))
    assert sorted((r.failure, r.success) for r in found.recoveries) == expected
