"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """`toolmem.protocols.Clock` driven by `advance`.

    Coroutines in `sleep` wake, in the order of their deadlines, as soon as the clock was moved past these.
    """

    def __init__(self, start: datetime = START) -> None:
        if start.tzinfo is None:
            raise ValueError(f"the start {start.isoformat()} has no time zone")
        self._start = start.astimezone(UTC)
        self._elapsed = 0.0  # seconds
        self._slept = 0  # how many sleeps there were: the order of equal deadlines
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._slept += 1
        heapq.heappush(self._sleepers, (self._elapsed + seconds, self._slept, woken))
        await woken

    @property
    def sleeping(self) -> int:
        """How many coroutines wait for the clock."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    def advance(self, seconds: float) -> None:
        """Move on by `seconds` (>= 0) and wake who has slept long enough; they run when the caller next awaits."""
        if seconds < 0:
            raise ValueError(f"a clock does not go back (advance by {seconds!r})")
        self._elapsed += seconds
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            woken = heapq.heappop(self._sleepers)[2]
            if not woken.done():
                woken.get_loop().call_soon_threadsafe(_wake, woken)

    async def elapse(self, seconds: float) -> None:
        """Move on by `seconds`, stopping at each deadline on the way, so that who sleeps again does so from there."""
        end = self._elapsed + seconds
        while True:
            await _let_others_run()
            upcoming = [deadline for deadline, _, woken in self._sleepers if not woken.done()]
            if not upcoming or min(upcoming) > end:
                break
            self.advance(max(min(upcoming) - self._elapsed, 0.0))
        self.advance(max(end - self._elapsed, 0.0))
        await _let_others_run()


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


async def _let_others_run() -> None:
    for _ in range(20):  # what a woken coroutine sets off may take several turns of the loop
        await asyncio.sleep(0)
