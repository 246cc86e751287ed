"""The block at the start of a session, and a store that does not answer."""

from __future__ import annotations

import asyncio
import threading

import pytest

from toolmem.errors import StoreClosed, StoreUnavailable
from toolmem.rules.prefetch import prefetch_tool_memory_rules, prefetch_tool_memory_rules_blocking

BULLET = "- **[critical]** never email Sarah"


@pytest.fixture
async def one_rule(rules):
    await rules.put_rule("send_email", "never email Sarah", priority="critical")
    return rules


@pytest.fixture
def hanging(rules, store, monkeypatch):
    async def never(*args, **named):
        await asyncio.Event().wait()

    monkeypatch.setattr(store, "list_raw", never)
    return rules


async def test_the_block_is_fetched(one_rule):
    section = await prefetch_tool_memory_rules(one_rule, ["send_email"])
    assert BULLET in section.text
    assert "工具" in (await prefetch_tool_memory_rules(one_rule, language="zh")).text
    assert (await prefetch_tool_memory_rules(one_rule, ["send_email"])).text == section.text


async def test_a_store_that_does_not_answer_raises_in_time(hanging):
    with pytest.raises(StoreUnavailable, match=r"within 0\.05 s"):
        await asyncio.wait_for(prefetch_tool_memory_rules(hanging, timeout=0.05), 60)


async def test_an_empty_block_is_the_callers_explicit_choice(hanging, caplog):
    section = await prefetch_tool_memory_rules(hanging, timeout=0.05, on_error="empty")
    assert not section
    assert "without its tool rules" in caplog.text


async def test_a_store_that_fails_raises(one_rule, store):
    await store.close()
    with pytest.raises(StoreClosed):
        await prefetch_tool_memory_rules(one_rule)
    assert not await prefetch_tool_memory_rules(one_rule, on_error="empty")


async def test_a_synchronous_host_gets_it_inside_and_outside_a_running_loop(one_rule):
    assert BULLET in prefetch_tool_memory_rules_blocking(one_rule).text
    assert BULLET in (await asyncio.to_thread(prefetch_tool_memory_rules_blocking, one_rule, ["send_email"])).text


async def test_a_synchronous_host_may_run_it_where_the_store_lives(one_rule):
    loop = asyncio.get_running_loop()

    def call(work):
        return asyncio.run_coroutine_threadsafe(work, loop).result(10)

    section = await asyncio.to_thread(lambda: prefetch_tool_memory_rules_blocking(one_rule, call=call))
    assert BULLET in section.text


async def test_a_synchronous_host_is_not_kept_waiting_either(hanging):
    with pytest.raises(StoreUnavailable):
        prefetch_tool_memory_rules_blocking(hanging, timeout=0.05)
    assert not prefetch_tool_memory_rules_blocking(hanging, timeout=0.05, on_error="empty")


async def test_a_store_that_holds_up_its_whole_loop_does_not_hold_up_a_synchronous_host(rules, store, monkeypatch):
    release = threading.Event()

    async def blocked(*args, **named):
        release.wait(10)
        raise StoreUnavailable("too late")

    monkeypatch.setattr(store, "list_raw", blocked)
    with pytest.raises(StoreUnavailable, match="did not answer"):
        prefetch_tool_memory_rules_blocking(rules, timeout=0.05)
    release.set()
