"""Agreement of judges: known values, laws, and what is left out."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.models import ToolCallResult, Usage
from toolmem.research.report.agreement import (
    Cells,
    Comparison,
    JudgeRun,
    against_labels,
    balanced_accuracy,
    cohens_kappa,
    pairs,
    sides,
)
from toolmem.research.report.agreement_tables import comparison_json, comparison_rows, comparison_tables

SCORES = st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, None])] * 3), min_size=1, max_size=60)


def run(name, scores, label=False, **more):
    return JudgeRun(
        name, "" if label else f"offline/{name}", "it failed", label, tuple(scores), ("x",) * len(scores), **more
    )


def comparison(*runs):
    call = ToolCallResult(tool_name="t", create_time=datetime(2026, 1, 1, tzinfo=UTC), output="o")
    size = len(runs[0].scores)
    return Comparison(tuple(range(10, 10 + size)), (call,) * size, runs)


def test_kappa_is_the_one_of_the_textbook():
    # the usual worked example: agreement 35 / 50 = 0.70, chance 0.5 * 0.6 + 0.5 * 0.4 = 0.50
    (kappa,) = cohens_kappa([(20, 5, 10, 15)])
    assert kappa == pytest.approx(0.4)


def test_kappa_is_not_defined_where_both_always_say_the_same():
    assert math.isnan(cohens_kappa([(12, 0, 0, 0)])[0])
    (pair,) = pairs(comparison(run("a", [1.0] * 12), run("b", [1.0] * 12)))
    assert pair.kappa is None
    assert pair.kappa_interval is None
    assert pair.agreement == 1.0
    assert 0.7 < pair.agreement_interval[0] < pair.agreement_interval[1] == 1.0


def test_balanced_accuracy_is_the_mean_of_both_rates():
    assert balanced_accuracy([(8, 2, 1, 3)])[0] == pytest.approx((0.8 + 0.75) / 2)


@given(SCORES)
def test_the_order_of_two_judges_changes_nothing_but_the_sides(rows):
    first, second, _ = zip(*rows, strict=True)
    (one,) = pairs(comparison(run("a", first), run("b", second)))
    (other,) = pairs(comparison(run("b", second), run("a", first)))
    assert (one.agreement, one.kappa) == (
        other.agreement,
        pytest.approx(other.kappa) if one.kappa is not None else None,
    )
    assert (one.cells.one_zero, one.cells.zero_one) == (other.cells.zero_one, other.cells.one_zero)


@given(SCORES)
def test_figures_stay_in_their_ranges_and_hold_in_their_intervals(rows):
    first, second, label = zip(*rows, strict=True)
    found = comparison(run("a", first), run("b", second), run("column:l", label, label=True))
    for pair in pairs(found):
        assert pair.cells.calls == Cells.count(*[_scores(found, n) for n in (pair.first, pair.second)]).calls
        if pair.agreement is not None:
            low, high = pair.agreement_interval
            assert 0 <= low <= pair.agreement <= high <= 1
        if pair.kappa is not None:
            assert -1 <= pair.kappa <= 1
    for measured in against_labels(found):
        assert measured.balanced_accuracy is None or 0 <= measured.balanced_accuracy <= 1
    (side,) = sides(found)
    differ = [(a, b) for a, b, told in rows if None not in (a, b, told) and a != b]
    assert side.with_first + side.with_second == len(differ)


def _scores(found, name):
    return next(each.scores for each in found.judges if each.name == name)


def test_a_call_without_a_verdict_is_left_out_of_its_pairs_alone():
    found = comparison(run("a", [1.0, None, 0.0]), run("b", [1.0, 1.0, 1.0]), run("c", [None, 0.0, 0.0]))
    assert [pair.cells.calls for pair in pairs(found)] == [2, 1, 2]
    assert found.differing() == [1, 2]


def test_the_label_takes_a_side_where_judges_differ():
    found = comparison(
        run("cheap", [1.0, 1.0, 0.0, 1.0, 0.0]),
        run("dear", [0.0, 0.0, 1.0, 1.0, 0.0]),
        run("recorded", [0.0, 0.0, 0.0, 1.0, None], label=True),
    )
    (side,) = sides(found)
    assert (side.with_first, side.with_second) == (1, 2)


def test_tables_json_and_rows_name_costs_and_every_call():
    usage = Usage(requests=3, prompt_tokens=900, completion_tokens=90, cost=0.03, currency="CNY")
    found = comparison(
        run("offline", [1.0, 1.0, 0.0]), run("default", [1.0, 0.0, None], usage=usage, asked=2, reused=0, seconds=1.0)
    )
    cells = [cell for table in comparison_tables(found) for row in table.rows for cell in row]
    assert {"0.03 CNY", "15 CNY", "900", "50.0 %"} <= set(cells)
    body = comparison_json(found)
    assert body["judges"][1]["cost_per_1000_calls"] == pytest.approx(15)
    assert [each["row"] for each in body["differing"]] == [11]
    columns, rows = comparison_rows(found)
    assert len(columns) == len(rows[0])
    assert [row[:3] for row in rows] == [[10, "t", False], [11, "t", True], [12, "t", False]]
