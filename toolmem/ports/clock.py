"""The clock that everything asks."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Time, so that tests can drive it."""

    def now(self) -> datetime:
        """Aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None: ...
