from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.guidance.counted.exact import fisher_exact, least_p, tarone_level

counts = st.tuples(st.integers(0, 25), st.integers(0, 25), st.integers(0, 25), st.integers(0, 25)).map(
    lambda t: (min(t[0], t[1]), max(t[0], t[1]), min(t[2], t[3]), max(t[2], t[3]))
)


def enumerated(k: int, n: int, other_k: int, other_n: int) -> Fraction:
    """The two-sided p-value in exact fractions, table by table."""
    marked, total = k + other_k, n + other_n
    low, high = max(0, n - (total - marked)), min(n, marked)
    weights = {x: comb(marked, x) * comb(total - marked, n - x) for x in range(low, high + 1)}
    return Fraction(sum(w for w in weights.values() if w <= weights[k]), sum(weights.values()))


@given(counts)
def test_p_value_equals_the_sum_over_all_tables(table: tuple[int, int, int, int]) -> None:
    assert fisher_exact(*table) == pytest.approx(float(enumerated(*table)), rel=1e-6)


@given(counts)
def test_no_table_with_these_margins_falls_below_the_least_p(table: tuple[int, int, int, int]) -> None:
    k, n, other_k, other_n = table
    marked, total = k + other_k, n + other_n
    reachable = [
        float(enumerated(x, n, marked - x, other_n)) for x in range(max(0, n - (total - marked)), min(n, marked) + 1)
    ]
    assert least_p(n, other_n, marked) == pytest.approx(min(reachable), rel=1e-6)


def test_tea_tasting() -> None:
    # R. A. Fisher, The Design of Experiments (1935), chapter II: 3 of 4 cups right; both tails 34/70.
    assert fisher_exact(3, 4, 1, 4) == pytest.approx(34 / 70)


def test_large_counts_stay_finite_and_quick() -> None:
    assert fisher_exact(3001, 6727, 3677, 4048) == 0.0 or fisher_exact(3001, 6727, 3677, 4048) < 1e-300
    assert fisher_exact(5000, 10_000, 5001, 10_000) == pytest.approx(1.0, abs=1e-6)


@given(st.lists(st.floats(1e-6, 1.0), max_size=60), st.floats(0.001, 0.2))
def test_tarones_level_is_never_stricter_than_bonferronis_nor_laxer_than_one_test(
    least: list[float], alpha: float
) -> None:
    level = tarone_level(least, alpha)
    assert alpha / max(1, len(least)) <= level <= alpha
    # What makes it valid: no more tests can pass than are paid for.
    assert sum(p <= level for p in least) * level <= alpha * (1 + 1e-9)


def test_tests_that_cannot_pass_are_not_paid_for() -> None:
    assert tarone_level([0.5] * 1000 + [0.001]) == 0.05
    assert tarone_level([0.001] * 10) == pytest.approx(0.005)


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="not a table"):
        fisher_exact(3, 2, 0, 1)
