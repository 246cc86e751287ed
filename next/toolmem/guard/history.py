"""Which earlier calls of a conversation the rules ask for: their tests `earlier` and `more_than`.

Nothing of an earlier call is kept but which of these tests it met, whether it worked, and its place
among the writes of files. What nobody knows lets nothing through and stops nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from toolmem.view.conditions import SHOWS_ONLY, Conditions, EarlierTest, History, MoreThan
from toolmem.view.effects import CallEffects, may_write
from toolmem.view.view import CallView

MAX_TESTS = 100  # that rules ask for
MAX_COUNTED = 1_000  # calls that `more_than` counts to


class Met(Struct):
    """Where in the order of a conversation a test was met last."""

    ended: int = 0
    worked: int = 0


class CallHistory(Struct, kw_only=True, omit_defaults=True):
    """The order of a conversation's events, as far as rules ask for them."""

    at: int = 0
    wrote: int = 0  # the place of the last call that wrote files
    met: dict[str, Met] = {}


class KnownHistory(History):
    """What `Conditions.check` asks. `counted`: times of the calls that each `more_than` counts."""

    def __init__(self, calls: CallHistory, counted: Mapping[str, list[int]], now: datetime) -> None:
        self.calls, self.counted, self.now = calls, counted, now

    def happened(self, test: EarlierTest, unless: bool) -> bool:
        met = self.calls.met.get(test.key)
        if met is None:
            return False
        place = met.worked if test.worked else met.ended
        return place > (self.calls.wrote if test.since else 0)

    def exceeded(self, test: MoreThan) -> bool:
        since = micros(_since(test, self.now))
        return sum(at >= since for at in self.counted.get(count_key(test), ())) >= test.calls


def count_key(test: MoreThan) -> str:
    """What the counted calls of a test are known by."""
    return f"{test.per}/{test.calls}"


def _since(test: MoreThan, now: datetime) -> datetime:
    if test.per == "conversation":
        return datetime(1970, 1, 1, tzinfo=UTC)
    if test.per == "day":
        return now.replace(hour=0, minute=0, second=0, microsecond=0)
    return now - timedelta(seconds=int(test.per[:-1]))


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def asked_tests(conditions: Iterable[Conditions]) -> dict[str, EarlierTest]:
    """The tests of earlier calls that rules ask for, by key."""
    found: dict[str, EarlierTest] = {}
    for each in conditions:
        for alternative in (*each.when, *each.unless):
            if alternative.earlier is not None and len(found) < MAX_TESTS:
                found[alternative.earlier.key] = alternative.earlier
    return found


def record(
    calls: CallHistory,
    view: CallView,
    effects: CallEffects,
    asked: Mapping[str, EarlierTest],
    *,
    failed: bool | None,
) -> None:
    """What a call that ran leaves for those after it, in the order of its commands."""
    for unit in view.units:
        command = unit.command
        met = [key for key, test in asked.items() if test.meets(view, unit, False)]
        if command is None:
            writes = effects.may_write() and not met
            is_sure = True
        else:
            writes = bool(command.writes) or (may_write(command) and not met)
            is_sure = command.number in view.shells[unit.text].sure
        calls.at += 1
        if writes:
            calls.wrote = calls.at
            calls.at += 1
        for key in met:
            place = calls.met.setdefault(key, Met())
            place.ended = calls.at
            is_idle = not SHOWS_ONLY.isdisjoint(unit.words)
            if failed is False and is_sure and not is_idle:
                place.worked = calls.at
