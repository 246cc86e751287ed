"""What summaries would cost, by policy."""

import pytest

from toolmem.errors import ConfigError
from toolmem.research import summarization_costs


@pytest.fixture
def calls(call):
    """Eight conversations of five calls of one tool; the first also calls another."""
    own = [
        call(input={"q": n}, output=str(n), id=str(n), metadata={"conversation_id": str(n // 5)})
        for n in range(40)
    ]
    return [call("once", output="x", metadata={"conversation_id": "0"}), *own, own[-1]]


def test_each_policy_has_its_requests_tokens_and_the_age_of_guidance(calls):
    found = summarization_costs(calls)
    assert list(found.requests) == [16, 9, 5, 5]
    assert found.prompt_tokens.is_monotonic_decreasing
    fresh, skip = found.loc["always fresh"], found.loc["smart skip, 1 new call"]
    assert fresh.prompt_tokens == skip.prompt_tokens + skip.saved_prompt_tokens
    assert (list(found.age_median), list(found.age_95)) == ([2, 2, 4, 4], [4, 4, 9, 9])
    assert skip.cost == pytest.approx((skip.prompt_tokens * 0.0008 + 9 * 270 * 0.002) / 1000)


def test_a_policy_and_a_price_of_one_s_own_are_counted_and_no_model_is_asked(calls):
    own = ["llm.default.model_name=mine", "prices.mine.input=0.5", "llm.default.backend=dashscope"]
    (row,) = summarization_costs(calls, {"rare": {"min_new_calls": 30}}, overrides=own).itertuples()
    assert (row.Index, row.requests, row.cost) == ("rare", 3, row.prompt_tokens * 0.5 / 1000)
    with pytest.raises(ConfigError, match="min_new_cals: unknown"):
        summarization_costs(calls, {"wrong": {"min_new_cals": 30}})
