"""What the guard remembers of a workspace, as keyed records that every store keeps and several processes change.

    guard-conversation  {conversation, hashed}      the failures that stand: at most 500 in each of 1,000 conversations
    guard-folder        {working folder, hashed}    who wrote there last: 1,000 folders
    guard-names         {tool and context, hashed}  names that exist and that do not: 1,000 of each kind, 500 contexts
    guard-forgiveness   errors                      how often an unchanged repeat worked: of 500 errors
    guard-watch         sources                     how often flags of a source were forced, and worked
    guard-asked         tests                       the tests of earlier calls that rules ask for: the newest 100
    guard-history       {conversation, hashed}      which of these its calls met, in 1,000 conversations
    guard-count         {rule and test, hashed}     when a `more_than` let calls through: 1,000 of them

Beyond these bounds the oldest go. Inputs are hashed, with a key of the store; of outputs a record holds one line of at
most 200 characters of each failure, without its secrets, and the names of tables and columns.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from toolmem.guard.conversation import CheckedCall, ConversationGuard, Watch
from toolmem.guard.known_names import KnownNames
from toolmem.guard.repeats import Forgiveness, StandingFailures
from toolmem.late import late_logger
from toolmem.late_dataclasses import dataclass
from toolmem.rules.compare_and_swap import until_written
from toolmem.rules.identity import ASKED
from toolmem.store.codec import micros
from toolmem.stored import RawRecord

if TYPE_CHECKING:
    from toolmem.guard.histories import AskedTests, ConversationHistory
    from toolmem.protocols import Clock, MemoryStore
    from toolmem.stored import RecordsOfCommit

logger = late_logger("toolmem.guard")

T = TypeVar("T")

CONVERSATIONS, FOLDERS, NAMES = "guard-conversation", "guard-folder", "guard-names"
HISTORIES, COUNTS = "guard-history", "guard-count"
FORGIVENESS, WATCH = ("guard-forgiveness", "errors"), ("guard-watch", "sources")
MOST: dict[str, int] = {
    CONVERSATIONS: 1000,
    FOLDERS: 1000,
    NAMES: 500,
    HISTORIES: 1000,
    COUNTS: 1000,
}  # records of a namespace
_SWEPT = 16  # one of as many new records looks for those that are too many
_PARSED = 256  # records that are held parsed

Place = tuple[str, str]  # namespace and key
Reader = Callable[[Mapping[str, Any]], T]


def in_folder(cwd: str, wrote: str) -> str:
    """A working folder as a failure remembers it; empty where none is known."""
    return f"{hashed(cwd)}:{wrote}" if cwd else ""


def hashed(*parts: str) -> str:
    """A key that tells nothing of what it stands for, and that every store can keep."""
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2s(text, digest_size=16).hexdigest()


@dataclass(slots=True)
class Folder:
    """A working folder: who wrote there last, and whether failures stand that the next write resets."""

    wrote: str = ""
    held: bool = False

    def as_json(self) -> dict[str, Any]:
        return {"wrote": self.wrote, "held": self.held}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Folder:
        return cls(str(value["wrote"]), value["held"] is True)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the records lie that one call of a conversation is held against."""

    conversation: str = ""
    cwd: str = ""
    names: tuple[str, str] | None = None  # tool and context

    def keys(self) -> list[Place]:
        own = (self.of_conversation, self.of_folder, self.of_names, self.of_history)
        return [FORGIVENESS, WATCH, ASKED, *(each for each in own if each)]

    @property
    def of_conversation(self) -> Place | None:
        return (CONVERSATIONS, hashed(self.conversation)) if self.conversation else None

    @property
    def of_history(self) -> Place | None:
        return (HISTORIES, hashed(self.conversation)) if self.conversation else None

    @property
    def of_folder(self) -> Place | None:
        return (FOLDERS, hashed(self.cwd)) if self.cwd else None

    @property
    def of_names(self) -> Place | None:
        return (NAMES, hashed(*self.names)) if self.names else None


@dataclass(slots=True)
class Remembered:
    """What is remembered of a call's places at one moment; nobody changes it."""

    standing: StandingFailures
    watch: Watch
    names: KnownNames | None
    asked: AskedTests | None = None  # where rules ask for earlier calls
    history: ConversationHistory | None = None  # None: no earlier call of the conversation met any of them
    is_now: bool = False  # as the store has it at this moment


@dataclass(frozen=True, slots=True)
class RecordChange:
    """What is to become of one record. `read`: what it holds, of its JSON; `empty`: where there is none."""

    place: Place
    read: Reader[Any]
    empty: Callable[[], Any]
    change: Callable[[Any], None]


