"""Pacing: at most one request starts per interval, whoever asks, in whichever flow, thread or event loop.

A gate has one queue. Only the head of the queue sleeps; the others wait to be woken by the one before them. So a
waiter that is cancelled leaves no gap, and nobody overtakes.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field

from toolmem.protocols import Clock


@dataclass(eq=False, slots=True)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    promoted: asyncio.Future[None]


@dataclass(eq=False)
class _Queue:
    """What all gates of one key share."""

    clock: Clock
    lock: threading.Lock = field(default_factory=threading.Lock)
    waiters: deque[_Waiter] = field(default_factory=deque)
    last_start: float | None = None  # on the clock's monotonic time
    held_until: float = 0.0  # the same

    def enter(self, waiter: _Waiter) -> None:
        with self.lock:
            # A loop that was closed with waiters in the queue never comes back for them.
            alone = not self.waiters
            while self.waiters and self.waiters[0].loop.is_closed():
                self.waiters.popleft()
                alone = True
            self.waiters.append(waiter)
            if alone:
                self._promote()

    def leave(self, waiter: _Waiter) -> None:
        with self.lock:
            if waiter in self.waiters:
                self.waiters.remove(waiter)
            self._promote()

    def _promote(self) -> None:
        """Wake the head of the queue, in its own event loop."""
        while self.waiters:
            head = self.waiters[0]
            try:
                head.loop.call_soon_threadsafe(_wake, head.promoted)
            except RuntimeError:  # its loop is closed
                self.waiters.popleft()
            else:
                return

    def start_or_delay(self, interval: float) -> float:
        """0.0: the caller starts now, and that is noted. Otherwise so many seconds are left."""
        with self.lock:
            now = self.clock.monotonic()
            free = self.held_until
            if self.last_start is not None:
                free = max(free, self.last_start + interval)
            if free > now:
                return free - now
            self.last_start = now
            return 0.0

    def hold_back(self, seconds: float) -> None:
        with self.lock:
            self.held_until = max(self.held_until, self.clock.monotonic() + seconds)


def _wake(promoted: asyncio.Future[None]) -> None:
    if not promoted.done():
        promoted.set_result(None)


class PacingGate:
    """Lets one caller through per `interval` seconds, first come, first served; 0 lets all through.

    `hold_back` (a server's Retry-After) holds everyone, whatever the interval.
    """

    def __init__(self, interval: float, clock: Clock) -> None:
        if interval < 0:
            raise ValueError(f"interval: expected seconds >= 0, got {interval}")
        self.interval = interval
        self._queue = _Queue(clock)

    async def turn(self) -> float:
        """Wait for one's turn; answers the seconds waited. Retries take a turn like first attempts do."""
        queue = self._queue
        loop = asyncio.get_running_loop()
        arrived = queue.clock.monotonic()
        waiter = _Waiter(loop, loop.create_future())
        queue.enter(waiter)
        try:
            await waiter.promoted
            while (delay := queue.start_or_delay(self.interval)) > 0:
                await queue.clock.sleep(delay)
        finally:
            queue.leave(waiter)
        return max(0.0, queue.clock.monotonic() - arrived)

    def hold_back(self, seconds: float) -> None:
        """Nobody starts for so many seconds from now on."""
        self._queue.hold_back(seconds)


_shared: dict[Hashable, _Queue] = {}  # one for each paced op: few, and kept, since the last start counts
_shared_lock = threading.Lock()


def shared_gate(key: Hashable, interval: float, clock: Clock) -> PacingGate:
    """A gate that waits in one queue with all gates of this key and clock in the process."""
    gate = PacingGate(interval, clock)
    with _shared_lock:
        gate._queue = _shared.setdefault((key, clock), gate._queue)
    return gate
