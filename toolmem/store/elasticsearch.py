"""The distributed store: Elasticsearch 8.13+ or 9, shared by any number of processes and machines.

A commit writes the calls as documents of their own, then replaces the tool's record by one compare-and-swap, which
makes them visible. Nothing is ever rewritten but that record. Tools are read by id (no refresh, no search); searches
and lists refresh first, so that they see every acknowledged write. Only features that every licence has: no scripts,
no server-side reindex, delete-by-query or rank fusion.
"""

from __future__ import annotations

import asyncio
import builtins
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from toolmem.errors import RequestError, StoreClosed
from toolmem.models import Verdict
from toolmem.protocols import Clock, Embedder, EmbedderIdentity
from toolmem.store.codec import storable
from toolmem.store.decided import DecidedStore
from toolmem.store.elastic import (
    call_documents,
    keyed_records,
    reembedding,
    search,
    sweeping,
    verdict_cache,
    workspaces,
)
from toolmem.store.elastic.client import Secrets, credentials, host_url, make_client
from toolmem.store.elastic.commits import commit
from toolmem.store.elastic.connection import Connection
from toolmem.store.elastic.failures import Location
from toolmem.store.elastic.ids import known_ids
from toolmem.store.elastic.indices import Layout, check_server, prepare
from toolmem.store.elastic.session import Session
from toolmem.store.elastic.tool_commits import RequestPlan
from toolmem.store.elastic.tool_state import ToolState
from toolmem.store.records import PutRecord
from toolmem.store.searching import Legs, SearchRequest
from toolmem.store.semantics import Found, Request
from toolmem.stored import Document, RawRecord, StoredMemory

if TYPE_CHECKING:
    pass

T = TypeVar("T")


