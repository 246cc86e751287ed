"""The budget and its edges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.errors import BudgetReached, ConfigError
from toolmem.providers.budget import Budget


def price(model, prompt, completion, cached):
    table = {"cheap": (0.1, "CNY"), "dear": (5.0, "CNY"), "foreign": (1.0, "USD")}
    if model not in table:
        return None, ""
    rate, currency = table[model]
    return rate * (prompt + completion), currency


def test_without_a_limit_nothing_is_checked():
    budget = Budget()
    assert not budget.limited
    budget.reserve("unknown", 10**9)


def test_exactly_the_budget_is_allowed_and_one_more_is_not():
    Budget(max_tokens=10).reserve("m", 10)
    with pytest.raises(BudgetReached, match="10 tokens; 0 are spent or under way"):
        Budget(max_tokens=10).reserve("m", 11)


def test_a_budget_of_nothing_allows_nothing():
    with pytest.raises(BudgetReached) as caught:
        Budget(max_tokens=0).reserve("m", 1)
    assert caught.value.fatal
    with pytest.raises(BudgetReached):
        Budget(max_cost=0.0, price=price).reserve("cheap", 1)


def test_what_is_under_way_counts_until_it_is_settled():
    budget = Budget(max_tokens=10)
    first = budget.reserve("m", 6)
    with pytest.raises(BudgetReached, match="6 are spent or under way"):
        budget.reserve("m", 5)
    budget.settle(first, 0, None)
    budget.reserve("m", 10)


def test_money_has_a_limit_too_and_binary_fractions_do_not_break_it():
    budget = Budget(max_cost=0.3, price=price)
    for _ in range(3):
        budget.settle(budget.reserve("cheap", 1), 1, 0.1)
    with pytest.raises(BudgetReached, match=r"budget.max_cost: 0.3 CNY; 0.3 is spent"):
        budget.check("cheap", 1)


def test_the_reply_of_a_request_under_way_may_pass_the_limit_and_no_further_one():
    budget = Budget(max_tokens=10)
    budget.settle(budget.reserve("m", 8), 50, None)
    assert budget.tokens == 50
    with pytest.raises(BudgetReached):
        budget.reserve("m", 1)


def test_a_model_that_cannot_be_held_against_the_budget_is_refused():
    budget = Budget(max_cost=1.0, price=price)
    with pytest.raises(ConfigError, match="'unknown' has no price"):
        budget.check_model("unknown")
    budget.check_model("cheap")
    with pytest.raises(ConfigError, match="CNY and in USD"):
        budget.check_model("foreign")


@given(st.integers(0, 200), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.booleans()), max_size=30))
def test_prompts_alone_never_pass_the_budget(limit, requests):
    budget, open_ones, prompts = Budget(max_tokens=limit), [], 0
    for prompt, completion, settles in requests:
        try:
            open_ones.append((budget.reserve("m", prompt), prompt, completion))
        except BudgetReached:
            continue
        prompts += prompt
        if settles:
            reservation, sent, replied = open_ones.pop(0)
            budget.settle(reservation, sent + replied, None)
    assert prompts <= limit
