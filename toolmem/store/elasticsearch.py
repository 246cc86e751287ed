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
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

from toolmem.errors import RequestError, StoreClosed
from toolmem.store.codec import storables, unnameable
from toolmem.store.decided import DecidedStore
from toolmem.store.elastic import (
    call_documents,
    call_log,
    commits,
    decision_log,
    keyed_records,
    search,
    sweeping,
    verdict_cache,
    workspaces,
)
from toolmem.store.elastic.client import client_options, host_url, make_client
from toolmem.store.elastic.cluster import Cluster
from toolmem.store.elastic.generations import stored_generation
from toolmem.store.elastic.indices import Layout, check_server, prepare
from toolmem.store.elastic.reembedding import BesideTheOld
from toolmem.store.elastic.server_errors import Location
from toolmem.store.elastic.session import Session
from toolmem.store.logged_decisions import decision_json
from toolmem.store.new_vectors import reembed
from toolmem.store.semantics import Found
from toolmem.stored import LogLimits, Stamped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolmem.models import Verdict
    from toolmem.protocols import Clock, Embedder, EmbedderIdentity
    from toolmem.store.keyed import PutRecord
    from toolmem.store.searching import Legs, SearchRequest
    from toolmem.store.semantics import Request
    from toolmem.stored import LoggedDecision, RawRecord, StoredMemory

P = ParamSpec("P")
T = TypeVar("T")


def _asks(
    job: Callable[Concatenate[Session, P], Coroutine[Any, Any, T]], nothing: Callable[[], T], *, writes: bool = False
) -> Callable[Concatenate[ElasticsearchStore, P], Coroutine[Any, Any, T]]:
    """A method that does `job`; one that `writes` does it also where its caller is cancelled. `nothing`: the answer for
    names that cannot be stored.
    """

    async def method(store: ElasticsearchStore, /, *asked: P.args, **named: P.kwargs) -> T:
        session = store._open_session()
        if unnameable(*asked, *named.values()):
            return nothing()
        done = job(session, *asked, **named)
        return await (session.carry_out(done) if writes else done)

    return method


