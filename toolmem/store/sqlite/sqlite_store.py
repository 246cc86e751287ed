"""The embedded store: one SQLite file (or memory), shared by any number of processes.

Reads see one moment (WAL snapshots), writes are `BEGIN IMMEDIATE` transactions, and one that returned is on the disk
(`synchronous=FULL`). Each connection lives in a worker thread of its own, the writer's and the reader's: a read never
waits for a write lock that another process holds, and the event loop never waits for the disk.
"""

from __future__ import annotations

import builtins
import shlex
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from toolmem.errors import RequestError, StoreClosed, StoreError, StoreUntrusted
from toolmem.store import known_stores
from toolmem.store.codec import GuidanceCache, copied, unnameable
from toolmem.store.decided import DecidedStore
from toolmem.store.logged_decisions import decision_json
from toolmem.store.new_vectors import reembed
from toolmem.store.sqlite import (
    call_log,
    decision_log,
    documents,
    keyed_records,
    search,
    tool_reads,
    tool_writes,
    verdict_cache,
    workspaces,
)
from toolmem.store.sqlite.calls_together import CallsTogether
from toolmem.store.sqlite.connection import MEMORY, Synchronous, location_of
from toolmem.store.sqlite.reembedding import KeptAside
from toolmem.store.sqlite.worker_threads import WorkerThreads
from toolmem.stored import LogLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    import apsw

    from toolmem.models import ToolCallResult, Verdict
    from toolmem.protocols import Clock, Embedder, EmbedderIdentity
    from toolmem.store.keyed import PutRecord
    from toolmem.store.searching import Legs, SearchRequest
    from toolmem.store.semantics import Request
    from toolmem.stored import Appended, BesideCalls, LoggedDecision, RawRecord, Stamped, StoredMemory

P = ParamSpec("P")
T = TypeVar("T")


def _asks(
    job: Callable[Concatenate[apsw.Connection, P], T], nothing: Callable[[], T], *, writes: bool = False
) -> Callable[Concatenate[SqliteStore, P], Coroutine[Any, Any, T]]:
    """A method that does `job` in a transaction. `nothing`: the answer for names that cannot be stored."""

    async def method(store: SqliteStore, /, *asked: P.args, **named: P.kwargs) -> T:
        if unnameable(*asked, *named.values()):
            return nothing()
        return await (store._write if writes else store._read)(job, *asked, **named)

    return method


