"""Pacing, the cap in flight, Retry-After and denials, as the server sees them."""

import asyncio
import subprocess
import sys
import time

import pytest

from toolmem.errors import BudgetReached, ModelDenied, ModelError, ModelOverloaded
from toolmem.flow.runner import SystemClock
from toolmem.providers.budget import Budget
from toolmem.providers.pacing import PacingGate, shared_gate
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.testing.model_script import FAULTS, PASSING, Behaviour, Rule, Script
from toolmem.testing.model_server import ModelServer

pytestmark = pytest.mark.filterwarnings("error")

TICK = 0.01  # seconds by which a clock may be read too early


def gate(interval):
    return PacingGate(interval, SystemClock())


def keep_the_interval(server, begun, interval):
    """Seen from `begun`, before the first: no request came before its turn. They may be late, on a busy machine."""
    return all(request.started - begun >= interval * number - TICK for number, request in enumerate(server.requests))


async def ask(llm, book, count, op="op"):
    return await asyncio.gather(
        *(llm.complete(f"prompt {number}", book.purpose(op)) for number in range(count)), return_exceptions=True
    )


async def test_requests_of_an_op_start_one_per_interval_retries_included(make_llm, book):
    with ModelServer(Script([Rule(FAULTS["unavailable"], every=3)])) as server:
        llm = make_llm(server)
        begun = time.monotonic()
        replies = await ask(llm.for_op(gate(0.15)), book, 6)
        await llm.close()
    assert not [reply for reply in replies if isinstance(reply, Exception)]
    assert len(server.requests) == 8
    assert keep_the_interval(server, begun, 0.15)


async def test_two_flows_of_one_op_share_one_gate(make_llm, book):
    with ModelServer(Script(latency=0.05)) as server:
        llm = make_llm(server)
        gates = [shared_gate(("test_retrying", llm.backend), 0.15, SystemClock()) for _ in range(2)]
        begun = time.monotonic()
        await asyncio.gather(*(ask(llm.for_op(one), book, 3) for one in gates))
        await llm.close()
    assert len(server.requests) == 6
    assert keep_the_interval(server, begun, 0.15)


COLD_START = """
import asyncio, sys
from pydantic import SecretStr
from toolmem.config.settings import LLMParams, LLMSettings
from toolmem.flow.runner import SystemClock
from toolmem.providers.pacing import PacingGate
from toolmem.providers.dashscope import DashScopeLLM
from toolmem.providers.openai_compatible import OpenAICompatibleLLM
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.protocols import Purpose

class Book:
    def book(self, entry): pass

kind = {"dashscope": DashScopeLLM, "openai_compatible": OpenAICompatibleLLM}[sys.argv[1]]
settings = LLMSettings(model_name="m", params=LLMParams(base_url=sys.argv[2], api_key=SecretStr("k")))
llm = kind(settings, tokenizer=QwenTokenizer(), clock=SystemClock()).for_op(PacingGate(1.0, SystemClock()))

async def main():
    await asyncio.gather(*(llm.complete("p", Purpose("w", "f", "o", "t", Book())) for _ in range(2)))

asyncio.run(main())
"""


def test_the_time_that_the_sdk_takes_to_load_does_not_eat_up_the_first_interval(backend):
    with ModelServer() as server:
        url = server.dashscope_url if backend == "dashscope" else server.openai_url
        subprocess.run([sys.executable, "-W", "error::ResourceWarning", "-c", COLD_START, backend, url], check=True)
    assert len(server.requests) == 2
    assert server.shortest_gap() > 0.5  # 1.0, but for the way to the server; loading takes longer than that


async def test_ops_that_are_paced_apart_do_not_keep_places_from_each_other(make_llm, book):
    """Eight waiting requests of a slow op hold one place between them, so the other op is not slowed down."""
    with ModelServer() as server:
        llm = make_llm(server, max_concurrency=2)
        slow = asyncio.ensure_future(ask(llm.for_op(gate(30.0)), book, 8, "slow"))
        while not server.requests:
            await asyncio.sleep(0.01)
        await ask(llm.for_op(gate(0.02)), book, 8, "quick")
        asked = len(server.requests)
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        await llm.close()
    assert 9 <= asked < 9 + 4  # of the slow op the first, which went at once


