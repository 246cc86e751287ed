"""A clock for tests: sleeping takes no time and is recorded."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class TestClock:
    """A clock that starts on 1 January 2026, and moves on by `sleep` and `advance` alone."""

    __test__ = False  # tells pytest that this is no test class

    def __init__(self) -> None:
        self.waits: list[float] = []  # the seconds of each sleep, in order
        self._passed = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        return self._passed

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._passed += seconds

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self._passed += seconds
        await asyncio.sleep(0)
