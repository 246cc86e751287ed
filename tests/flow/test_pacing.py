from __future__ import annotations

import asyncio
import itertools
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolmem.flow.runner import SystemClock
from toolmem.providers.pacing import PacingGate, shared_gate
from toolmem.testing.clock import ManualClock


async def test_at_most_one_start_per_interval(clock):
    gate = PacingGate(2.0, clock)
    starts = []

    async def ask(name):
        waited = await gate.turn()
        starts.append((name, clock.monotonic(), waited))

    tasks = [asyncio.create_task(ask(name)) for name in "abc"]
    await clock.elapse(10)
    await asyncio.gather(*tasks)
    assert starts == [("a", 0.0, 0.0), ("b", 2.0, 2.0), ("c", 4.0, 4.0)]
    task = asyncio.create_task(ask("d"))
    await clock.elapse(0)
    await task
    assert starts[-1] == ("d", 10.0, 0.0)


async def test_an_interval_of_zero_lets_everybody_through(clock):
    gate = PacingGate(0.0, clock)
    assert await asyncio.gather(*(gate.turn() for _ in range(50))) == [0.0] * 50


async def test_a_cancelled_waiter_leaves_no_gap(clock):
    gate = PacingGate(5.0, clock)
    starts = {}

    async def ask(name):
        await gate.turn()
        starts[name] = clock.monotonic()

    tasks = {name: asyncio.create_task(ask(name)) for name in "abcd"}
    await clock.elapse(1)
    tasks["b"].cancel()  # the head of the queue, in its sleep
    tasks["c"].cancel()  # waits behind it
    await clock.elapse(20)
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    assert starts == {"a": 0.0, "d": 5.0}


async def test_retry_after_holds_everybody_back(clock):
    gate = PacingGate(1.0, clock)
    starts = []

    async def ask():
        await gate.turn()
        starts.append(clock.monotonic())

    tasks = [asyncio.create_task(ask()) for _ in range(3)]
    await clock.elapse(0.5)
    gate.hold_back(30)
    gate.hold_back(3)  # a shorter one does not shorten it
    await clock.elapse(60)
    await asyncio.gather(*tasks)
    assert starts == [0.0, 30.5, 31.5]


async def test_retry_after_holds_back_an_interval_of_zero_too(clock):
    gate = PacingGate(0.0, clock)
    gate.hold_back(4)
    task = asyncio.create_task(gate.turn())
    await clock.elapse(4)
    assert await task == 4.0


async def test_gates_of_one_key_wait_in_one_queue(clock):
    first = shared_gate("judge", 1.0, clock)
    second = shared_gate("judge", 1.0, clock)
    other = shared_gate("summary", 1.0, clock)
    tasks = [asyncio.create_task(gate.turn()) for gate in (first, second, other)]
    await clock.elapse(1)
    assert await asyncio.gather(*tasks) == [0.0, 1.0, 0.0]
    del first, second
    later = asyncio.create_task(shared_gate("judge", 1.0, clock).turn())  # the last start still counts
    await clock.elapse(1)
    assert await later == 1.0


def test_a_negative_interval_is_refused():
    with pytest.raises(ValueError, match="seconds >= 0"):
        PacingGate(-1, ManualClock())


def test_threads_with_event_loops_of_their_own_share_a_gate():
    key = object()
    starts: list[float] = []
    lock = threading.Lock()

    async def ask():
        await shared_gate(key, 0.02, SystemClock()).turn()
        with lock:
            starts.append(time.monotonic())

    async def some():
        await asyncio.gather(*(ask() for _ in range(4)))

    begun = time.monotonic()
    threads = [threading.Thread(target=lambda: asyncio.run(some())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(starts) == 16
    assert all(start - begun >= number * 0.02 * 0.95 for number, start in enumerate(sorted(starts)))


def test_a_loop_that_was_closed_with_waiters_does_not_block_the_others():
    clock = SystemClock()
    gate = PacingGate(0.05, clock)
    dead = asyncio.new_event_loop()

    async def abandon():
        await gate.turn()
        tasks = [dead.create_task(gate.turn()) for _ in range(2)]
        await asyncio.sleep(0)
        return tasks

    abandoned = dead.run_until_complete(abandon())
    dead.close()
    assert asyncio.run(asyncio.wait_for(gate.turn(), 5)) >= 0.0
    for task in abandoned:  # closing their loop left them pending; that is what this test is about
        task._log_destroy_pending = False
        task.get_coro().close()


requests = st.lists(
    st.tuples(
        st.floats(0, 20),  # arrival
        st.none() | st.floats(0, 20),  # gives up so long after it
        st.none() | st.floats(0.1, 10),  # once started: Retry-After
    ),
    min_size=1,
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(interval=st.sampled_from([0.0, 0.5, 1.0, 3.0]), plan=requests)
def test_starts_keep_the_interval_the_order_and_retry_after(interval, plan, virtual_time):
    async def simulate(clock):
        gate = PacingGate(interval, clock)
        starts: list[tuple[float, float, float]] = []
        holds: list[tuple[float, float]] = []

        async def ask(arrival, retry_after):
            waited = await gate.turn()
            now = clock.monotonic()
            starts.append((now, arrival, waited))
            if retry_after is not None:
                gate.hold_back(retry_after)
                holds.append((now, now + retry_after))

        async def arrive(arrival, gives_up, retry_after):
            await clock.sleep(arrival)
            try:
                await asyncio.wait_for(ask(clock.monotonic(), retry_after), gives_up)
            except TimeoutError:
                return "gave up"
            return "started"

        ended = await asyncio.gather(*(arrive(*one) for one in plan))
        assert ended.count("started") == len(starts)
        return starts, holds

    starts, holds = virtual_time(simulate)
    times = [start for start, _, _ in starts]
    assert times == sorted(times)
    assert all(later - earlier >= interval - 1e-9 for earlier, later in itertools.pairwise(times))
    arrivals = [arrival for _, arrival, _ in starts]
    assert arrivals == sorted(arrivals)  # first come, first served
    assert all(waited == pytest.approx(start - arrival, abs=1e-6) for start, arrival, waited in starts)
    for since, until in holds:
        assert not [start for start in times if since + 1e-9 < start < until - 1e-9]
    # Nobody waits for longer than the rules ask: each start is at its arrival, an interval after the one before it,
    # or at the end of a hold.
    for position, (start, arrival, _) in enumerate(starts):
        reasons = [arrival, *(until for _, until in holds)]
        if position:
            reasons.append(times[position - 1] + interval)
        assert any(abs(start - reason) < 1e-6 for reason in reasons)
