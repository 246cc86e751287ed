"""The test `clock`: when a call is made, or what moment one of its arguments tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date, datetime, time, tzinfo
from typing import Any

from toolmem.errors import RequestError
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME = late_pattern(r"([01]?\d|2[0-3]):([0-5]\d)")
_DATE = late_pattern(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:\s?(?:Z|[+-]\d{2}:?\d{2}))?)?", re.ASCII
)
_KEYS = frozenset(("weekday", "from", "to", "of"))
_MOST_DATES = 1_000  # in one argument


@dataclass(frozen=True, slots=True)
class ClockTest:
    """Days of the week, and a span of the day; from after to runs over midnight."""

    weekdays: tuple[int, ...] = ()  # 0: Monday; (): every day
    start: time | None = None
    end: time | None = None  # not in the span; the same as the start: the whole day
    of: str = "now"  # or the argument that tells the moment

    def as_written(self) -> dict[str, Any]:
        told: dict[str, Any] = {"weekday": [DAYS[each] for each in self.weekdays]} if self.weekdays else {}
        if self.start is not None and self.end is not None:
            told |= {"from": f"{self.start:%H:%M}", "to": f"{self.end:%H:%M}"}
        return told | ({"of": self.of} if self.of != "now" else {})

    def holds_at(self, moment: datetime | date) -> bool:
        """A span over midnight belongs to the day on which it begins. A date alone has no time of day."""
        if not isinstance(moment, datetime):
            return self.start is None and self._on(moment.weekday())
        if self.start is None or self.end is None:
            return self._on(moment.weekday())
        at = moment.time().replace(tzinfo=None)
        if self.start < self.end:
            return self.start <= at < self.end and self._on(moment.weekday())
        if at >= self.start:
            return self._on(moment.weekday())
        return at < self.end and self._on((moment.weekday() - 1) % 7)

    def holds(self, now: datetime, parameters: Iterable[Mapping[str, str]]) -> bool:
        """`now`: in the user's zone; `parameters`: name and text of each argument of the call."""
        if self.of == "now":
            return self.holds_at(now)
        told = (each["text"] for each in parameters if each["name"] == self.of)
        return any(self.holds_at(moment) for text in told for moment in moments_in(text, now.tzinfo))

    def _on(self, weekday: int) -> bool:
        return not self.weekdays or weekday in self.weekdays


def moments_in(text: str, zone: tzinfo | None) -> Iterable[datetime | date]:
    """The dates and times that a text tells, in their own zone, else in `zone`."""
    for found in _DATE.findall(text.upper()[:20_000])[:_MOST_DATES]:
        with suppress(ValueError):  # the 31st of February
            if len(found) == len("2026-11-23"):
                yield date.fromisoformat(found)
                continue
            moment = datetime.fromisoformat(re.sub(r"\s(?=[+-Z])", "", found.replace(" ", "T", 1)))
            yield moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)


def read_clock(given: Any, place: str, field: str) -> ClockTest:
    """Raises RequestError that names the place and the remedy."""
    told = '{"weekday": ["sat", "sun"], "from": "22:00", "to": "07:00", "of": "now" or the name of an argument}'
    if not isinstance(given, Mapping) or not given.keys() & {"weekday", "from", "to"} or set(given) - _KEYS:
        raise RequestError(f"`{place}`: expected {told}, of which weekday or both times are needed", field=field)
    days = given.get("weekday", [])
    listed = [days] if isinstance(days, str) else days
    if not isinstance(listed, list) or not all(isinstance(each, str) and each[:3].lower() in DAYS for each in listed):
        raise RequestError(f"`{place}.weekday`: expected some of {', '.join(DAYS)}", field=field)
    if ("from" in given) != ("to" in given):
        raise RequestError(f"`{place}`: `from` and `to` go together", field=field)
    of = given.get("of", "now")
    if not isinstance(of, str) or not of:
        raise RequestError(f"`{place}.of`: expected now, or the name of an argument", field=field)
    start, end = (_time(given[name], f"{place}.{name}", field) if name in given else None for name in ("from", "to"))
    return ClockTest(tuple(sorted({DAYS.index(each[:3].lower()) for each in listed})), start, end, of)


def _time(given: Any, place: str, field: str) -> time:
    found = _TIME.fullmatch("00:00" if given == "24:00" else given) if isinstance(given, str) else None
    if found is None:
        raise RequestError(f'`{place}`: expected a time of day as "22:00"', field=field)
    return time(int(found[1]), int(found[2]))
