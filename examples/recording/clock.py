"""The scripted clock: what time it is in a recording. No part of the recording reads the machine's clock for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class ScriptedClock:
    """Time that moves only when the script says so, so that rate limits and calendars answer alike every time."""

    def __init__(self, now: datetime) -> None:
        self._now = now.astimezone(UTC)

    def now(self) -> datetime:
        """Aware, UTC."""
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    def at_least(self, moment: datetime) -> None:
        """Move on to `moment`; never back."""
        self._now = max(self._now, moment.astimezone(UTC))
