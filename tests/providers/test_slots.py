"""Places in flight: never more than there are, none is lost."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.providers.slots import Slots


@given(st.integers(1, 4), st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=14), st.randoms())
def test_never_more_than_the_places_and_all_come_back(size, users, chance: random.Random):
    async def scenario():
        slots, inside, most = Slots(size), 0, 0

        async def use(turns):
            nonlocal inside, most
            async with slots:
                inside += 1
                most = max(most, inside)
                try:
                    for _ in range(turns):
                        await asyncio.sleep(0)
                finally:
                    inside -= 1

        tasks = [asyncio.ensure_future(use(turns)) for turns, _ in users]
        for task, (_, dies) in zip(tasks, users, strict=True):
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
            if dies:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert most <= size
        for _ in range(size):
            await asyncio.wait_for(slots.acquire(), 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(slots.acquire(), 0.001)

    asyncio.run(scenario())


async def test_places_are_given_in_the_order_of_asking():
    slots, order = Slots(1), []

    async def use(number):
        async with slots:
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(use(number) for number in range(6)))
    assert order == list(range(6))


async def test_a_place_that_was_granted_to_somebody_cancelled_goes_on():
    slots = Slots(1)
    await slots.acquire()
    waiting = asyncio.ensure_future(slots.acquire())
    await asyncio.sleep(0)
    slots.release()  # granted, but the waiter has not run yet
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.wait_for(slots.acquire(), 1)


def test_a_loop_that_ended_with_waiters_does_not_swallow_places():
    slots = Slots(1)

    async def leave_one_waiting():
        await slots.acquire()
        loop = asyncio.get_running_loop()
        slots._waiters.append((loop, loop.create_future()))

    asyncio.run(leave_one_waiting())
    slots.release()
    asyncio.run(asyncio.wait_for(slots.acquire(), 1))


def test_a_place_that_a_closed_loop_held_goes_to_the_others():
    slots = Slots(1)
    dead = asyncio.new_event_loop()
    dead.run_until_complete(slots.acquire())
    dead.close()
    asyncio.run(asyncio.wait_for(slots.acquire(), 1))


def test_there_must_be_a_place():
    with pytest.raises(ValueError, match="at least 1"):
        Slots(0)
