"""`calendar_create_event` and `calendar_find_slots`: one team calendar, 09:00 to 18:00 on working days."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import ClassVar

from examples.recording.clock import ScriptedClock
from examples.recording.tools.tool import Answer, Arguments, Tool, Wording, done, failure, object_schema, to_json

_OPENS, _CLOSES = time(9), time(18)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?")
_USUAL = ("Stand-up", "Warehouse tour", "Supplier call", "Budget round", "Interview", "Error review", "周会")


@dataclass(frozen=True, slots=True, order=True)
class Event:
    start: datetime  # local time of the office, naive as calendars write it
    end: datetime
    title: str


@dataclass
class TeamCalendar:
    """The events of all days, and who is asked what time it is."""

    clock: ScriptedClock
    events: list[Event] = field(default_factory=list)

    @classmethod
    def with_usual_events(cls, clock: ScriptedClock, days: int, rng: random.Random) -> TeamCalendar:
        """Four to six events on each working day, without overlaps."""
        calendar = cls(clock)
        for offset in range(days):
            day = clock.now().date() + timedelta(days=offset)
            if day.weekday() > 4:
                continue
            for hour in sorted(rng.sample(range(9, 17), rng.randrange(4, 7))):
                start = datetime.combine(day, time(hour))
                minutes = rng.choice((30, 45, 60))
                calendar.events.append(Event(start, start + timedelta(minutes=minutes), rng.choice(_USUAL)))
        return calendar

    def conflict(self, start: datetime, end: datetime) -> Event | None:
        return next((event for event in sorted(self.events) if event.start < end and start < event.end), None)

    def free(self, day: date, length: timedelta) -> list[datetime]:
        """Starts of free slots, every half hour."""
        starts = []
        moment = datetime.combine(day, _OPENS)
        while moment + length <= datetime.combine(day, _CLOSES):
            if self.conflict(moment, moment + length) is None:
                starts.append(moment)
            moment += timedelta(minutes=30)
        return starts


def _error(message: str) -> Answer:
    return failure(to_json({"status": "error", "message": message}))


class CreateEvent(Tool):
    name = "calendar_create_event"
    description = "Put an event into the team calendar. Refuses overlaps and times outside of 09:00 to 18:00."
    parameters = object_schema(
        ("title", "start", "duration_minutes"),
        title={"type": "string"},
        start={"type": "string", "description": "Local time, YYYY-MM-DDTHH:MM."},
        duration_minutes={"type": "integer", "minimum": 15, "maximum": 240},
        attendees={"type": "array", "items": {"type": "string"}, "description": "Mail addresses."},
    )
    wording: ClassVar[Wording] = "json"

    def __init__(self, calendar: TeamCalendar) -> None:
        self._calendar = calendar

    def run(self, arguments: Arguments) -> Answer:
        text = arguments["start"]
        if _MOMENT.fullmatch(text) is None:
            return _error(f"start '{text}' is not of the form YYYY-MM-DDTHH:MM")
        try:
            start = datetime.fromisoformat(text)
        except ValueError:
            return _error(f"start '{text}' does not exist")
        end = start + timedelta(minutes=arguments["duration_minutes"])
        if start < self._calendar.clock.now().replace(tzinfo=None):
            return _error(f"start '{text}' is in the past")
        if start.weekday() > 4 or start.time() < _OPENS or end > datetime.combine(start.date(), _CLOSES):
            return _error(f"'{text}' is outside of working hours (Monday to Friday, 09:00 to 18:00)")
        other = self._calendar.conflict(start, end)
        if other is not None:
            # No error of the tool: it answers properly, but nothing was booked.
            conflict = {"title": other.title, "start": other.start.isoformat("T", "minutes")}
            return failure(
                to_json({"status": "conflict", "event": None, "conflicts_with": conflict}),
                success=True,
                fault="conflict",
            )
        self._calendar.events.append(Event(start, end, arguments["title"]))
        event = {"id": f"ev-{len(self._calendar.events):04d}", "title": arguments["title"], "start": text}
        return done(to_json({"status": "created", "event": event, "attendees": arguments.get("attendees", [])}))


class FindSlots(Tool):
    name = "calendar_find_slots"
    description = "Free slots of the team calendar on one day."
    parameters = object_schema(
        ("date", "duration_minutes"),
        date={"type": "string", "description": "YYYY-MM-DD."},
        duration_minutes={"type": "integer", "minimum": 15, "maximum": 240},
    )
    wording: ClassVar[Wording] = "json"

    def __init__(self, calendar: TeamCalendar) -> None:
        self._calendar = calendar

    def run(self, arguments: Arguments) -> Answer:
        text = arguments["date"]
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) is None:
            return _error(f"date '{text}' is not of the form YYYY-MM-DD")
        day = date.fromisoformat(text)
        slots = [] if day.weekday() > 4 else self._calendar.free(day, timedelta(minutes=arguments["duration_minutes"]))
        starts = [slot.isoformat("T", "minutes") for slot in slots]
        return done(to_json({"date": text, "slots": starts}), useful=bool(starts))
