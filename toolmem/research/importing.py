"""Import recordings into a memory batch by batch, with figures of what the calls show."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolmem.errors import RequestError
from toolmem.formats.chat import UserMessage, sorted_digest
from toolmem.formats.recording import UNCHANGED, BadRecord, ReadCall, RecordingReader
from toolmem.guard.replay import Replay, replay
from toolmem.memory.toolmem import ToolMem
from toolmem.models.calls import IMPORT_ID, IMPORT_RUNS, ToolCallResult
from toolmem.models.protocols import Store
from toolmem.operations.guidance import records_shown
from toolmem.research.backtest import LaterRepairs, later_repairs
from toolmem.research.evaluation import BATCH
from toolmem.research.hook_calls import HookCalls
from toolmem.research.import_runs import IMPORTS, ImportRun, format_of, keep_run, settled_runs
from toolmem.research.older_failures import add_older_failures
from toolmem.text.display import bounded

MAX_BAD = 100  # bad records that are kept
REPLAYED = 10_000  # newest calls
REPLAYED_OUTPUT = 4_000  # characters of each of their outputs
CARDS = 3  # cards in the result, of the tools with the most failures
FORGOTTEN = "this import was forgotten while it ran; toolmem forget lists what it still added"
MAX_OUTPUT = 100_000  # characters of an output that are kept, as of a hook's call
MAX_BATCH = 8_000_000  # characters of the outputs of a batch
MAX_NAME = 200  # characters of the name of a file, in a record


class ToolFigures(Struct):
    """The imported calls of one tool."""

    calls: int = 0
    failures: int = 0
    classes: Counter[str] = msgspec.field(default_factory=Counter)  # of the failures


class Imported(Struct, kw_only=True):
    """The result of an import."""

    id: str = ""  # in the metadata of its calls; "": no call was new
    read: int = 0  # calls
    duplicates: int = 0  # calls that the store had
    unchanged: int = 0  # files that were imported before
    unreadable: int = 0  # files and folders that nobody named
    conversations: set[bytes] = msgspec.field(default_factory=set)  # digests of their ids
    tools: dict[str, ToolFigures] = msgspec.field(default_factory=dict)
    formats: Counter[str] = msgspec.field(default_factory=Counter)  # new calls by format
    repeats: int = 0  # failures of a call that had failed before with the same input
    bad: list[BadRecord] = msgspec.field(default_factory=list)
    bad_count: int = 0
    notes: list[str] = msgspec.field(default_factory=list)
    stopped: str = ""  # why the rest was not read or not judged
    replay: Replay = msgspec.field(default_factory=Replay)
    later_repairs: LaterRepairs | None = None  # of the newest calls in the memory
    cards: dict[str, list[str]] = msgspec.field(default_factory=dict)  # lines, by tool

    @property
    def calls(self) -> int:
        """The number of new calls."""
        return sum(tool.calls for tool in self.tools.values())

    @property
    def failures(self) -> int:
        """The number of new calls that failed."""
        return sum(tool.failures for tool in self.tools.values())

    def worst(self, number: int) -> list[str]:
        """Return the names of the tools with the most failures, at most `number`."""
        failing = [name for name, tool in self.tools.items() if tool.failures]
        return sorted(failing, key=lambda name: -self.tools[name].failures)[:number]

    def add_bad(self, record: BadRecord) -> None:
        """Count a bad record, and keep the first 100."""
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
    sources: Sequence[str] = (),
    progress: Callable[[Imported], None] = lambda result: None,
) -> Imported:
    """Judge and keep the calls of files and folders, and summarize their tools.

    `searched`: more files, which a search found; if unreadable, they are only counted. A file that
    has not changed since its import is not read, unless `again`, a format or a mapping is given. A
    call that was imported before is left as it is. `folders`: by database of OpenCode, the folders
    whose sessions are read. `sources`: what `toolmem forget` lists instead of paths. `progress`
    gets the result while it grows, at first empty: the caller has it even if the import is
    interrupted. Raises RequestError if nothing can be read.
    """
    files = _Files(memory, reads_all=bool(again or format or mapping))
    now = datetime.now(UTC)
    options: dict[str, Any] = {"format": format, "mapping": mapping, "folders": folders}
    reader = RecordingReader(now, **options, skip=files.is_known, finished=files.finished)
    ids = _Ids(now)
    names = [each[:MAX_NAME] for each in sources or map(_name, map(Path, paths))]
    run = _Import(memory, now, names)
    result = run.result
    progress(result)
    try:
        for each in reader.read(paths, searched):
            if isinstance(each, UserMessage):
                continue
            if isinstance(each, BadRecord):
                result.add_bad(each)
                continue
            ids.give(each, reader.path)
            run.take(each, reader.path)
            if run.is_full:
                run.add(list(reader.tools.values()))
                progress(result)
            if result.stopped:
                break
    except RequestError as error:
        if not (result.read or run.batch):
            raise
        result.stopped = str(error)
    run.add(list(reader.tools.values()))
    run.close()
    result.notes = reader.all_notes()
    result.unchanged = reader.notes[UNCHANGED]
    result.unreadable = len(reader.unreadable)
    if run.names:  # also without a new call: an earlier import may have been interrupted
        _conclude(memory, run)
    if not run.is_stopped:  # otherwise the next import reads all files again
        files.keep(run.refused)
    return result


def _conclude(memory: ToolMem, run: _Import) -> None:
    """Summarize the tools. Adds to the result what rules and guidance do for the newest calls."""
    result = run.result
    newest = _newest_calls(memory.services.store(), memory.workspace_name)
    run.summarize(newest)
    if not result.calls:
        return
    result.replay = replay(newest)
    result.later_repairs = later_repairs(newest)
    for record in records_shown(memory, result.worst(CARDS)):
        lines = record.guidance.lines if record.guidance else []
        result.cards[record.tool_name] = [
            line.text for line in lines if line.kind not in ("rate", "left_out", "withheld")
        ][:3]


def _newest_calls(store: Store, workspace: str) -> list[ToolCallResult]:
    """The newest calls, oldest first, with both ends of long outputs."""
    calls: list[ToolCallResult] = []
    before = None
    while len(calls) < REPLAYED:
        page = store.call_log(workspace, before=before, limit=BATCH, newest=True)
        if not page:
            break
        for each in page:
            each.call.output = bounded(each.call.output, REPLAYED_OUTPUT)
        calls[:0] = [each.call for each in page]
        before = page[0].position
    return calls


class _Ids:
    """Makes ids of the content of calls that have none; equal in every import of a file."""

    def __init__(self, now: datetime) -> None:
        self._now = now  # the time of calls whose own time is unknown
        self._path = Path()
        self._given: Counter[bytes] = Counter()  # in this file

    def give(self, read: ReadCall, path: Path) -> None:
        call = read.call
        if call.id is not None:
            return
        if path != self._path:
            self._path = path
            self._given.clear()
        time = None if call.create_time == self._now else call.create_time.astimezone(UTC)
        # Times or conversations identify the calls of a file that was moved. Without both, the path
        # of the file does: the same content in another file may be another call.
        conversation = call.conversation_id
        stem = Path(path.name.removesuffix(".gz")).stem
        file = "" if time or conversation else _name(path.resolve().with_name(stem))
        place = (conversation, file, time)
        digest = sorted_digest((place, call.tool_name, call.input, call.output, call.context))
        self._given[digest] += 1
        call.id = f"{digest.hex()}-{self._given[digest]}"


class _Files:
    """The files that were imported whole, by their size and the time of their last change."""

    def __init__(self, memory: ToolMem, reads_all: bool) -> None:
        self._store = memory.services.store()
        self._workspace = memory.workspace_name
        self._reads_all = reads_all
        self._runs = settled_runs(self._store, self._workspace).keys()
        self._states: dict[Path, list[int]] = {}  # size and time, before a file is read
        self._finished: list[Path] = []

    def is_known(self, path: Path) -> bool:
        """Whether a file is as when it was imported. False for databases, which use other files."""
        status = path.stat()
        state = self._states[path] = [status.st_size, status.st_mtime_ns]
        if self._reads_all or path.suffix == ".db":
            return False
        record = self._store.get(self._workspace, IMPORTS, _key(path))
        return record is not None and record.read(list[int]) == state

    def finished(self, path: Path) -> None:
        """Note that a file was read to its end, so that the next import need not read it again."""
        self._finished.append(path)

    def keep(self, refused: Collection[Path]) -> None:
        """Store the finished files, except those with a call that the memory refused.

        No file is stored if an import was forgotten meanwhile: its calls must be read again.
        """
        with self._store.transaction():
            if self._runs - settled_runs(self._store, self._workspace).keys():
                return
            for path in (each for each in self._finished if each not in refused):
                self._store.put(self._workspace, IMPORTS, _key(path), self._states[path])
        self._finished.clear()


def _key(path: Path) -> str:
    return sorted_digest(_name(path.resolve())).hex()


def _name(path: Path) -> str:
    """A path as text, also if it is no UTF-8, which Linux allows."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class _Import:
    """Adds calls to a memory, and counts the new ones as the memory judged them."""

    def __init__(self, memory: ToolMem, now: datetime, sources: list[str]) -> None:
        self.result = Imported()
        self.is_stopped = False  # by the judge, or because the import was forgotten
        self.names: set[str] = set()  # of the tools
        self.batch: list[ReadCall] = []
        self.refused: set[Path] = set()  # files with calls that the memory refused
        self._paths: dict[int, Path] = {}  # files of the batch, by row
        self._size = 0  # characters of the outputs in the batch
        self._memory = memory
        self._workspace = memory.workspace_name
        self._hook_calls = HookCalls(memory)
        self._id = f"{now:%Y%m%d}-{os.urandom(3).hex()}"
        self._run = ImportRun(now, sources, is_open=True)
        self._store = memory.services.store()
        self._is_stored = False
        self._failed: set[bytes] = set()  # digests of calls that failed

    @property
    def is_full(self) -> bool:
        return len(self.batch) == BATCH or self._size > MAX_BATCH

    def take(self, read: ReadCall, path: Path) -> None:
        """Append a call to the batch."""
        self._paths[read.row] = path
        read.call.output = bounded(read.call.output, MAX_OUTPUT)
        self._size += len(read.call.output)
        self.batch.append(read)

    def add(self, tools: list[object]) -> None:
        """Add the batch to the memory."""
        result = self.result
        batch = self._hook_calls.not_recorded(self.batch)
        result.read += len(self.batch) - len(batch)
        result.duplicates += len(self.batch) - len(batch)
        paths = self._paths
        self._paths = {}
        self.batch = []
        self._size = 0
        if not batch or self.is_stopped or not self._store_run(batch):
            return
        try:
            added = self._memory.add([each.call for each in batch], tools=tools or None)
            self._count_new()
        except KeyboardInterrupt:
            self._count_new()  # some calls may have been added
            raise
        result.read += len(batch)
        result.duplicates += added.evaluation.duplicates
        for failure in added.evaluation.failures:
            read = batch[failure.index]
            self.refused.add(paths[read.row])
            result.add_bad(BadRecord(read.line, failure.tool_name, failure.error, read.file))
        if added.stopped:
            self.is_stopped = True
            result.stopped = added.stopped

    def _count_new(self) -> None:
        """Count the calls that the log got since the batch began; store their figures and ids."""
        run = self._run
        with self._store.transaction():
            if self._is_forgotten():  # so that its last calls can be forgotten too
                self._run = ImportRun(run.began, run.sources, pending=run.pending)
            new = keep_run(self._store, self._workspace, self._id, self._run)
        for call in new:
            self._count(call)

    def summarize(self, newest: list[ToolCallResult]) -> None:
        """Summarize the tools, and count older failures, also of imports that were interrupted."""
        runs = self._store.list_records(self._workspace, IMPORT_RUNS)
        uncounted = {each.key: run for each in runs if (run := each.read(ImportRun)).is_open}
        counted = add_older_failures(self._memory, newest, uncounted)
        with self._store.transaction():
            for each in self._store.list_records(self._workspace, IMPORT_RUNS):
                if each.key in uncounted:
                    run = replace(each.read(ImportRun), is_open=False)
                    self._store.put(self._workspace, IMPORT_RUNS, each.key, run)
        # Without force a summary would skip tools that have only older calls.
        for names, force in ((self.names - counted, False), (counted, True)):
            if names:
                self._memory.summarize(sorted(names), force=force)

    def close(self) -> None:
        """Free memory, and delete the stored run of an import without new calls."""
        self._hook_calls = HookCalls(self._memory)
        self._failed.clear()
        if self._is_stored and not self.result.id:
            self._store.delete(self._workspace, IMPORT_RUNS, self._id)

    def _store_run(self, batch: list[ReadCall]) -> bool:
        """Mark the calls and store the log's end, so that they are found if the import is killed.

        Returns False if the import was forgotten meanwhile.
        """
        for each in batch:
            each.call.metadata = {**each.call.metadata, IMPORT_ID: self._id}
        with self._store.transaction():
            if self._is_forgotten():
                return False
            newest = self._store.call_log(self._workspace, newest=True, limit=1)
            self._run.pending = newest[-1].position if newest else 0
            self._store.put(self._workspace, IMPORT_RUNS, self._id, self._run)
        self._is_stored = True
        self.names |= {each.call.tool_name for each in batch}
        return True

    def _is_forgotten(self) -> bool:
        if self._is_stored and not self._store.get(self._workspace, IMPORT_RUNS, self._id):
            self.is_stopped = True
            self.result.stopped = FORGOTTEN
            self.result.id = ""
        return self.is_stopped

    def _count(self, call: ToolCallResult) -> None:
        result = self.result
        result.id = self._id
        conversation = call.conversation_id
        if conversation:
            result.conversations.add(sorted_digest(conversation))
        result.formats[format_of(call)] += 1
        tool = result.tools.setdefault(call.tool_name, ToolFigures())
        tool.calls += 1
        if call.failed:
            tool.failures += 1
            tool.classes[call.error_class or "error"] += 1
            if conversation:
                digest = sorted_digest((conversation, call.tool_name, call.input))
                result.repeats += digest in self._failed
                self._failed.add(digest)