async def test_waiting_is_booked_apart_from_the_request(make_llm, book):
    with ModelServer(Script(latency=0.02)) as server:
        llm = make_llm(server)
        begun = time.monotonic()
        await ask(llm.for_op(gate(0.1)), book, 3)
        taken = time.monotonic() - begun
        await llm.close()
    waited = sorted(entry.waited for entry in book.entries)
    assert waited[1] >= 0.1 - TICK
    assert waited[2] >= 0.2 - TICK
    assert all(entry.seconds >= 0.02 for entry in book.entries)
    assert all(entry.waited + entry.seconds <= taken + TICK for entry in book.entries)  # nothing is booked twice


async def test_retry_after_holds_everybody_back(make_llm, book):
    with ModelServer(Script([Rule(Behaviour("r", 429, retry_after=1.0, body=b"{}"), nth=(3,))])) as server:
        llm = make_llm(server, max_concurrency=1)
        one, other = llm.for_op(gate(0.0)), llm.for_op(gate(0.01))
        replies = await asyncio.gather(ask(one, book, 4), ask(other, book, 4))
        await llm.close()
    assert not [reply for part in replies for reply in part if isinstance(reply, Exception)]
    starts = server.starts()
    assert starts[3] - starts[2] >= 1.0 - TICK
    assert starts[-1] - starts[3] < 5 * 1.0  # not again before each of the five
    assert len(starts) == 9


@pytest.mark.parametrize(
    ("said", "seconds"), [("2", 2.0), ("0.5", 0.5), ("-3", 0.0), ("86400", 300.0), ("soon", None), ("nan", None)]
)
async def test_retry_after_is_read_with_reason(said, seconds, make_llm, book):
    with ModelServer(Script([Rule(Behaviour("r", 503, retry_after=said, body=b"{}"))])) as server:
        llm = make_llm(server, max_retries=0)
        with pytest.raises(ModelOverloaded) as caught:
            await llm.complete("p", book.purpose())
        await llm.close()
    assert caught.value.retry_after == seconds


async def test_retry_after_may_be_a_date(make_llm, book):
    from datetime import UTC, datetime, timedelta
    from email.utils import format_datetime

    date = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    with ModelServer(Script([Rule(Behaviour("r", 429, retry_after=date, body=b"{}"))])) as server:
        llm = make_llm(server, max_retries=0)
        with pytest.raises(ModelOverloaded) as caught:
            await llm.complete("p", book.purpose())
        await llm.close()
    assert 17 < caught.value.retry_after <= 20


async def test_a_hundred_unpaced_requests_take_as_long_as_the_cap_makes_them(make_llm, book):
    cap, latency = 10, 0.05
    with ModelServer(Script(latency=latency)) as server:
        llm = make_llm(server, max_concurrency=cap)
        await llm.complete("loads what is loaded once", book.purpose())
        begun = time.monotonic()
        await ask(llm, book, 100)
        taken = time.monotonic() - begun
        await llm.close()
    assert server.most_in_flight == cap
    assert 100 / cap * latency <= taken < 100 * latency  # on a busy machine too, far from one after the other


async def test_a_denial_stops_at_the_first_request(make_llm, book):
    with ModelServer(Script(key="another")) as server:
        llm = make_llm(server)
        errors = await ask(llm, book, 20)
        await llm.close()
    assert [type(error) for error in errors] == [ModelDenied] * 20
    assert all(error.fatal for error in errors)
    assert [(request.status, request.behaviour) for request in server.requests] == [(401, "unauthorized")]
    assert book.outcomes == ["error: ModelDenied"]


async def test_a_denial_is_not_held_against_later_requests(make_llm, book):
    with ModelServer(Script([Rule(FAULTS["arrears"], nth=(1,))])) as server:
        llm = make_llm(server)
        with pytest.raises(ModelDenied):
            await llm.complete("before the bill was paid", book.purpose())
        await llm.complete("after", book.purpose())
        await llm.close()
    assert len(server.requests) == 2


