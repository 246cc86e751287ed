"""The embedded store: one SQLite file (or memory), shared by any number of processes.

Reads see one moment (WAL snapshots), writes are `BEGIN IMMEDIATE` transactions, and one that returned is on the disk
(`synchronous=FULL`). Each connection lives in a worker thread of its own, the writer's and the reader's: a read never
waits for a write lock that another process holds, and the event loop never waits for the disk.
"""

from __future__ import annotations

import builtins
import shlex
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from toolmem.errors import RequestError, StoreClosed, StoreError
from toolmem.models import Verdict
from toolmem.protocols import Clock, Embedder, EmbedderIdentity
from toolmem.store import known_stores
from toolmem.store.codec import GuidanceCache, copied
from toolmem.store.decided import DecidedStore
from toolmem.store.records import PutRecord
from toolmem.store.searching import Asked, Legs
from toolmem.store.semantics import Request
from toolmem.store.sqlite import (
    documents,
    keyed_records,
    reembedding,
    search,
    tool_reads,
    tool_writes,
    verdict_cache,
    workspaces,
)
from toolmem.store.sqlite.connection import MEMORY, Synchronous, location_of
from toolmem.store.sqlite.lanes import Lanes
from toolmem.stored import Document, RawRecord, StoredMemory

if TYPE_CHECKING:
    import apsw

T = TypeVar("T")