class ElasticsearchStore(DecidedStore):
    """`MemoryStore` on Elasticsearch.

    `hosts`: a URL or several nodes of one cluster. `index_prefix`: what the names of the indices begin with; one store
    per prefix. `basic_auth`: "user:password"; `api_key`: as Elasticsearch hands it out (base64). `ca_certs`: a file.
    `timeout`: seconds for an operation on the server, attempts together. `max_retries`: further attempts after a lost
    connection, on another node where there is one. `vector_index`: "flat" (exact) or "int8_hnsw" (approximate), decided
    when the first vector is written. Shards and replicas are decided when the indices are made. `log`: how much the
    logs of each workspace hold; what is too much goes now and then, so that they may be some hundredths longer.

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
        section: str = "vector_store.<name>",
        given_by: str = "",
        log: LogLimits | None = None,
    ) -> None:
        """`section`: where the configuration has these settings; `given_by`: what gave the hosts, where it was
        something else (`--to`). Messages name them.
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
        self._options = client_options(addresses, basic_auth, api_key, ca_certs, verify_certs)
        self._timeout = timeout
        self._max_retries = max_retries
        self._limits = log or LogLimits()
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
        connection = Cluster(
            make_client(self._hosts, self._timeout, self._options),
            location=Location(self.location, f"{self._section}.params", self._given_by),
            hosts=len(self._hosts),
            timeout=self._timeout,
            max_retries=self._max_retries,
        )
        try:
            self._server = await check_server(connection)
            await prepare(connection, self._layout)
            session = Session(connection, self._layout, self._embedder)
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

    async def _commit(self, request: Request[T]) -> T:
        session = self._open_session()
        request.prepare()
        if not request.addressable:
            return request.decide(Found()).answer()
        return await session.carry_out(self._carried_out(session, request))

    async def _carried_out(self, session: Session, request: Request[T]) -> T:
        asked = [request.memory_id] if request.memory_id else []
        taken = await workspaces.tools_of_memory_ids(session, request.workspace, asked)
        commit = commits.Commit(session, request, bool(taken))
        answer = await commit.run()
        await call_log.keep_to(session, request.workspace, self._limits, *commit.logged)
        return answer

    async def memories(self, workspace: str, tools: Sequence[str] | None, **asked: Any) -> builtins.list[StoredMemory]:
        session = self._open_session()
        if unnameable(workspace):
            return []
        if tools is None:
            states = await workspaces.all_states(session, workspace)
        else:
            states = await call_documents.read_states(session, workspace, storables(tools))
        return await call_documents.read_memories(session, states, **asked)

    known_ids = _asks(commits.known_ids, set)
    tool_names = _asks(workspaces.tool_names, builtins.list)
    delete_memories = _asks(workspaces.delete_memories, builtins.list, writes=True)
    delete_tools = _asks(workspaces.delete_tools, int, writes=True)

    # -- logs

    call_log = _asks(call_log.read, builtins.list)
    decisions = _asks(decision_log.read, builtins.list)

    async def log_decision(self, workspace: str, decision: LoggedDecision) -> None:
        session, text = self._open_session(), decision_json(workspace, decision)
        await session.carry_out(decision_log.write(session, workspace, decision, text, self._limits.max_decisions))

    # -- verdict cache

    verdicts = _asks(verdict_cache.read, dict)
    verdict_keys = _asks(verdict_cache.keys, builtins.list)

    async def _put_verdicts(self, workspace: str, verdicts: Mapping[str, Verdict]) -> None:
        session = self._open_session()
        await session.carry_out(verdict_cache.write(session, workspace, verdicts))

    # -- keyed records

    async def _put(self, record: PutRecord) -> RawRecord:
        session = self._open_session()
        return await session.carry_out(keyed_records.put(session, record))

    async def _get(self, workspace: str, namespace: str, key: str) -> RawRecord | None:
        return await keyed_records.get(self._open_session(), workspace, namespace, key)

    async def read_stamped(self, workspace: str, keys: Sequence[tuple[str, str]]) -> Stamped:
        session = self._open_session()
        if unnameable(workspace):
            return Stamped("", (None,) * len(keys))
        return await keyed_records.read_stamped(session, workspace, keys)

    list_raw = _asks(keyed_records.list_raw, builtins.list)
    delete = _asks(keyed_records.delete, bool, writes=True)
    namespaces = _asks(keyed_records.namespaces, builtins.list)
    documents = _asks(search.documents, dict)

    # -- search

    async def _legs(self, workspace: str, request: SearchRequest) -> Legs:
        return await search.legs(self._open_session(), workspace, request)

    async def stored_embedder(self) -> EmbedderIdentity | None:
        generation = await stored_generation(self._open_session())
        return None if generation is None else generation.embedder

    def take_vectors_of(self, embedder: EmbedderIdentity) -> None:
        super().take_vectors_of(embedder)
        self._open_session().embedder = embedder

    async def reembed(self, embedder: Embedder, progress: Callable[[int, int], None] | None = None) -> int:
        count = await reembed(await BesideTheOld(self._open_session(), embedder).begin(), embedder, progress)
        self._embedder = embedder.identity
        return count

    # -- workspaces and the store itself

    delete_workspace = _asks(workspaces.delete_workspace, int, writes=True)
    workspaces = _asks(workspaces.names, builtins.list)

    async def info(self) -> dict[str, Any]:
        return await workspaces.info(self._open_session(), self._server)

    async def sweep(self, silent_seconds: float = sweeping.SILENT_SECONDS) -> int:
        """Delete what writers left that have not been heard of for so long; `open` does it by itself."""
        return await sweeping.sweep(self._open_session(), silent_seconds)
