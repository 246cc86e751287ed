"""The clock that tests drive."""

import asyncio
from datetime import datetime, timedelta

import pytest

from toolmem.testing.clock import START, ManualClock


async def test_it_stands_still_until_it_is_moved():
    clock = ManualClock()
    assert clock.now() == START
    clock.advance(1.5)
    assert (clock.now() - START, clock.monotonic()) == (timedelta(seconds=1.5), 1.5)


async def test_sleepers_wake_in_the_order_of_their_deadlines_and_not_before():
    clock, woken = ManualClock(), []

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    tasks = [asyncio.create_task(sleeper(seconds)) for seconds in (3, 1, 2, 0)]
    await clock.elapse(0.999)
    assert (woken, clock.sleeping) == ([0], 3)
    await clock.elapse(1.001)
    assert woken == [0, 1, 2]
    await clock.elapse(1)
    assert woken == [0, 1, 2, 3]
    await asyncio.gather(*tasks)


async def test_who_sleeps_again_does_so_from_its_own_deadline():
    clock, times = ManualClock(), []

    async def ticker() -> None:
        for _ in range(5):
            await clock.sleep(1)
            times.append(clock.monotonic())

    task = asyncio.create_task(ticker())
    await clock.elapse(10)
    await task
    assert times == [1, 2, 3, 4, 5]
    assert clock.monotonic() == 10


async def test_a_cancelled_sleeper_is_forgotten():
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(5))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert clock.sleeping == 0
    clock.advance(10)


def test_it_never_goes_back_and_starts_in_a_zone():
    with pytest.raises(ValueError, match="back"):
        ManualClock().advance(-1)
    with pytest.raises(ValueError, match="zone"):
        ManualClock(datetime(2026, 1, 1))
