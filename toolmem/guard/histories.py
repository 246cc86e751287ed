"""The tests `earlier` and `more_than`: what ran before in the conversation, and how often a call was let through.

Nothing of an earlier call is kept but which of the tests that rules ask for it met, whether it worked, and its place
among the writes of files: `ConversationHistory`. What nobody knows lets nothing through and stops nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from toolmem.errors import RequestError
from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass, field

if TYPE_CHECKING:
    from toolmem.guard.alternatives import Alternative
    from toolmem.guard.call_steps import CallSteps

BASE_TESTS = frozenset(("command", "word", "path", "target", "text", "tool", "arg"))
_OF_EARLIER = BASE_TESTS | {"worked", "since"}
MOST_OF_HISTORY = 4  # tests `earlier` and `more_than` in one rule
MOST_ASKED = 100  # that a store's rules ask for; the oldest go
MOST_CALLS = 1_000  # that `more_than` counts to
_LONGEST = 366 * 86_400  # seconds of `per`
_MOST_OPEN = 100  # calls under way in one conversation
_SECONDS = late_pattern(r"(\d{1,9})s")
_SHOWS_ONLY = frozenset(("--version", "--help", "-h", "--collect-only", "--co", "--dry-run", "--list"))


@dataclass(frozen=True, slots=True)
class EarlierTest:
    """An earlier call of the conversation."""

    tests: Alternative
    worked: bool = False  # by its own success
    since_writes: bool = False  # after the last call that wrote files

    def __hash__(self) -> int:
        return hash((self.asked, self.worked, self.since_writes))

    @property
    def asked(self) -> str:
        """What it is known by, whether it is to have worked or not."""
        return digest_of(self.tests.as_written())

    def as_written(self) -> dict[str, Any]:
        told = self.tests.as_written() | ({"worked": True} if self.worked else {})
        return told | ({"since": {"writes": True}} if self.since_writes else {})


@dataclass(frozen=True, slots=True)
class MoreThan:
    """More calls than these, the one that is judged among them, within a time."""

    calls: int
    per: str  # "3600s", "conversation" or "day"

    def as_written(self) -> dict[str, Any]:
        return {"calls": self.calls, "per": self.per}

    def since(self, now: datetime) -> datetime:
        """Calls before it count no more. `now`: in the user's zone."""
        if self.per == "conversation":
            return datetime.min.replace(tzinfo=UTC)
        if self.per == "day":
            return now.replace(hour=0, minute=0, second=0, microsecond=0)
        return now - timedelta(seconds=int(self.per[:-1]))