class SqliteStore(DecidedStore):
    """`MemoryStore` on SQLite.

    `path`: the file, which the first write makes, with its folder; or ":memory:". `embedder`: whose vectors are handed
    over, None where none are. `synchronous`: "FULL" survives a power cut with everything acknowledged; "NORMAL"
    survives SIGKILL so, and may lose the last commits in a power cut. `busy_timeout`: seconds to wait for another
    process's write. `accept_read_only`: a file that cannot be written is opened for reading, and each write raises
    StoreUnavailable; otherwise it is refused, before any work is done whose results could not be kept. `found`: nobody
    named this path; then `untrusted` says whether this user made or trusts what lies there. `log`: how much the logs
    of each workspace hold.

    Usable from any thread and any event loop. After a fork the child's copy raises StoreClosed. A coroutine that is
    cancelled leaves at once; a write that it had handed over is carried out all the same.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock,
        embedder: EmbedderIdentity | None,
        synchronous: Synchronous = "FULL",
        busy_timeout: float = 30.0,
        accept_read_only: bool = False,
        found: bool = False,
        log: LogLimits | None = None,
    ) -> None:
        if synchronous not in ("FULL", "NORMAL"):
            raise RequestError(f"synchronous: expected 'FULL' or 'NORMAL', got {synchronous!r}", field="synchronous")
        self.location = location_of(path)  # the file's absolute path, or ":memory:"
        self.untrusted = ""  # why nothing of this store may reach a prompt; "" where it may
        self._clock = clock
        self._embedder = embedder
        self._synchronous: Synchronous = synchronous
        self._busy_timeout = busy_timeout
        self._accept_read_only = accept_read_only
        self._found = found
        self._limits = log or LogLimits()
        self._threads: WorkerThreads | None = None
        self._vectors = search.VectorCache()
        self._guidance = GuidanceCache()

    async def open(self) -> None:
        """Raises StoreUnavailable or StoreVersionError. An open store stays as it is."""
        if self._threads is not None:
            self._threads.require_own_process()
            return
        accepted = partial(_require_known, self.location) if self._found else None
        told = (self._synchronous, self._busy_timeout, self._accept_read_only, accepted)
        threads = WorkerThreads(self.location, *told)
        await threads.open()
        if self._threads is not None:  # somebody else was quicker
            await threads.close()
            return
        self._threads = threads
        self._guidance = GuidanceCache()
        if self._found and self.location != MEMORY and threads.is_made:
            known = known_stores.is_known(self.location, await self._read(known_stores.read_id))
            self.untrusted = "" if known else _untrusted_message(self.location)

    async def trust(self) -> None:
        """Note this store as one whose rules and guidance this user believes. Raises StoreError."""
        store_id = await self._write(known_stores.give_id)
        try:
            known_stores.remember(self.location, store_id)
        except OSError as error:
            raise StoreError(
                f"the list of trusted stores cannot be written ({error}); a store that is named needs no entry: "
                f"vector_store.default.params.path={shlex.quote(self.location)}"
            ) from error
        self.untrusted = ""

    async def close(self) -> None:
        """What was handed over is done first. A closed store may be closed, or opened, again."""
        threads = self._threads
        if threads is None:
            return
        threads.require_own_process()
        self._threads = None
        self._vectors = search.VectorCache()
        await threads.close()

    def _open_threads(self) -> WorkerThreads:
        if self._threads is None:
            raise StoreClosed(f"the store {self.location} is not open; `await store.open()` first")
        self._threads.require_own_process()
        return self._threads

    async def _read(self, job: Callable[Concatenate[apsw.Connection, P], T], *asked: P.args, **named: P.kwargs) -> T:
        return await self._open_threads().read(lambda db: job(db, *asked, **named))

    async def _write(self, job: Callable[Concatenate[apsw.Connection, P], T], *asked: P.args, **named: P.kwargs) -> T:
        return await self._open_threads().write(lambda db: job(db, *asked, **named))

    # -- tool memories

    async def _commit(self, request: Request[T]) -> T:
        cache, embedder, limits = self._guidance, self._embedder, self._limits
        step = await self._open_threads().write(
            lambda db: tool_writes.commit(db, request, cache, embedder, limits), request.prepare
        )
        if step.guidance is not None and step.row is not None:
            cache.keep((step.row.id_stem, step.row.guidance_version), copied(step.row.guidance))
        return step.answer()

    async def append_with(
        self, workspace: str, calls: Sequence[ToolCallResult], keep: int, beside: BesideCalls
    ) -> dict[str, Appended]:
        """`append_calls` of all these, whatever their tools, and what changes beside them, in one commit; by tool."""
        work = CallsTogether(self._clock.now(), workspace, calls, keep, beside)
        cache, embedder, limits = self._guidance, self._embedder, self._limits
        return await self._open_threads().write(lambda db: work.carry_out(db, cache, embedder, limits), work.prepare)

    async def memories(self, workspace: str, tools: Sequence[str] | None, **asked: Any) -> builtins.list[StoredMemory]:
        return await self._read(tool_reads.memories, workspace, tools, self._guidance, **asked)

    known_ids = _asks(tool_reads.known_ids, set)
    tool_names = _asks(tool_reads.tool_names, builtins.list)
    delete_memories = _asks(tool_writes.delete_memories, builtins.list, writes=True)

    # -- logs

    call_log = _asks(call_log.read, builtins.list)
    decisions = _asks(decision_log.read, builtins.list)

    async def log_decision(self, workspace: str, decision: LoggedDecision) -> None:
        text = decision_json(workspace, decision)
        await self._write(decision_log.write, workspace, decision, text, self._limits.max_decisions)

    # -- verdict cache

    verdicts = _asks(verdict_cache.read, dict)
    verdict_keys = _asks(verdict_cache.keys, builtins.list)

    async def _put_verdicts(self, workspace: str, verdicts: Mapping[str, Verdict]) -> None:
        await self._write(verdict_cache.write, workspace, verdicts)

    # -- keyed records

    async def _put(self, record: PutRecord) -> RawRecord:
        return await self._write(keyed_records.put, record, self._embedder)

    async def _get(self, workspace: str, namespace: str, key: str) -> RawRecord | None:
        return await self._read(keyed_records.get, workspace, namespace, key)

    async def read_stamped(self, workspace: str, keys: Sequence[tuple[str, str]]) -> Stamped:
        return await self._read(keyed_records.read_stamped, workspace, keys)

    list_raw = _asks(keyed_records.list_raw, builtins.list)
    delete = _asks(keyed_records.delete, bool, writes=True)
    namespaces = _asks(keyed_records.namespaces, builtins.list)
    stored_embedder = _asks(documents.stored_embedder, lambda: None)
    documents = _asks(documents.read, dict)

    # -- search

    async def _legs(self, workspace: str, request: SearchRequest) -> Legs:
        return await self._read(search.legs, self._vectors, self._embedder, workspace, request)

    async def reembed(self, embedder: Embedder, progress: Callable[[int, int], None] | None = None) -> int:
        count = await reembed(await KeptAside(self._open_threads(), embedder.identity).begin(), embedder, progress)
        self._embedder = embedder.identity
        return count

    # -- workspaces and the store itself

    delete_workspace = _asks(workspaces.delete, int, writes=True)
    workspaces = _asks(workspaces.names, builtins.list)

    async def info(self) -> dict[str, Any]:
        return await self._read(workspaces.info, self.location)


def _require_known(path: str, db: apsw.Connection) -> None:
    """Of a file that came into the place of none while that was open. Raises StoreUntrusted."""
    if not known_stores.is_known(path, known_stores.read_id(db)):
        raise StoreUntrusted(_untrusted_message(path))


def _untrusted_message(path: str) -> str:
    return (
        f"the store {path} was found here, and you neither made nor trusted it: nothing of it is put before a model. "
        f"If it is yours, run `toolmem store trust {shlex.quote(path)}` once"
    )