class SqliteStore(DecidedStore):
    """`MemoryStore` on SQLite.

    `path`: the file (its folder is made), or ":memory:". `embedder`: whose vectors are handed over, None where none
    are. `synchronous`: "FULL" survives a power cut with everything acknowledged; "NORMAL" survives SIGKILL so, and may
    lose the last commits in a power cut. `busy_timeout`: seconds to wait for another process's write.
    `accept_read_only`: a file that cannot be written is opened for reading, and each write raises StoreUnavailable;
    otherwise it is refused, before any work is done whose results could not be kept. `found`: nobody named this path;
    then `untrusted` says whether this user made or trusts what lies there.

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
    ) -> None:
        if synchronous not in ("FULL", "NORMAL"):
            raise RequestError(f"synchronous: expected 'FULL' or 'NORMAL', got {synchronous!r}", field="synchronous")
        self._path = location_of(path)
        self._clock = clock
        self._embedder = embedder
        self._synchronous: Synchronous = synchronous
        self._busy_timeout = busy_timeout
        self._accept_read_only = accept_read_only
        self._found = found
        self._untrusted = ""
        self._lanes: Lanes | None = None
        self._opening = object()  # another one each time: between two of them the file may have been replaced
        self._cache = search.VectorCache()
        self._guidance = GuidanceCache()

    @property
    def location(self) -> str:
        """The file's absolute path, or ":memory:"."""
        return self._path

    @property
    def untrusted(self) -> str:
        """Why nothing of this store may reach a prompt; "" where it may."""
        return self._untrusted

    async def open(self) -> None:
        """Raises StoreUnavailable or StoreVersionError. An open store stays as it is."""
        if self._lanes is not None:
            self._lanes.require_own_process()
            return
        lanes = Lanes(self._path, self._synchronous, self._busy_timeout, self._accept_read_only)
        await lanes.open()
        if self._lanes is not None:  # somebody else was quicker
            await lanes.close()
        else:
            self._lanes = lanes
            self._opening = object()
            self._guidance = GuidanceCache()
            if self._found and self._path != MEMORY:
                known = known_stores.is_known(self._path, await self._read(known_stores.read_id))
                self._untrusted = "" if known else _untrusted_message(self._path)

    async def trust(self) -> None:
        """Note this store as one whose rules and guidance this user believes. Raises StoreError."""
        store_id = await self._write(known_stores.give_id)
        try:
            known_stores.remember(self._path, store_id)
        except OSError as error:
            raise StoreError(
                f"the list of trusted stores cannot be written ({error}); a store that is named needs no entry: "
                f"vector_store.default.params.path={shlex.quote(self._path)}"
            ) from error
        self._untrusted = ""

    async def close(self) -> None:
        """What was handed over is done first. A closed store may be closed, or opened, again."""
        lanes = self._lanes
        if lanes is None:
            return
        lanes.require_own_process()
        self._lanes = None
        self._cache = search.VectorCache()
        await lanes.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _open_lanes(self) -> Lanes:
        if self._lanes is None:
            raise StoreClosed(f"the store {self._path} is not open; `await store.open()` first")
        self._lanes.require_own_process()
        return self._lanes

    async def _read(self, job: Callable[..., T], *values: Any, **named: Any) -> T:
        return await self._open_lanes().read(lambda db: job(db, *values, **named))

    async def _write(self, job: Callable[[apsw.Connection], T]) -> T:
        return await self._open_lanes().write(None, lambda db, _: job(db))

    # -- tool memories

    async def _commit(self, request: Request[T]) -> T:
        cache, embedder = self._guidance, self._embedder
        step = await self._open_lanes().write(
            request.prepare, lambda db, _: tool_writes.commit(db, request, cache, embedder)
        )
        if step.guidance is not None and step.row is not None:
            cache.keep((step.row.id_stem, step.row.guidance_version), copied(step.row.guidance))
        return step.answer()

    async def known_ids(self, workspace: str, tool: str, ids: Sequence[str]) -> set[str]:
        return await self._read(tool_reads.known_ids, workspace, tool, list(ids))

    async def tool_names(self, workspace: str) -> builtins.list[str]:
        return await self._read(tool_reads.tool_names, workspace)

    async def memories(
        self,
        workspace: str,
        tools: Sequence[str] | None,
        *,
        calls: bool = False,
        recent: int | None = None,
        seqs: Mapping[str, Sequence[int]] | None = None,
        known: Mapping[str, Hashable] | None = None,
    ) -> builtins.list[StoredMemory]:
        wanted = tool_reads.Wanted(calls, recent, seqs, known or {}, self._opening, self._guidance)
        return await self._read(tool_reads.memories, workspace, tools, wanted)

    async def delete_memories(self, workspace: str, memory_ids: Sequence[str]) -> builtins.list[str]:
        wanted = list(memory_ids)
        return await self._write(lambda db: tool_writes.delete_memories(db, workspace, wanted))

    # -- verdict cache

    async def verdicts(self, workspace: str, keys: Sequence[str]) -> dict[str, Verdict]:
        return await self._read(verdict_cache.read, workspace, list(keys))

    async def _put_verdicts(self, workspace: str, verdicts: Mapping[str, Verdict]) -> None:
        await self._write(lambda db: verdict_cache.write(db, workspace, verdicts))

    async def verdict_keys(self, workspace: str, after: str = "", limit: int = 1000) -> builtins.list[str]:
        return await self._read(verdict_cache.keys, workspace, after, limit)

    # -- keyed records

    async def _put(self, record: PutRecord) -> RawRecord:
        embedder = self._embedder
        return await self._write(lambda db: keyed_records.put(db, record, embedder))

    async def _get(self, workspace: str, namespace: str, key: str) -> RawRecord | None:
        return await self._read(keyed_records.get, workspace, namespace, key)

    async def list_raw(
        self, workspace: str, namespaces: Sequence[str] | None, *, prefix: str = "", key_prefix: str = ""
    ) -> builtins.list[RawRecord]:
        chosen = None if namespaces is None else builtins.list(namespaces)
        return await self._read(keyed_records.list_raw, workspace, chosen, prefix, key_prefix)

    async def delete(self, workspace: str, namespace: str, key: str) -> bool:
        return await self._write(lambda db: keyed_records.delete(db, workspace, namespace, key))

    async def namespaces(self, workspace: str) -> builtins.list[str]:
        return await self._read(keyed_records.namespaces, workspace)

    async def documents(self, workspace: str, namespace: str | None, keys: Sequence[str]) -> dict[str, Document]:
        return await self._read(documents.read, workspace, namespace, builtins.list(keys))

    # -- search

    async def _legs(self, workspace: str, asked: Asked) -> Legs:
        return await self._read(search.legs, self._cache, self._embedder, workspace, asked)

    async def reembed(self, embedder: Embedder, progress: Callable[[int, int], None] | None = None) -> int:
        count = await reembedding.reembed(self._open_lanes(), embedder, progress)
        self._embedder = embedder.identity
        return count

    # -- workspaces and the store itself

    async def workspaces(self) -> builtins.list[str]:
        return await self._read(workspaces.names)

    async def delete_workspace(self, workspace: str) -> int:
        return await self._write(lambda db: workspaces.delete(db, workspace))

    async def info(self) -> dict[str, Any]:
        return await self._read(workspaces.info, self._path)


def _untrusted_message(path: str) -> str:
    return (
        f"the store {path} was found here, and you neither made nor trusted it: nothing of it is put before a model. "
        f"If it is yours, run `toolmem store trust {shlex.quote(path)}` once"
    )