async def test_a_first_request_that_hangs_does_not_hold_up_the_others_for_long(make_llm, book, monkeypatch):
    monkeypatch.setattr("toolmem.providers.request_queue.ALONE", 0.1)
    with ModelServer(Script([Rule(Behaviour(hang=True), nth=(1,))])) as server:
        llm = make_llm(server, timeout=600.0, max_retries=0)
        first = asyncio.ensure_future(llm.complete("hangs", book.purpose()))
        while not server.requests:
            await asyncio.sleep(0.01)
        async with asyncio.timeout(300):
            await ask(llm, book, 5)
        assert not first.done()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await llm.close()


@pytest.mark.parametrize(("retries", "requests"), [(0, 1), (2, 3)])
async def test_an_op_may_choose_its_own_number_of_retries(retries, requests, make_llm, book):
    with ModelServer(Script.failing("server_error")) as server:
        llm = make_llm(server, max_retries=7)
        with pytest.raises(ModelOverloaded):
            await llm.for_op(max_retries=retries).complete("p", book.purpose())
        await llm.close()
    assert len(server.requests) == requests


async def test_with_a_third_of_all_prompts_failing_for_good_the_others_are_answered(make_llm, book):
    with ModelServer(Script.failing("server_error", share=0.3)) as server:
        llm = make_llm(server, max_retries=1)
        replies = await ask(llm, book, 60)
        await llm.close()
    failed = [number for number, reply in enumerate(replies) if isinstance(reply, ModelError)]
    assert 8 <= len(failed) <= 28
    assert len(server.requests) == 60 + len(failed)
    assert book.outcomes.count("ok") == 60 - len(failed)


async def test_requests_that_were_cancelled_while_waiting_leave_their_place(make_llm, book):
    with ModelServer(Script(latency=0.03)) as server:
        llm = make_llm(server, max_concurrency=1)
        tasks = [asyncio.ensure_future(llm.complete(f"p{n}", book.purpose())) for n in range(6)]
        await asyncio.sleep(0.02)
        for task in tasks[1:5]:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        await llm.complete("still served", book.purpose())
        await llm.close()
    assert [isinstance(one, asyncio.CancelledError) for one in done] == [False, True, True, True, True, False]
    assert len(server.requests) == 3


# ---------------------------------------------------------------- budget


async def test_the_request_that_would_exceed_the_budget_is_not_sent(make_llm, book):
    with ModelServer() as server:
        llm = make_llm(server)
        first = await llm.complete("one two three", book.purpose())
        await llm.close()
        spent = first.prompt_tokens + first.completion_tokens
        for limit, sent in ((spent + 3, 2), (spent + 2, 1)):
            server.requests.clear()
            budget = Budget(max_tokens=limit)
            llm = make_llm(server, budget=budget)
            await llm.complete("one two three", book.purpose())
            if sent == 2:
                await llm.complete("one two three", book.purpose())
            with pytest.raises(BudgetReached, match=r"budget\.max_tokens"):
                await llm.complete("one two three", book.purpose())
            await llm.close()
            assert len(server.requests) == sent
            assert budget.tokens == sent * spent


async def test_requests_in_flight_count_against_the_budget(make_llm, book):
    prompt_tokens = QwenTokenizer().count("prompt 0")
    budget = Budget(max_tokens=3 * prompt_tokens)
    with ModelServer(Script(latency=0.05)) as server:
        llm = make_llm(server, budget=budget)
        results = await ask(llm, book, 10)
        await llm.close()
    assert any(isinstance(result, BudgetReached) for result in results)
    assert len(server.requests) <= 3
    assert len(book.entries) == len(server.requests)


async def test_retries_are_held_against_the_budget(make_llm, book):
    budget = Budget(max_tokens=5)
    with ModelServer(Script.failing("garbage")) as server:
        llm = make_llm(server, budget=budget)
        with pytest.raises(BudgetReached):
            await llm.complete("one two three", book.purpose())
        await llm.close()
    assert len(server.requests) == 1
    assert budget.tokens == 3


def test_what_may_pass_and_what_cannot_are_told_apart():
    assert "hang" in PASSING
    assert "unauthorized" not in PASSING
