"""What a prefix cache that never forgets would serve, and what a dry run books for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.config.settings import Price
from toolmem.protocols import Purpose
from toolmem.providers.dry_run import DryRunLLM
from toolmem.providers.prices import PriceTable
from toolmem.research.backtest.replay import WarmPrefixCache
from toolmem.testing.clock import ManualClock


class Characters:
    """Counts each character as a token."""

    def count(self, text):
        return len(text)


class Booked:
    def __init__(self):
        self.entries = []

    def book(self, entry):
        self.entries.append(entry)


def purpose(tool="search", op="summary", workspace="team", meter=None):
    return Purpose(workspace=workspace, flow="f", op=op, tool=tool, meter=meter or Booked())


def test_the_beginning_that_a_prompt_shares_with_the_last_one_is_served():
    cache = WarmPrefixCache(Characters(), least=4)
    assert cache.served("aaaabbbb", purpose()) == 0
    assert cache.served("aaaabbcc", purpose()) == 6
    assert cache.served("aaaabbcc", purpose()) == 8


@pytest.mark.parametrize("other", [{"tool": "shell"}, {"op": "judging"}, {"workspace": "other"}])
def test_prompts_of_another_tool_op_or_workspace_share_nothing(other):
    cache = WarmPrefixCache(Characters(), least=4)
    cache.served("aaaabbbb", purpose())
    assert cache.served("aaaabbbb", purpose(**other)) == 0


def test_a_prefix_below_the_least_length_is_not_kept():
    cache = WarmPrefixCache(Characters())
    cache.served("a" * 255 + "b", purpose())
    assert cache.served("a" * 255 + "c", purpose()) == 0
    assert cache.served("a" * 255 + "cc", purpose()) == 256


@given(st.lists(st.text(alphabet="ab", max_size=12), min_size=1))
def test_no_more_than_the_prompt_is_served_and_never_what_it_does_not_begin_with(prompts):
    cache = WarmPrefixCache(Characters(), least=1)
    last = ""
    for prompt in prompts:
        served = cache.served(prompt, purpose())
        assert prompt[:served] == last[:served]
        assert served == len(prompt) or served == len(last) or prompt[served] != last[served]
        last = prompt


async def test_a_dry_run_books_the_cached_tokens_at_their_price():
    prices = PriceTable({"m": Price(input=1.0, cached_input=0.2, output=9.0)})
    meter = Booked()
    cache = WarmPrefixCache(Characters(), least=4)
    llm = DryRunLLM("m", Characters(), clock=ManualClock(), price=prices, cached=cache.served)
    for prompt in ("a" * 1000, "a" * 1000 + "b" * 500):
        completion = await llm.complete(prompt, purpose(meter=meter))
    assert [entry.cached_tokens for entry in meter.entries] == [0, 1000]
    assert [entry.cost for entry in meter.entries] == [pytest.approx(1.0), pytest.approx(0.2 + 0.5)]
    assert (completion.cached_tokens, completion.sent) == (1000, False)