class ElasticsearchStore(DecidedStore):
    """`MemoryStore` on Elasticsearch.

    `hosts`: a URL or several nodes of one cluster. `index_prefix`: what the names of the indices begin with; one store
    per prefix. `basic_auth`: "user:password"; `api_key`: as Elasticsearch hands it out (base64). `ca_certs`: a file.
    `timeout`: seconds for an operation on the server, attempts together. `max_retries`: further attempts after a lost
    connection, on another node where there is one. `vector_index`: "flat" (exact) or "int8_hnsw" (approximate), decided
    when the first vector is written. Shards and replicas are decided when the indices are made.

    Opened on one event loop and used there; after a fork the child's copy raises StoreClosed. A coroutine that is
    cancelled leaves at once; a write that it had handed over is carried out all the same.
    """

    def __init__(
        self,
        hosts: str | Sequence[str] = "http://localhost:9200",
        *,
        clock: Clock,
        embedder: EmbedderIdentity | None,
        index_prefix: str = "toolmem",
        basic_auth: str | None = None,
        api_key: str | None = None,
        ca_certs: str | None = None,
        verify_certs: bool = True,
        timeout: float = 30.0,
        max_retries: int = 3,
        vector_index: Literal["flat", "int8_hnsw"] = "flat",
        number_of_shards: int = 1,
        number_of_replicas: int = 1,
        accept_older_schema: bool = False,
        section: str = "vector_store.<name>",
        given_by: str = "",
    ) -> None:
        """`accept_older_schema`: for the copy of an older store; such a store is only read.

        `section`: where the configuration has these settings; `given_by`: what gave the hosts, where it was something
        else (`--to`). Messages name them.
        """
        addresses = [hosts] if isinstance(hosts, str) else builtins.list(hosts)
        self._section, self._given_by = section, given_by
        self._hosts = [host_url(address) for address in addresses]
        if not self._hosts:
            raise RequestError("hosts: expected at least one URL, e.g. http://localhost:9200", field="hosts")
        if vector_index not in ("flat", "int8_hnsw"):
            raise RequestError(
                f"vector_index: expected 'flat' or 'int8_hnsw', got {vector_index!r}", field="vector_index"
            )
        self._clock = clock
        self._embedder = embedder
        self._layout = Layout(index_prefix, number_of_shards, number_of_replicas, vector_index)
        self._secrets = Secrets(credentials(basic_auth, addresses), api_key, ca_certs, verify_certs)
        self._timeout = timeout
        self._max_retries = max_retries
        self._accept_older = accept_older_schema
        self._session: Session | None = None
        self._server = ""
        self._place: tuple[int, asyncio.AbstractEventLoop | None] = (0, None)  # process and loop

    @property
    def location(self) -> str:
        """The hosts, without credentials."""
        return ", ".join(self._hosts)

    async def open(self) -> None:
        """Raises StoreUnavailable or StoreVersionError. An open store stays as it is."""
        if self._session is not None:
            self._require_own_place()
            return
        connection = Connection(
            make_client(self._hosts, self._secrets, self._timeout),
            location=Location(self.location, f"{self._section}.params", self._given_by),
            hosts=len(self._hosts),
            timeout=self._timeout,
            max_retries=self._max_retries,
        )
        try:
            self._server = await check_server(connection)
            await prepare(connection, self._layout, self._accept_older)
            session = Session(connection, self._layout, self._embedder)
            if not self._accept_older:
                await sweeping.sweep(session)
        except BaseException:
            await connection.close()
            raise
        self._session = session
        self._place = (os.getpid(), asyncio.get_running_loop())

    async def close(self) -> None:
        """What was handed over is done first. A closed store may be closed, or opened, again."""
        session = self._session
        if session is None:
            return
        self._require_own_process()
        self._session = None
        await session.finish_writes()
        await sweeping.sign_off(session)
        await session.connection.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _open_session(self) -> Session:
        if self._session is None:
            raise StoreClosed(f"the store at {self.location} is not open; `await store.open()` first")
        self._require_own_place()
        return self._session

    def _require_own_process(self) -> None:
        if self._place[0] != os.getpid():
            raise StoreClosed("the store was opened before a fork; open a store of its own in the child")

    def _require_own_place(self) -> None:
        self._require_own_process()
        if self._place[1] is not asyncio.get_running_loop():
            raise StoreClosed(
                f"the store at {self.location} was opened on another event loop; open one there, or use "
                "`ToolMemApp.run`, which keeps to one loop"
            )

    # -- tool memories

    async def known_ids(self, workspace: str, tool: str, ids: Sequence[str]) -> set[str]:
        return await known_ids(self._open_session(), workspace, tool, ids)

    async def _commit(self, request: Request[T]) -> T:
        session = self._open_session()
        request.prepare()
        if not request.addressable:
            return request.decide(Found()).answer()
        return await session.carry_out(self._carried_out(session, request))

    async def _carried_out(self, session: Session, request: Request[T]) -> T:
        asked = [request.memory_id] if request.memory_id else []
        taken = await workspaces.tools_of_memory_ids(session, request.workspace, asked)
        answer: T = await commit(session, RequestPlan(session, request, bool(taken)))
        return answer

    async def tool_names(self, workspace: str) -> builtins.list[str]:
        return await workspaces.tool_names(self._open_session(), workspace)

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
        states = await self._states(workspace, tools)
        session = self._open_session()
        return await call_documents.read_memories(
            session, states, calls=calls, recent=recent, seqs=seqs, known=known or {}
        )

    async def _states(self, workspace: str, tools: Sequence[str] | None) -> builtins.list[ToolState]:
        session = self._open_session()
        if tools is None:
            return await workspaces.all_states(session, workspace)
        names = [name for name in tools if storable(name)]
        if not names or not storable(workspace):
            return []
        return await call_documents.read_states(session.connection, self._layout, workspace, names)

    async def delete_memories(self, workspace: str, memory_ids: Sequence[str]) -> builtins.list[str]:
        session = self._open_session()
        return await session.carry_out(workspaces.delete_memories(session, workspace, builtins.list(memory_ids)))

    async def delete_tools(self, workspace: str) -> int:
        session = self._open_session()
        return await session.carry_out(workspaces.delete_tools(session, workspace))

    # -- verdict cache

    async def verdicts(self, workspace: str, keys: Sequence[str]) -> dict[str, Verdict]:
        return await verdict_cache.read(self._open_session(), workspace, keys)

    async def _put_verdicts(self, workspace: str, verdicts: Mapping[str, Verdict]) -> None:
        session = self._open_session()
        await session.carry_out(verdict_cache.write(session, workspace, verdicts))

    async def verdict_keys(self, workspace: str, after: str = "", limit: int = 1000) -> builtins.list[str]:
        return await verdict_cache.keys(self._open_session(), workspace, after, limit)

    # -- keyed records

    async def _put(self, record: PutRecord) -> RawRecord:
        session = self._open_session()
        return await session.carry_out(keyed_records.put(session, record))

    async def _get(self, workspace: str, namespace: str, key: str) -> RawRecord | None:
        return await keyed_records.get(self._open_session(), workspace, namespace, key)

    async def list_raw(
        self, workspace: str, namespaces: Sequence[str] | None, *, prefix: str = "", key_prefix: str = ""
    ) -> builtins.list[RawRecord]:
        chosen = None if namespaces is None else builtins.list(namespaces)
        return await keyed_records.list_raw(self._open_session(), workspace, chosen, prefix, key_prefix)

    async def delete(self, workspace: str, namespace: str, key: str) -> bool:
        session = self._open_session()
        return await session.carry_out(keyed_records.delete(session, workspace, namespace, key))

    async def namespaces(self, workspace: str) -> builtins.list[str]:
        return await keyed_records.namespaces(self._open_session(), workspace)

    async def documents(self, workspace: str, namespace: str | None, keys: Sequence[str]) -> dict[str, Document]:
        return await search.documents(self._open_session(), workspace, namespace, builtins.list(keys))

    # -- search

    async def _legs(self, workspace: str, asked: SearchRequest) -> Legs:
        return await search.legs(self._open_session(), workspace, asked)

    async def reembed(self, embedder: Embedder, progress: Callable[[int, int], None] | None = None) -> int:
        count = await reembedding.reembed(self._open_session(), embedder, progress)
        self._embedder = embedder.identity
        return count

    # -- workspaces and the store itself

    async def delete_workspace(self, workspace: str) -> int:
        session = self._open_session()
        return await session.carry_out(workspaces.delete_workspace(session, workspace))

    async def info(self) -> dict[str, Any]:
        return await workspaces.info(self._open_session(), self._server)

    async def sweep(self, silent_seconds: float = sweeping.SILENT_SECONDS) -> int:
        """Delete what writers left that have not been heard of for so long; `open` does it by itself."""
        return await sweeping.sweep(self._open_session(), silent_seconds)
