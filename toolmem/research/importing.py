"""Import recordings into a memory batch by batch, and count what its user wants to know first."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolmem.errors import RequestError
from toolmem.formats.catalogue import BY_NAME, GEMINI
from toolmem.formats.chat import UserMessage
from toolmem.formats.recording import UNCHANGED, UNREADABLE, BadRecord, ReadCall, RecordingReader
from toolmem.formats.shapes import MAPPED
from toolmem.guard.replay import Replay, replay
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import (
    IMPORT_ID,
    IMPORT_RUNS,
    ToolCallResult,
    hook_call_id,
    is_hook_call_id,
)
from toolmem.models.protocols import Store
from toolmem.models.tools import CallSums
from toolmem.operations.guidance import records_shown
from toolmem.research.backtest import LaterRepairs, later_repairs
from toolmem.research.evaluation import BATCH
from toolmem.research.older_failures import count_older_failures
from toolmem.store.copying import logged_calls
from toolmem.text.display import bounded
from toolmem.text.masking import mask_call

MAX_BAD = 100  # bad records that are kept
REPLAYED = 10_000  # newest calls
REPLAYED_OUTPUT = 4_000  # characters of the outputs of these
CARDS = 3  # of the tools with the most failures
FOREIGN = (*BY_NAME, MAPPED)  # formats, as they stand in the metadata of calls
OWN = "toolmem's or OpenAI's form"
IMPORTS = "imports"  # the namespace of files that were read
IDS = ".imported-ids"  # that of the ids of the new calls of imports, batch by batch
MAX_OUTPUT = 100_000  # characters of an output that is kept, as of a hook's call
MAX_BATCH = 8_000_000  # characters of the outputs of a batch
MAX_NAME = 200  # characters of the name of a file, in a record

_encode = msgspec.json.Encoder(enc_hook=str, order="sorted").encode


class ToolFigures(Struct):
    """The imported calls of one tool."""

    calls: int = 0
    failures: int = 0
    classes: Counter[str] = msgspec.field(default_factory=Counter)  # of the failures


class ImportRun(Struct, omit_defaults=True):
    """What one import brought, as the store remembers it. `toolmem forget` takes it back."""

    began: datetime
    sources: list[str] = []  # names of files and folders
    tools: dict[str, CallSums] = {}  # figures of the new calls, by tool
    formats: dict[str, int] = {}  # the new calls, by format
    is_open: bool = False  # its older failures were not counted yet


class Imported(Struct, kw_only=True):
    """The result of an import."""

    id: str = ""  # in the metadata of its calls; "" where it brought none
    read: int = 0  # calls
    duplicates: int = 0  # calls that the store knew
    unchanged: int = 0  # files that were imported before
    unreadable: int = 0  # files of a folder
    conversations: set[bytes] = msgspec.field(default_factory=set)
    tools: dict[str, ToolFigures] = msgspec.field(default_factory=dict)
    formats: Counter[str] = msgspec.field(default_factory=Counter)  # new calls by format
    repeats: int = 0  # failures of a call that had failed before, word for word
    bad: list[BadRecord] = msgspec.field(default_factory=list)
    bad_count: int = 0
    notes: list[str] = msgspec.field(default_factory=list)
    stopped: str = ""  # why the rest was not read or not judged
    replay: Replay = msgspec.field(default_factory=Replay)
    later_repairs: LaterRepairs | None = None  # of the newest calls of the memory
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

    def add_bad(self, record: BadRecord) -> None:
        """Count a bad record, and keep it if there are few."""
        self.bad_count += 1
        if len(self.bad) < MAX_BAD:
            self.bad.append(record)


def import_recordings(
    memory: ToolMem,
    paths: Sequence[str | os.PathLike[str]],
    *,
    searched: Sequence[Path] = (),
    format: str | None = None,
    mapping: Mapping[str, str] | None = None,
    again: bool = False,
    folders: Mapping[Path, Collection[str]] | None = None,
    progress: Callable[[Imported], None] = lambda found: None,
) -> Imported:
    """Judge and keep the calls of files and folders, and summarize their tools.

    `searched`: further files, which nobody named: one that cannot be read is counted. A file that
    was imported and has not changed is not read, unless `again`, a format or a mapping is given. A
    call that was imported before is left as it is. `folders`: of a database of OpenCode, only the
    sessions that were started in these. `progress` gets the result as it grows, also before the
    first call: where an import is interrupted, it holds what was kept. Raises RequestError where
    nothing can be read.
    """
    known = _Files(memory, reads_all=bool(again or format or mapping))
    now = datetime.now(UTC)
    options: dict[str, Any] = {"format": format, "mapping": mapping, "folders": folders}
    reader = RecordingReader(now, **options, skip=known.is_known, finished=known.finished)
    ids = _Ids(now)
    counter = _Counter(memory, now, _sources(paths, len(searched)))
    found = counter.found
    progress(found)
    try:
        for each in reader.read(paths, searched):
            if isinstance(each, UserMessage):
                continue
            if isinstance(each, BadRecord):
                found.add_bad(each)
                continue
            ids.give(each, reader.path)
            counter.take(each)
            if counter.is_full:
                counter.add(list(reader.tools.values()))
                progress(found)
            if found.stopped:
                break
    except RequestError as error:
        if not (found.read or counter.batch):
            raise
        found.stopped = str(error)
    counter.add(list(reader.tools.values()))
    counter.close()
    found.notes = reader.all_notes()
    found.unchanged, found.unreadable = reader.notes[UNCHANGED], reader.notes[UNREADABLE]
    if counter.names:  # also tools of an import that was interrupted before this
        newest = _newest_calls(memory.services.store(), memory.workspace_id)
        counter.summarize(newest)
        if found.calls:
            _conclude(memory, found, newest)
    if not counter.is_stopped:
        known.keep()  # not before: what was interrupted is read again, and summarized then
    return found


def _sources(paths: Sequence[str | os.PathLike[str]], searched: int) -> list[str]:
    """What an import read, for the list of imports."""
    names = [_name(Path(path))[:MAX_NAME] for path in paths]
    return [*names, f"{searched:,} files of agents"] if searched else names


def _conclude(memory: ToolMem, found: Imported, newest: list[ToolCallResult]) -> None:
    """Replay the newest calls, ask guidance of the older about the newer, and read worst cards."""
    found.replay, found.later_repairs = replay(newest), later_repairs(newest)
    for record in records_shown(memory, found.worst(CARDS)):
        lines = record.guidance.lines if record.guidance else []
        found.cards[record.tool_name] = [
            line.text for line in lines if line.kind not in ("rate", "left_out", "withheld")
        ][:3]


def _newest_calls(store: Store, workspace: str) -> list[ToolCallResult]:
    """The newest calls, oldest first, with what tells whether they failed of long outputs."""
    found: list[ToolCallResult] = []
    before = None
    while len(found) < REPLAYED:
        page = store.call_log(workspace, before=before, limit=BATCH, newest=True)
        if not page:
            break
        for each in page:
            each.call.output = bounded(each.call.output, REPLAYED_OUTPUT)
        found[:0] = [each.call for each in page]
        before = page[0].position
    return found


class _Ids:
    """Gives a call without an id one made of its line and content, the same at each import."""

    def __init__(self, now: datetime) -> None:
        self._now = now  # the time of calls whose time is not known
        self._place = Path(), 0
        self._given: Counter[bytes] = Counter()  # on this line

    def give(self, read: ReadCall, path: Path) -> None:
        call = read.call
        if call.id is not None:
            return
        if (path, read.line) != self._place:
            self._place = path, read.line
            self._given.clear()
        time = None if call.create_time == self._now else call.create_time
        # A renamed file is known by its times or conversations; without them by its name alone.
        name = "" if time or call.conversation_id else _name(Path(path.name))
        content = (call.tool_name, call.input, call.output, call.context, time)
        digest = _digest((name, read.line, *content))
        self._given[digest] += 1
        call.id = f"{digest.hex()}-{self._given[digest]}"


class _Files:
    """Which files were imported whole, by their size and the time of their last change."""

    def __init__(self, memory: ToolMem, reads_all: bool) -> None:
        self._store, self._workspace = memory.services.store(), memory.workspace_id
        self._reads_all = reads_all
        self._states: dict[Path, list[int]] = {}  # before a file is read
        self._finished: list[Path] = []

    def is_known(self, path: Path) -> bool:
        """Never of a database: what is new in it stands in the file beside it."""
        status = path.stat()
        state = self._states[path] = [status.st_size, status.st_mtime_ns]
        if self._reads_all or path.suffix == ".db":
            return False
        record = self._store.get(self._workspace, IMPORTS, _key(path))
        return record is not None and record.read(list[int]) == state

    def finished(self, path: Path) -> None:
        """A file that could not be read, or holds no call that is understood yet, is read again."""
        self._finished.append(path)

    def keep(self) -> None:
        with self._store.transaction():
            for path in self._finished:
                self._store.put(self._workspace, IMPORTS, _key(path), self._states[path])
        self._finished.clear()


def _key(path: Path) -> str:
    return _digest(_name(path.resolve())).hex()


def _name(path: Path) -> str:
    """A path as text: Linux allows names that are no UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class _HookCalls:
    """Finds the calls that a hook recorded, so that none is counted twice."""

    def __init__(self, memory: ToolMem) -> None:
        self._store, self._workspace = memory.services.store(), memory.workspace_id
        self._numbers: Counter[str] = Counter()  # how often a session had an id
        self._without_ids: dict[str, Counter[bytes]] = {}  # contents of calls, by session

    def not_recorded(self, batch: list[ReadCall]) -> list[ReadCall]:
        """The calls of a batch that no hook recorded."""
        ids = [self._ids(each.call) for each in batch]
        by_tool: defaultdict[str, set[str]] = defaultdict(set)
        for each, given in zip(batch, ids, strict=True):
            by_tool[each.call.tool_name] |= given
        known: set[str] = set()
        for tool, asked in by_tool.items():
            known |= self._store.known_ids(self._workspace, tool, asked) if asked else asked
        fresh = []
        for each, given in zip(batch, ids, strict=True):
            call = each.call
            if known.isdisjoint(given) and not self._is_known_by_content(call):
                if call.id and is_hook_call_id(call.id):  # nobody takes the id of a hook's call
                    call.id = _digest(call.id).hex()
                fresh.append(each)
        return fresh

    def _ids(self, call: ToolCallResult) -> set[str]:
        """Its own id if it may be of a hook, and the one that a hook gave it."""
        ids = {call.id} if call.id and is_hook_call_id(call.id) else set()
        key = call.metadata.get("tool_call_id")
        if isinstance(key, str) and call.metadata.get("format") in FOREIGN:
            first = hook_call_id(call.conversation_id, key)
            self._numbers[first] += first != key  # Anthropic's ids are never used again
            ids.add(hook_call_id(call.conversation_id, key, self._numbers[first]))
        return ids

    def _is_known_by_content(self, call: ToolCallResult) -> bool:
        """Gemini CLI gives hooks no ids: a call of the session with the same input is the same."""
        if call.metadata.get("format") != GEMINI.name:
            return False
        session = call.conversation_id
        if session not in self._without_ids:
            logged = self._store.call_log(self._workspace, conversation=session, limit=REPLAYED)
            recorded = [e.call for e in logged if e.call.id and is_hook_call_id(e.call.id)]
            self._without_ids[session] = Counter(map(self._content, recorded))
        left, content = self._without_ids[session], self._content(call)
        left[content] -= 1
        return left[content] >= 0

    def _content(self, call: ToolCallResult) -> bytes:
        """As the store keeps it: secrets are masked."""
        return _digest((call.tool_name, mask_call(call, self._store.secret_key()).input))


