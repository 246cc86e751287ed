"""Prices, and the limit that is checked before each request."""

import pytest

from toolmem.config.sections import BudgetSection, Price
from toolmem.errors import BudgetReached, ConfigError
from toolmem.llm.budget import Budget

PRICES = {
    "plus": Price(input=1.0, output=3.0, cached_input=0.5, currency="CNY"),
    "mini": Price(input=1.0, currency="USD"),
}


def test_cached_tokens_have_their_own_price_and_an_unknown_model_has_none():
    budget = Budget(BudgetSection(), PRICES)
    assert budget.price("plus", 1000, 2000) == (7.0, "CNY")
    assert budget.price("plus", 1000, 0, 400) == (pytest.approx(0.8), "CNY")
    assert budget.price("mini", 10, 10, 10) == (0.01, "USD")
    assert budget.price("none", 10) == (None, "")


def test_what_is_under_way_counts_until_it_is_known_what_it_cost():
    budget = Budget(BudgetSection(max_tokens=100), PRICES)
    first = budget.reserve("plus", 60)
    with pytest.raises(BudgetReached, match="60 tokens are spent or under way"):
        budget.reserve("plus", 41)
    budget.settle(first, 0, None)  # refused: nothing was paid
    second = budget.reserve("plus", 60)
    budget.settle(second, 90, None)
    budget.reserve("plus", 10)
    with pytest.raises(BudgetReached):
        budget.reserve("plus", 1)


def test_money_adds_up_to_its_limit():
    budget = Budget(BudgetSection(max_cost=0.3), {"m": Price(input=100.0)})
    for _ in range(3):
        budget.settle(budget.reserve("m", 1), 1, 0.1)
    with pytest.raises(BudgetReached, match="budget.max_cost=0.3"):
        budget.reserve("m", 1)


def test_models_with_prices_in_two_currencies_are_refused_under_a_limit_of_money():
    budget = Budget(BudgetSection(max_cost=1), PRICES)
    budget.check_model("plus", "llm.a.model_name")
    budget.check_model("plus", "llm.b.model_name")
    with pytest.raises(ConfigError, match="CNY and USD"):
        budget.check_model("mini", "llm.c.model_name")
    Budget(BudgetSection(), PRICES).check_model("none", "llm.d.model_name")
