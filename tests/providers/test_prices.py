"""The price table and the prices that come with toolmem."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem import ToolMemApp
from toolmem.config.settings import Price
from toolmem.providers.prices import PriceTable


def test_prompt_cached_and_completion_tokens_have_their_prices():
    table = PriceTable({"m": Price(input=2.0, output=10.0, cached_input=0.5, currency="USD")})
    assert table("m", 1000, 100, 400) == (pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 10), "USD")


def test_cached_tokens_without_a_price_of_their_own_cost_as_others():
    assert PriceTable({"m": Price(input=2.0)})("m", 1000, 50, 400) == (2.0, "CNY")


def test_a_model_without_a_price_has_no_cost():
    table = PriceTable({"qwen-plus": Price(input=1.0)})
    assert table("qwen-plus-2025-04-28", 1000) == (None, "")
    assert "qwen-plus-2025-04-28" not in table
    assert table.stated("qwen-plus-2025-04-28") == ""


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.data())
def test_costs_add_up(prompt, completion, data):
    cached = data.draw(st.integers(0, prompt))
    table = PriceTable({"m": Price(input=0.8, output=2.0, cached_input=0.16)})
    whole, _ = table("m", prompt, completion, cached)
    parts = [table("m", prompt - cached), table("m", cached, 0, cached), table("m", 0, completion)]
    assert whole == pytest.approx(sum(cost or 0.0 for cost, _ in parts))
    assert whole <= table("m", prompt, completion)[0] + 1e-9


def test_the_prices_that_come_along_are_dated_and_sourced():
    prices = ToolMemApp().settings.prices
    assert {"qwen-plus", "qwen-turbo", "qwen-flash", "qwen-max", "text-embedding-v4"} <= set(prices)
    for model, price in prices.items():
        assert price.currency == "CNY", model
        assert price.date, model
        assert "help.aliyun.com" in price.source, model
        assert price.cached_input is None or price.cached_input == pytest.approx(0.2 * price.input), model
        assert 0 < price.input < 0.05, "per 1000 tokens, not per million"


def test_users_add_their_own_prices():
    table = PriceTable(ToolMemApp(overrides=["prices.mine.input=3", "prices.mine.currency=USD"]).settings.prices)
    assert table("mine", 1000) == (3.0, "USD")
    assert table.stated("mine") == "mine: 3 in, 0 out, USD per 1000 tokens"
    assert "CNY per 1000 tokens, read 2026" in table.stated("qwen-plus")


def test_a_batch_has_its_own_price_and_no_discount_of_a_cache():
    table = PriceTable({"m": Price(input=2.0, output=10.0, batch_input=1.0, batch_output=5.0), "n": Price(input=2.0)})
    assert table.batch("m", 1000, 100) == (pytest.approx(1.0 + 0.5), "CNY")
    assert table.batch("n", 1000) == (None, "")
    assert table.batch("unknown", 1000) == (None, "")
    assert PriceTable({"m": Price(input=2.0, output=10.0, batch_input=1.0)}).batch("m", 0, 1000) == (10.0, "CNY")
    assert table.stated("m") == "m: 2 (batch 1) in, 10 (batch 5) out, CNY per 1000 tokens"


def test_the_prices_of_batches_that_come_along_are_half_of_the_others():
    prices = ToolMemApp().settings.prices
    batched = {model: price for model, price in prices.items() if price.batch_input is not None}
    assert {"qwen-plus", "qwen-turbo", "qwen-flash", "qwen-max"} <= set(batched)
    for model, price in batched.items():
        assert price.batch_input == pytest.approx(price.input / 2), model
        assert (price.batch_output or 0.0) == pytest.approx(price.output / 2), model