def digest_of(written: Mapping[str, Any]) -> str:
    text = json.dumps(written, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.blake2s(text, digest_size=12).hexdigest()


# ---------------------------------------------------------------- reading


def read_earlier(given: Any, place: str, field: str, read_tests: Callable[[Any, str], Alternative]) -> EarlierTest:
    """`read_tests`: reads the tests of a call. Raises RequestError that names the place and the remedy."""
    told = '{"command": "^pytest", "worked": true, "since": {"writes": true}}, the first being any test of a call'
    if not isinstance(given, Mapping) or set(given) - _OF_EARLIER or not set(given) & BASE_TESTS:
        raise RequestError(f"`{place}`: expected {told} ({', '.join(sorted(BASE_TESTS))})", field=field)
    for name, value, only in (("worked", given.get("worked"), True), ("since", given.get("since"), {"writes": True})):
        if name in given and (value != only or not isinstance(value, type(only))):
            raise RequestError(f"`{place}.{name}`: {json.dumps(only)}, or leave it out", field=field)
    tests = {name: value for name, value in given.items() if name in BASE_TESTS}
    return EarlierTest(read_tests(tests, place), "worked" in given, "since" in given)


def read_more_than(given: Any, place: str, field: str) -> MoreThan:
    """Raises RequestError that names the place and the remedy."""
    if not isinstance(given, Mapping) or set(given) != {"calls", "per"}:
        raise RequestError(f'`{place}`: expected {{"calls": 3, "per": "3600s"}}', field=field)
    calls, per = given["calls"], given["per"]
    if isinstance(calls, bool) or not isinstance(calls, int) or not 1 <= calls <= MOST_CALLS:
        told = f"a whole number from 1 to {MOST_CALLS:,}; where no call is allowed, leave more_than out"
        raise RequestError(f"`{place}.calls`: expected {told}", field=field)
    if not isinstance(per, str) or (per not in ("conversation", "day") and not _is_span(per)):
        told = f'expected seconds as "3600s" (at most {_LONGEST:,}), "day" or "conversation"'
        raise RequestError(f"`{place}.per`: {told}", field=field)
    return MoreThan(calls, f"{int(per[:-1])}s" if per.endswith("s") else per)


def _is_span(per: str) -> bool:
    found = _SECONDS.fullmatch(per)
    return found is not None and 1 <= int(found[1]) <= _LONGEST


# ---------------------------------------------------------------- what is known


class History(Protocol):
    """What ran before a call that is judged."""

    @property
    def known(self) -> bool:
        """False: nobody can tell."""

    @property
    def over(self) -> bool:
        """Are the calls that `more_than` allows taken for made?"""

    def happened(self, test: EarlierTest, *, unless: bool) -> bool:
        """Did an earlier call meet it? `unless`: it lets through, so that only what surely ended counts."""


@dataclass(frozen=True, slots=True)
class AssumedHistory:
    """What is taken for granted where nothing is known."""

    lets_through: bool
    stops: bool
    over: bool = False
    known: bool = False

    def happened(self, test: EarlierTest, *, unless: bool) -> bool:
        return self.lets_through if unless else self.stops


UNKNOWN = AssumedHistory(lets_through=False, stops=False)
STOPPING = AssumedHistory(lets_through=False, stops=True, over=True)  # whatever could stop a call did happen
PASSING = AssumedHistory(lets_through=True, stops=False)  # whatever could let it through did


@dataclass(frozen=True, slots=True)
class Over:
    """A history in which the calls that `more_than` allows are made."""

    of: History
    over: bool = True

    @property
    def known(self) -> bool:
        return self.of.known

    def happened(self, test: EarlierTest, *, unless: bool) -> bool:
        return self.of.happened(test, unless=unless)


Event = tuple[str, bool]  # what was met ("": files are written), and whether it has worked where its call has


@dataclass(slots=True)
class _Met:
    """Where in the order of a conversation a test was met last."""

    begun: int = 0
    ended: int = 0
    worked: int = 0


@dataclass(slots=True)
class _Open:
    """A call that was let through and of whose end nobody has told."""

    at: int  # the place of its first event
    wrote: int  # what was written last when it began, with its own
    events: Sequence[Event]


@dataclass(slots=True)
class ConversationHistory:
    """Which tests the calls of a conversation met, in the order of their events, and when files were last written."""

    at: int = 0
    wrote: int = 0
    met: dict[str, _Met] = field(default_factory=dict)
    open: dict[str, _Open] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        return True

    @property
    def over(self) -> bool:
        return False

    def happened(self, test: EarlierTest, *, unless: bool) -> bool:
        met = self.met.get(test.asked)
        if met is None:
            return False
        place = met.worked if test.worked else met.ended if unless else met.begun
        return place > (self.wrote if test.since_writes else 0)

    def begin(self, call: str, events: Sequence[Event], *, runs: bool = True) -> None:
        """A call was let through. `runs` False: its user is asked first."""
        first = self.at
        if runs:
            self._place(events)
        self.open[call] = _Open(first, self.wrote, events)
        for old in list(self.open)[:-_MOST_OPEN]:
            del self.open[old]

    def _place(self, events: Sequence[Event]) -> None:
        for what, _ in events:
            self.at += 1
            if what:
                self._met(what).begun = self.at
            else:
                self.wrote = self.at

    def end(self, call: str, *, worked: bool) -> bool:
        """How a call that was let through ended; False where it is not known. Who wrote meanwhile may have written what
        it did not see."""
        begun = self.open.pop(call, None)
        if begun is None:
            return False
        quiet = begun.wrote == self.wrote
        for number, (what, sure) in enumerate(begun.events, begun.at + 1):
            if not what or quiet:
                self.at += 1
            place = self.at if quiet else number
            if not what:
                self.wrote = self.at
                continue
            met = self._met(what)
            met.begun, met.ended = max(met.begun, place), max(met.ended, place)
            if worked and sure:
                met.worked = max(met.worked, place)
        return True

    def wrote_files(self) -> None:
        """A call that nobody decided on."""
        self.at += 1
        self.wrote = self.at

    def _met(self, what: str) -> _Met:
        met = self.met.pop(what, None) or _Met()
        self.met[what] = met
        for old in list(self.met)[:-MOST_ASKED]:
            del self.met[old]
        return met

    def as_json(self) -> dict[str, Any]:
        return {
            "at": self.at,
            "wrote": self.wrote,
            "met": {what: [each.begun, each.ended, each.worked] for what, each in self.met.items()},
            "open": {call: [each.at, each.wrote, list(map(list, each.events))] for call, each in self.open.items()},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ConversationHistory:
        """Raises KeyError, TypeError or ValueError where it is none."""
        return cls(
            int(value["at"]),
            int(value["wrote"]),
            {str(what): _Met(*map(int, places)) for what, places in value["met"].items()},
            {
                str(call): _Open(int(at), int(wrote), [(str(what), sure is True) for what, sure in events])
                for call, (at, wrote, events) in value["open"].items()
            },
        )


# ---------------------------------------------------------------- what the rules of a store ask for


@dataclass(slots=True)
class AskedTests:
    """The tests of earlier calls in the rules of a store, by `EarlierTest.asked`, as written: the newest 100."""

    tests: dict[str, dict[str, Any]] = field(default_factory=dict)

    def lacks(self, tests: Iterable[EarlierTest]) -> list[EarlierTest]:
        return [each for each in tests if each.asked not in self.tests]

    def ask(self, tests: Iterable[EarlierTest]) -> None:
        for each in tests:
            self.tests[each.asked] = each.tests.as_written()
        for old in list(self.tests)[:-MOST_ASKED]:
            del self.tests[old]

    def as_json(self) -> dict[str, Any]:
        return {"tests": self.tests}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> AskedTests:
        """Raises KeyError, TypeError or ValueError where it is none."""
        return cls({str(asked): dict(written) for asked, written in value["tests"].items()})


@dataclass(slots=True)
class CountedCalls:
    """The calls that one `more_than` has let through: when (microseconds since 1970), and by which decision."""

    taken: list[tuple[int, str]] = field(default_factory=list)
    last: bool = False  # was there room for the one that asked last?

    def take(self, more_than: MoreThan, now: datetime, decision: str) -> None:
        """Count one more, if there is room."""
        since = more_than.since(now)
        self.taken = [each for each in self.taken if each[0] >= _micros(since)][-more_than.calls :]
        self.last = len(self.taken) < more_than.calls
        if self.last:
            self.taken.append((_micros(now), decision))

    def give_back(self, decision: str) -> None:
        self.taken = [each for each in self.taken if each[1] != decision]

    def as_json(self) -> dict[str, Any]:
        return {"taken": [list(each) for each in self.taken]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CountedCalls:
        """Raises KeyError, TypeError or ValueError where it is none."""
        return cls([(int(at), str(decision)) for at, decision in value["taken"]])


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _micros(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1) if moment.year > 1 else 0


# ---------------------------------------------------------------- in one call


Meets = Callable[["Alternative", Mapping[str, Any]], bool]  # does this unit of the call meet these tests?


def events_of(steps: CallSteps, asked: Mapping[str, Alternative], meets: Meets) -> list[Event]:
    """What a call leaves for those after it, in the order of its steps; of equal events the last."""
    events: dict[Event, None] = {}
    for at, step in enumerate(steps.steps):
        met = [what for what, tests in asked.items() if _met_by(step.units, tests, meets)]
        told = step.certain and at >= steps.told
        new = [(what, told and not _only_shows(step.units, asked[what], meets)) for what in met]
        for event in [("", False)] * (step.writes or (step.may_write and not met)) + new:
            events.pop(event, None)
            events[event] = None
    return list(events)


def reached_in_call(steps: CallSteps, test: EarlierTest, meets: Meets, *, unless: bool) -> list[bool]:
    """For each step, does the same call do before it what is asked for? `unless`: surely, and with success."""
    found: list[bool] = []
    last = -1  # the step that did it, unless files were written since
    for at, step in enumerate(steps.steps):
        found.append(last >= (step.chain if unless else 0))
        met = _met_by(step.units, test.tests, meets)
        if test.since_writes and (step.writes or (step.may_write and not met)):
            last = -1
        idle = test.worked and met and _only_shows(step.units, test.tests, meets)
        if met and not idle and (step.certain or not unless):
            last = at
    return found


def _met_by(units: Sequence[Mapping[str, Any]], tests: Alternative, meets: Meets) -> bool:
    return any(meets(tests, unit) for unit in units)


def _only_shows(units: Sequence[Mapping[str, Any]], tests: Alternative, meets: Meets) -> bool:
    """Does it but say its version, or what it would run?"""
    return not any(meets(tests, unit) and _SHOWS_ONLY.isdisjoint(unit["words"]) for unit in units)