class _Counter:
    """Adds calls to a memory, and counts those that were new as the memory judged them."""

    def __init__(self, memory: ToolMem, now: datetime, sources: list[str]) -> None:
        self.found = Imported()
        self.is_stopped = False  # by the judge
        self.names: set[str] = set()  # of the tools that were read
        self.batch: list[ReadCall] = []
        self._size = 0  # characters of its outputs
        self._memory = memory
        self._hook_calls = _HookCalls(memory)
        self._id = f"{now:%Y%m%d}-{os.urandom(3).hex()}"
        self._run = ImportRun(now, sources, is_open=True)
        self._store = memory.services.store()
        newest = self._store.call_log(memory.workspace_id, newest=True, limit=1)
        self._position = newest[-1].position if newest else 0
        self._new: dict[str, list[str]] = {}  # ids by tool: of old calls nothing else is kept
        self._failed: set[bytes] = set()  # digests of calls that failed

    @property
    def is_full(self) -> bool:
        return len(self.batch) == BATCH or self._size > MAX_BATCH

    def take(self, read: ReadCall) -> None:
        """Put a call into the batch."""
        read.call.output = bounded(read.call.output, MAX_OUTPUT)
        self._size += len(read.call.output)
        self.batch.append(read)

    def add(self, tools: list[object]) -> None:
        """Add the batch to the memory."""
        batch = self._hook_calls.not_recorded(self.batch)
        self.found.read += len(self.batch) - len(batch)
        self.found.duplicates += len(self.batch) - len(batch)
        self.batch, self._size = [], 0
        if not batch or self.is_stopped:
            return
        found = self.found
        self._announce(batch)
        try:
            added = self._memory.add([each.call for each in batch], tools=tools or None)
            self._count_new()
        except KeyboardInterrupt:
            self._count_new()  # some calls may have been kept
            raise
        found.read += len(batch)
        found.duplicates += added.evaluation.duplicates
        for failure in added.evaluation.failures:
            read = batch[failure.index]
            found.add_bad(BadRecord(read.line, failure.tool_name, failure.error, read.file))
        if added.stopped:
            self.is_stopped = True
            found.stopped = added.stopped

    def _count_new(self) -> None:
        """Count the calls that the log has since, and note their figures and ids."""
        workspace = self._memory.workspace_id
        for logged in logged_calls(self._store, workspace, after=self._position):
            call, self._position = logged.call, logged.position
            if call.metadata.get(IMPORT_ID) == self._id:  # others may write at the same time
                self._count(call)
                self._new.setdefault(call.tool_name, []).append(call.id or "")
        if self._new:
            self._run.formats = dict(self.found.formats)
            self._store.put(workspace, IDS, f"{self._id}/{self._position:020}", self._new)
            self._store.put(workspace, IMPORT_RUNS, self._id, self._run)
            self._new = {}

    def summarize(self, newest: list[ToolCallResult]) -> None:
        """Summarize the tools. An import that was interrupted before this is counted, too."""
        workspace = self._memory.workspace_id
        runs = self._store.list_records(workspace, IMPORT_RUNS)
        uncounted = {each.key: run for each in runs if (run := each.read(ImportRun)).is_open}
        counted = count_older_failures(self._memory, newest, uncounted)
        for key, run in uncounted.items():
            self._store.put(workspace, IMPORT_RUNS, key, replace(run, is_open=False))
        # Forced where what was counted is older than the calls that a summary asks for.
        for names, force in ((self.names - counted, False), (counted, True)):
            if names:
                self._memory.summarize(sorted(names), force=force)

    def close(self) -> None:
        """Forget an import that brought nothing."""
        if self._run.tools and not self.found.id:
            self._store.delete(self._memory.workspace_id, IMPORT_RUNS, self._id)

    def _announce(self, batch: list[ReadCall]) -> None:
        """Mark the calls, and note their tools first: an import that is killed can be forgotten."""
        names = {each.call.tool_name for each in batch}
        for each in batch:
            each.call.metadata = {**each.call.metadata, IMPORT_ID: self._id}
        if new := names - self._run.tools.keys():
            self._run.tools |= {name: CallSums(silent=0) for name in sorted(new)}
            self._store.put(self._memory.workspace_id, IMPORT_RUNS, self._id, self._run)
        self.names |= names

    def _count(self, call: ToolCallResult) -> None:
        found = self.found
        found.id = self._id
        self._run.tools.setdefault(call.tool_name, CallSums(silent=0)).add(call)
        conversation = call.conversation_id
        if conversation:
            found.conversations.add(_digest(conversation))
        form = call.metadata.get("format")
        found.formats[form if form in FOREIGN else OWN] += 1
        tool = found.tools.setdefault(call.tool_name, ToolFigures())
        tool.calls += 1
        if call.failed:
            tool.failures += 1
            tool.classes[call.error_class or "error"] += 1
            if conversation:
                digest = _digest((conversation, call.tool_name, call.input))
                found.repeats += digest in self._failed
                self._failed.add(digest)


def _digest(value: object) -> bytes:
    return blake2b(_encode(value), digest_size=8).digest()
