"""Values that a tool's errors name, with calls that worked beside them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.guidance.counted.analysis import analyze
from toolmem.guidance.counted.refusals import RefusedValues
from toolmem.guidance.counted.render import Wording
from toolmem.models import ToolCallResult


def call(given_: dict[str, object], error: str = "") -> ToolCallResult:
    return ToolCallResult(
        tool_name="t",
        input=given_,
        output=f"Error: {error}" if error else "fine",
        success=not error,
        create_time=datetime(2026, 1, 1, tzinfo=UTC),
    )


def found(*calls: ToolCallResult) -> list[RefusedValues]:
    return list(analyze("t", calls).refusals)


def said(*calls: ToolCallResult) -> list[str]:
    say = Wording()
    return [" or ".join(map(say.condition, one.conditions)) for one in found(*calls)]


def working(name: str, values: list[object], times: int = 4) -> list[ToolCallResult]:
    return [call({name: value, "n": i}) for i in range(times) for value in values]


@pytest.mark.parametrize(
    ("name", "good", "bad", "error", "told"),
    [
        ("units", ["metric"], ["celsius", "celsius"], "units '{}' no longer supported", "`units`='celsius'"),
        ("lang", ["en", "de"], ["auto", "xx"], "“{}” is not a language", "`lang`='auto' or `lang`='xx'"),
        ("page_size", [10, 100], [500, 1000], "page_size must be between 1 and 100", "`page_size` > 100"),
        ("start_line", [1, 5], [0, -1], "start_line must be 1 or more, got {}", "`start_line` < 1"),
        ("year", [2019, 2020], ["since 2019", "2020?"], "year must be an integer, got '{}'", "`year` as a text"),
        (
            "day",
            ["2026-01-02", "2026-02-03"],
            ["3/4/2026", "tomorrow"],
            "wrong day: '{}'",
            "`day` other than a date like 2024-01-31",
        ),
    ],
)
def test_what_tells_refused_values_from_working_ones_is_found(
    name: str, good: list[object], bad: list[object], error: str, told: str
) -> None:
    calls = working(name, good) + [call({name: value, "n": i}, error.format(value)) for i, value in enumerate(bad)]
    (refusal,) = found(*calls)
    assert said(*calls) == [told]
    assert refusal.positions == refusal.named == (len(calls) - 2, len(calls) - 1)
    assert (refusal.other_k, refusal.other_n) == (len(calls) - 2, len(calls) - 2)


def test_fields_of_objects_are_told_by_their_path() -> None:
    calls = [call({"query": {"page_size": size}}) for size in (5, 10, 10, 10, 20, 20, 20)]
    calls += [call({"query": {"page_size": size}}, "page_size must be at most 100") for size in (500, 900)]
    assert said(*calls) == ["`query.page_size` > 20"]


@pytest.mark.parametrize(
    ("good", "bad", "error"),
    [
        ({"a": "x", "speed": 1}, {"speed": 9}, "parameter 'a' is required where speed is 9"),
        ({"path": "a/b.txt"}, {"path": "c/d.txt"}, "no such file: 'c/d.txt'"),
        ({"user": "ada_1"}, {"user": "bob_2"}, "user 'bob_2' not found"),
        ({"units": "metric"}, {"units": "celsius"}, "service unavailable"),
        ({"query": "SELECT a FROM t"}, {"query": "SELECT b FROM t"}, "Unknown column 'b' in query"),
    ],
)
def test_nothing_is_said_of_missing_parameters_of_single_things_and_where_no_error_names_it(
    good: dict[str, object], bad: dict[str, object], error: str
) -> None:
    assert found(*[call(good) for _ in range(6)], call(bad, error), call(bad, error)) == []


def test_a_value_that_worked_once_is_not_refused() -> None:
    calls = [*working("units", ["metric", "celsius"]), *[call({"units": "celsius"}, "bad units 'celsius'")] * 3]
    assert found(*calls) == []


def test_one_error_is_not_enough() -> None:
    assert found(*working("units", ["metric"]), call({"units": "celsius"}, "bad units 'celsius'")) == []


@given(
    st.lists(
        st.tuples(
            st.dictionaries(
                st.sampled_from(["mode", "size", "note"]),
                st.one_of(st.sampled_from(["on", "off", "x y", "2026-01-02", "7"]), st.integers(-2, 5), st.none()),
            ),
            st.sampled_from(["", "", "bad mode 'on'", "size must be less than 3", "'off' is refused", "note: 'x y'"]),
        ),
        max_size=25,
    )
)
def test_no_call_with_a_refused_value_worked_and_the_counts_are_those_of_the_calls(
    rows: list[tuple[dict[str, object], str]],
) -> None:
    for refusal in found(*[call(given_, error) for given_, error in rows]):
        assert set(refusal.named) <= set(refusal.positions)
        assert len(refusal.named) >= 2
        assert all(rows[i][1] for i in refusal.positions)
        others = [i for i, (given_, _) in enumerate(rows) if refusal.path in given_ and i not in refusal.positions]
        assert (refusal.other_k, refusal.other_n) == (sum(not rows[i][1] for i in others), len(others))
