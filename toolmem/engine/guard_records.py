"""What the guard remembers of a workspace, as keyed records that every store keeps and several processes change.

    guard-conversation  {conversation, hashed}      the failures that stand: at most 500 in each of 1,000 conversations
    guard-folder        {working folder, hashed}    who wrote there last: 1,000 folders
    guard-names         {tool and context, hashed}  names that exist and that do not: 1,000 of each kind, 500 contexts
    guard-forgiveness   errors                      how often an unchanged repeat worked: of 500 errors
    guard-watch         sources                     how often flags of a source were forced, and worked

Beyond these bounds the oldest go. Inputs are hashed, with a key of the store; of outputs a record holds one line of at
most 200 characters of each failure, without its secrets, and the names of tables and columns.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from toolmem.guard.conversation import Watch
from toolmem.guard.known_names import KnownNames
from toolmem.guard.repeats import Forgiveness, StandingFailures
from toolmem.late import late_logger
from toolmem.late_dataclasses import dataclass
from toolmem.rules.compare_and_swap import until_written
from toolmem.store.codec import micros
from toolmem.stored import RawRecord

if TYPE_CHECKING:
    from toolmem.protocols import Clock, MemoryStore

logger = late_logger("toolmem.guard")

T = TypeVar("T")
K = TypeVar("K", bound="Kept")

CONVERSATIONS, FOLDERS, NAMES = "guard-conversation", "guard-folder", "guard-names"
FORGIVENESS, WATCH = ("guard-forgiveness", "errors"), ("guard-watch", "sources")
MOST: dict[str, int] = {CONVERSATIONS: 1000, FOLDERS: 1000, NAMES: 500}  # records of a namespace
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


class Kept(Protocol):
    """What a record holds."""

    def as_json(self) -> dict[str, Any]: ...


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
        return [FORGIVENESS, WATCH, *(each for each in (self.of_conversation, self.of_folder, self.of_names) if each)]

    @property
    def of_conversation(self) -> Place | None:
        return (CONVERSATIONS, hashed(self.conversation)) if self.conversation else None

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
        return Remembered(standing, held(WATCH, Watch.from_json) or Watch(), names)

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

    async def folders(self, cwds: Iterable[str]) -> dict[str, str]:
        """Each working folder as a failure remembers it."""
        places = {cwd: place for cwd in cwds if (place := Places(cwd=cwd).of_folder)}
        if not places:
            return {}
        records = (await self._store.read_stamped(self._workspace, list(places.values()))).records
        wrote = [(parsed(record, Folder.from_json) or Folder()).wrote for record in records]
        return {cwd: in_folder(cwd, by) for cwd, by in zip(places, wrote, strict=True)}

    # -- writing

    async def change_standing(self, conversation: str, change: Callable[[StandingFailures], None]) -> None:
        """Change what stands in a conversation. A conversation in which nothing failed has no record."""
        place = Places(conversation).of_conversation
        if place is not None:
            await self._change(place, StandingFailures.from_json, StandingFailures, change)

    async def count(self, forgiveness: Forgiveness, watch: Watch) -> None:
        """Add what was counted."""
        if forgiveness.repeats:
            await self._change(FORGIVENESS, Forgiveness.from_json, Forgiveness, lambda held: held.add(forgiveness))
        if watch.forced:
            await self._change(WATCH, Watch.from_json, Watch, lambda held: held.add(watch))

    async def learn_names(self, names: tuple[str, str], statement: str, output: str, *, failed: bool) -> None:
        place = Places(names=names).of_names
        if place is not None:
            await self._change(
                place, KnownNames.from_json, KnownNames, lambda held: held.learn(statement, output, failed=failed)
            )

    async def note_folder(self, cwd: str, wrote: str, failed: bool) -> None:
        """What happened in a working folder. `wrote`: a new token where somebody did, which resets what stands."""
        place = Places(cwd=cwd).of_folder

        def change(folder: Folder) -> None:
            if wrote and (folder.held or failed):
                folder.wrote, folder.held = wrote, failed
            folder.held = folder.held or failed

        if place is not None:
            await self._change(place, Folder.from_json, Folder, change)

    async def _change(self, place: Place, read: Reader[K], empty: Callable[[], K], change: Callable[[K], None]) -> None:
        """Read, change, and write where that made a difference: anew where somebody else wrote in between."""
        namespace, key = place

        async def attempt() -> None:
            (record,) = (await self._store.read_stamped(self._workspace, [place])).records
            held = parsed(record, read) or empty()
            before = held.as_json()
            change(held)
            value = held.as_json()
            if _says(value) == _says(before):
                return
            version = 0 if record is None else record.version
            await self._store.put(self._workspace, namespace, key, value, expected_version=version)
            if record is None and namespace in MOST and int(key[-2:], 16) % _SWEPT == 0:
                await self._sweep(namespace, key)

        await until_written(f"the guard's record {key!r} of {namespace!r}", attempt, self._clock.sleep)

    async def _sweep(self, namespace: str, newest: str) -> None:
        """Delete the oldest records beyond the most. One from the future was written before the clock went back."""
        records = await self._store.list_raw(self._workspace, [namespace])
        now = micros(self._clock.now())
        records.sort(key=lambda each: (each.key == newest, each.modified if each.modified <= now else 0))
        for record in records[: max(0, len(records) - MOST[namespace])]:
            await self._store.delete(self._workspace, namespace, record.key)


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
    return (value.get("failures", True) or value.get("unwatched")) and value
