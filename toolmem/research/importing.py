"""Import recordings into a memory batch by batch, and count what its user wants to know first."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import msgspec
from msgspec import Struct

from toolmem.formats.recording import BadRecord, ReadCall, RecordingReader
from toolmem.guard.replay import Replay, replay
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import ToolCallResult

BATCH = 1000  # calls added at once
MAX_BAD = 100  # bad records that are kept
REPLAYED = 10_000  # newest calls
IMPORTS = "imports"  # the namespace of files that were read

_encode = msgspec.json.Encoder(enc_hook=str, order="sorted").encode


class ToolFigures(Struct):
    """The imported calls of one tool."""

    calls: int = 0
    failures: int = 0
    classes: Counter[str] = msgspec.field(default_factory=Counter)  # of the failures


class Imported(Struct, kw_only=True):
    """The result of an import."""

    read: int = 0  # calls
    duplicates: int = 0  # calls that the store knew
    conversations: set[bytes] = msgspec.field(default_factory=set)
    tools: dict[str, ToolFigures] = msgspec.field(default_factory=dict)
    formats: Counter[str] = msgspec.field(default_factory=Counter)
    repeats: int = 0  # failures of a call that had failed before, word for word
    bad: list[BadRecord] = msgspec.field(default_factory=list)
    bad_count: int = 0
    notes: list[str] = msgspec.field(default_factory=list)
    stopped: str = ""  # why the rest was not judged
    replay: Replay = msgspec.field(default_factory=Replay)
    cards: dict[str, list[str]] = msgspec.field(default_factory=dict)  # lines of the worst tools

    @property
    def calls(self) -> int:
        """New calls."""
        return sum(tool.calls for tool in self.tools.values())

    @property
    def failures(self) -> int:
        return sum(tool.failures for tool in self.tools.values())

    def worst(self, number: int) -> list[str]:
        """The tools with the most failures."""
        failing = [name for name, tool in self.tools.items() if tool.failures]
        return sorted(failing, key=lambda name: -self.tools[name].failures)[:number]


def import_recordings(
    memory: ToolMem,
    paths: Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    mapping: Mapping[str, str] | None = None,
    again: bool = False,
    progress: Callable[[int], None] = lambda done: None,
    worst: int = 3,
) -> Imported:
    """Judge and keep the calls of files and folders, and summarize their tools.

    A file that was imported and has not changed is not read, unless `again`; a call that was
    imported before is left as it is. Raises RequestError.
    """
    known = _Files(memory)
    skip = (lambda path: False) if again or format or mapping else known.is_known
    now = datetime.now(UTC)
    reader = RecordingReader(now, format=format, mapping=mapping, skip=skip)
    ids = _Ids(now)
    counter = _Counter(memory)
    found, batch = counter.found, []
    for each in reader.read(paths):
        if isinstance(each, BadRecord):
            found.bad_count += 1
            found.bad += [each] if len(found.bad) < MAX_BAD else []
            continue
        ids.give(each)
        batch.append(each.call)
        if len(batch) == BATCH:
            counter.add(batch, list(reader.tools.values()))
            batch = []
            progress(found.read)
        if found.stopped:
            break
    counter.add(batch, list(reader.tools.values()))
    found.notes = reader.all_notes()
    if not found.stopped:
        known.keep()
    if found.calls:
        memory.summarize(sorted(found.tools))
        _conclude(memory, found, worst)
    return found


def _conclude(memory: ToolMem, found: Imported, worst: int) -> None:
    store, workspace = memory.services.store(), memory.workspace_id
    logged = store.call_log(workspace, limit=REPLAYED, newest=True)
    found.replay = replay(each.call for each in logged)
    for record in store.records(workspace, found.worst(worst)):
        lines = record.guidance.lines if record.guidance else []
        found.cards[record.tool_name] = [
            line.text for line in lines if line.kind not in ("rate", "left_out")
        ][:3]


class _Ids:
    """Gives a call without an id one of its line and content, the same at each import."""

    def __init__(self, now: datetime) -> None:
        self._now = now  # the time of calls whose time is not known
        self._line = 0
        self._given: Counter[bytes] = Counter()  # on this line

    def give(self, read: ReadCall) -> None:
        call = read.call
        if call.id is not None:
            return
        if read.line != self._line:
            self._line = read.line
            self._given.clear()
        time = None if call.create_time == self._now else call.create_time
        digest = _digest((read.line, call.tool_name, call.input, call.output, call.context, time))
        self._given[digest] += 1
        call.id = f"{digest.hex()}-{self._given[digest]}"


class _Files:
    """Which files were imported whole, by their size and the time of their last change."""

    def __init__(self, memory: ToolMem) -> None:
        self._store, self._workspace = memory.services.store(), memory.workspace_id
        self._read: dict[str, list[int]] = {}

    def is_known(self, path: Path) -> bool:
        """Never of a database: what is new in it stands in the file beside it."""
        status, key = path.stat(), _digest(str(path.resolve())).hex()
        state = [status.st_size, status.st_mtime_ns]
        record = self._store.get(self._workspace, IMPORTS, key)
        if record is not None and record.read(list[int]) == state and path.suffix != ".db":
            return True
        self._read[key] = state
        return False

    def keep(self) -> None:
        with self._store.transaction():
            for key, state in self._read.items():
                self._store.put(self._workspace, IMPORTS, key, state)


class _Counter:
    """Adds calls to a memory, and counts those that were new as the memory judged them."""

    def __init__(self, memory: ToolMem) -> None:
        self.found = Imported()
        self._memory = memory
        self._store = memory.services.store()
        newest = self._store.call_log(memory.workspace_id, newest=True, limit=1)
        self._position = newest[-1].position if newest else 0
        self._failed: set[bytes] = set()  # digests of calls that failed

    def add(self, calls: list[ToolCallResult], tools: list[object]) -> None:
        if not calls or self.found.stopped:
            return
        added = self._memory.add(calls, tools=tools or None)
        self.found.read += len(calls)
        self.found.duplicates += added.evaluation.duplicates
        self.found.stopped = added.stopped
        while page := self._store.call_log(
            self._memory.workspace_id, after=self._position, limit=BATCH
        ):
            for each in page:
                self._count(each.call)
            self._position = page[-1].position

    def _count(self, call: ToolCallResult) -> None:
        found = self.found
        found.conversations.add(_digest(call.conversation_id))
        found.formats[str(call.metadata.get("format", "calls"))] += 1
        tool = found.tools.setdefault(call.tool_name, ToolFigures())
        tool.calls += 1
        if call.failed:
            tool.failures += 1
            tool.classes[call.error_class or "error"] += 1
            digest = _digest((call.conversation_id, call.tool_name, call.input))
            found.repeats += digest in self._failed
            self._failed.add(digest)


def _digest(value: object) -> bytes:
    return blake2b(_encode(value), digest_size=8).digest()
