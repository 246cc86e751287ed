"""Pacing: at most one request starts per interval, whoever asks, in whichever flow, thread or event loop.

A gate has one queue. Only the head of the queue sleeps; the others wait behind it. So a waiter that is cancelled leaves
no gap, and nobody overtakes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Hashable
from dataclasses import dataclass, field

from toolmem.protocols import Clock
from toolmem.providers.slots import Slots


@dataclass(eq=False)
class _Queue:
    """What all gates of one key share."""

    clock: Clock
    head: Slots = field(default_factory=lambda: Slots(1))
    lock: threading.Lock = field(default_factory=threading.Lock)
    last_start: float | None = None  # on the clock's monotonic time
    held_until: float = 0.0  # the same

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
        arrived = queue.clock.monotonic()
        async with queue.head:
            await asyncio.sleep(0)  # who asks at the same time stands in the queue before this one starts
            while (delay := queue.start_or_delay(self.interval)) > 0:
                await queue.clock.sleep(delay)
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