class GuardRecords:
    """The records of one workspace."""

    def __init__(self, store: MemoryStore, workspace: str, clock: Clock) -> None:
        self._store = store
        self._workspace = workspace
        self._clock = clock
        self._parsed: OrderedDict[tuple[str, str], tuple[str, Any]] = OrderedDict()

    # -- reading

    def remembered(self, places: Places, records: Mapping[Place, RawRecord | None] | None) -> Remembered:
        """What these records say (None: what they said last); one that is damaged says nothing, which is logged."""

        def held(place: Place | None, read: Reader[T]) -> T | None:
            if place is None:
                return None
            return self._last(place) if records is None else self._held(records.get(place), read)

        standing = held(places.of_conversation, StandingFailures.from_json) or StandingFailures()
        standing.forgiveness = held(FORGIVENESS, Forgiveness.from_json) or Forgiveness()
        folder = held(places.of_folder, Folder.from_json) or Folder()
        standing.folder = in_folder(places.cwd, folder.wrote)
        names = held(places.of_names, KnownNames.from_json)
        watch = held(WATCH, Watch.from_json) or Watch()
        asked = held(ASKED, _asked)
        history = held(places.of_history, _history)
        return Remembered(standing, watch, names, asked, history, records is not None)

    def _last(self, place: Place) -> Any:
        return self._parsed[place][1] if place in self._parsed else None

    def _held(self, record: RawRecord | None, read: Reader[T]) -> T | None:
        """As `parsed`, parsed once as long as it stays what it is: to be looked at only."""
        if record is None:
            return None
        place = (record.namespace, record.key)
        known = self._parsed.get(place)
        if known is not None and known[0] == record.text:
            value: T | None = known[1]
            return value
        value = parsed(record, read)
        self._parsed[place] = (record.text, value)
        if len(self._parsed) > _PARSED:
            self._parsed.popitem(last=False)
        return value

    # -- writing

    async def change_standing(self, conversation: str, change: Callable[[StandingFailures], None]) -> None:
        """RecordChange what stands in a conversation. A conversation in which nothing failed has no record."""
        place = Places(conversation).of_conversation
        if place is not None:
            await self.make(RecordChange(place, StandingFailures.from_json, StandingFailures, change))

    async def remember(self, checked: CheckedCall, conversation: str) -> None:
        """What a decision on a repeat leaves for the next one."""

        def change(standing: StandingFailures) -> None:
            ConversationGuard(standing=standing).remember(checked)

        await self.change_standing(conversation, change)

    async def make(self, wanted: RecordChange) -> None:
        """Read, change, and write where that made a difference: anew where somebody else wrote in between."""
        namespace, key = wanted.place

        async def attempt() -> None:
            (record,) = (await self._store.read_stamped(self._workspace, [wanted.place])).records
            held = _Held(wanted, record)
            wanted.change(held.value)
            if (value := held.news()) is None:
                return
            version = 0 if record is None else record.version
            await self._store.put(self._workspace, namespace, key, value, expected_version=version)
            if record is None and _sweeps(wanted.place):
                await self._sweep(namespace, key)

        await until_written(f"the guard's record {key!r} of {namespace!r}", attempt, self._clock.sleep)

    async def make_all(self, wanted: Iterable[RecordChange]) -> None:
        """One after the other."""
        for each in wanted:
            await self.make(each)

    def changed(self, wanted: Iterable[RecordChange], records: RecordsOfCommit) -> Callable[[], None]:
        """Read and change, one after the other, inside a commit; the answer writes what that made different."""
        held: dict[Place, _Held] = {}
        for each in wanted:
            found = held.pop(each.place, None) or _Held(each, records.get(*each.place))
            held[each.place] = found  # the newest at the end
            each.change(found.value)
        news = {place: (each.record, value) for place, each in held.items() if (value := each.news()) is not None}

        def write() -> None:
            for (namespace, key), (record, value) in news.items():
                records.put(record, namespace, key, value)
            new = [place for place, (record, _) in news.items() if record is None]
            for namespace in dict.fromkeys(place[0] for place in new if _sweeps(place)):
                newest = [key for each, key in news if each == namespace]
                for key in _too_many(records.of(namespace), newest, records.now):
                    records.delete(namespace, key)

        return write

    async def _sweep(self, namespace: str, newest: str) -> None:
        """Delete the oldest records beyond the most."""
        records = await self._store.list_raw(self._workspace, [namespace])
        for key in _too_many(records, [newest], micros(self._clock.now())):
            await self._store.delete(self._workspace, namespace, key)


def _asked(value: Mapping[str, Any]) -> AskedTests:
    from toolmem.guard.histories import AskedTests

    return AskedTests.from_json(value)


def _history(value: Mapping[str, Any]) -> ConversationHistory:
    from toolmem.guard.histories import ConversationHistory

    return ConversationHistory.from_json(value)


class _Held:
    """A record that is being changed."""

    def __init__(self, wanted: RecordChange, record: RawRecord | None) -> None:
        self.record = record
        self.value = parsed(record, wanted.read) or wanted.empty()
        self._before = _says(self.value.as_json())

    def news(self) -> dict[str, Any] | None:
        """What is to be written; None where nothing is different."""
        value: dict[str, Any] = self.value.as_json()
        return None if _says(value) == self._before else value


def _sweeps(place: Place) -> bool:
    """Does this new record look for those that are too many?"""
    return place[0] in MOST and int(place[1][-2:], 16) % _SWEPT == 0


def _too_many(records: Sequence[RawRecord], newest: Sequence[str], now: int) -> list[str]:
    """The keys of the oldest beyond the most. `newest`: those written last, in that order. A record from the future was
    written before the clock went back.
    """
    if not records:
        return []
    written = {key: at for at, key in enumerate(newest, 1)}
    ages = sorted(records, key=lambda each: (written.get(each.key, 0), each.modified if each.modified <= now else 0))
    return [each.key for each in ages[: max(0, len(ages) - MOST[ages[0].namespace])]]


def parsed(record: RawRecord | None, read: Reader[T]) -> T | None:
    """What a record holds; None where there is none, or it is damaged, which is logged."""
    if record is None:
        return None
    try:
        return read(json.loads(record.text))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        logger.warning(
            "record %r of %r is damaged and forgotten: %s", record.key, record.namespace, type(error).__name__
        )
        return None


def _says(value: Mapping[str, Any]) -> Any:
    """What makes a difference: a conversation in which nothing stands is like any other."""
    return (value.get("failures", True) or value.get("unwatched") or value.get("here")) and value
