"""What an open store holds: its cluster, its name as a writer, the turns of its own writes, and writes under way."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from toolmem.protocols import EmbedderIdentity
from toolmem.store.codec import GuidanceCache
from toolmem.store.elastic.cluster import Cluster
from toolmem.store.elastic.document_ids import is_cut, random_name, workspace_key
from toolmem.store.elastic.indices import Layout

T = TypeVar("T")

_REMEMBERED_TOOLS = 100_000


class Session:
    """From `open` to `close`, on one event loop."""

    def __init__(self, connection: Cluster, layout: Layout, embedder: EmbedderIdentity | None) -> None:
        self.connection = connection
        self.layout = layout
        self.embedder = embedder
        self.writer = random_name(8)
        self.registered = 0.0  # when the writer last said that it lives, seconds since 1970
        self.littered = False  # a write ended without its outcome being known
        self.settled: dict[str, str] = {}  # tool -> the commit whose leftovers were put in order
        self.guidance = GuidanceCache()
        self.mark = secrets.randbelow(1 << 20)  # ends the positions that this session gives
        self.last_place = 0  # the highest of those, without its mark
        self.log_room: dict[str, float] = {}  # by workspace: the part of the log's limits until the next look at them
        self.mapped: set[int] = set()  # generations whose fields are known to exist
        self._tokens = 0
        self._highest: dict[str, int] = {}  # by stem: the last seq written under the current token
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}
        self._writes: set[asyncio.Task[Any]] = set()

    # -- tokens

    def token(self, stem: str, first: int, last: int) -> str:
        """Under which an attempt writes the calls of these seqs, of the tool with this stem.

        No document is ever written twice with different contents. A read may come from a node that lags behind, and
        show seqs as free that have been given away, by this very session perhaps: then the attempt is going to lose,
        and must not reach what is visible.
        """
        if first <= self._highest.get(stem, 0) or len(self._highest) > _REMEMBERED_TOOLS:
            self.new_token()
        self._highest[stem] = last
        return f"{self.writer}{self._tokens:x}"

    def new_token(self) -> None:
        """After an attempt that did not win cleanly: a request that was given up may still be carried out later."""
        self._tokens += 1
        self._highest = {}

    def fresh_token(self) -> str:
        """One that no other attempt uses."""
        self.new_token()
        token = f"{self.writer}{self._tokens:x}"
        self.new_token()
        return token

    def settle(self, tool: str, commit: str) -> None:
        """Remember that what this commit left to be done is done."""
        if len(self.settled) >= _REMEMBERED_TOOLS:
            self.settled.clear()
        self.settled[tool] = commit

    # -- documents

    def wanted(self, kind: str, document: str, workspace: str | None = None, fields: Any = True) -> dict[str, Any]:
        """A document as a multi-get names it. `workspace`: by which it is routed; `fields`: of its source."""
        place = {"_index": self.layout.alias(kind), "_id": document, "_source": fields}
        return place if workspace is None else {**place, "routing": workspace_key(workspace)}

    async def held(
        self, kind: str, workspace: str, *filters: Mapping[str, Any], **wanted: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """The documents of a workspace that pass, as a scan answers them; every acknowledged one."""
        index, routing = self.layout.alias(kind), workspace_key(workspace)
        await self.connection.refresh(index)
        query = {"bool": {"filter": [{"term": {"w": routing}}, *filters]}}
        async for hit in self.connection.scan(index, query, routing=routing, **wanted):
            yield hit

    async def swap(
        self,
        kind: str,
        document: str,
        workspace: str,
        source: Mapping[str, Any],
        position: tuple[int, int] | None,
        give_up: float,
    ) -> bool:
        """Replace a document; False where it is no longer as it was read. `position`: None where there was none."""
        place: dict[str, Any] = {"op_type": "create"}
        if position is not None:
            place = {"if_seq_no": position[0], "if_primary_term": position[1]}
        index, routing = self.layout.alias(kind), workspace_key(workspace)
        answer = await self.connection.call(
            lambda es: es.index(index=index, id=document, routing=routing, document=source, **place),
            ignore=(409,),
            deadline=give_up,
        )
        return bool(answer.meta.status != 409)

    async def whole(self, kind: str, field: str, shown: str) -> str:
        """The text behind a label; where that was cut, as the body of a document has it."""
        if not is_cut(shown):
            return shown
        query = {"term": {field: shown}}
        answer = await self.connection.search(index=self.layout.alias(kind), query=query, size=1, source=["body"])
        try:
            return str(json.loads(answer["hits"]["hits"][0]["_source"]["body"])[field])
        except (ValueError, TypeError, KeyError, IndexError):
            return shown

    # -- writes

    async def carry_out(self, write: Coroutine[Any, Any, T]) -> T:
        """A caller that is cancelled leaves at once; the write that it had handed over is finished all the same."""
        task = asyncio.create_task(write)
        self._writes.add(task)
        task.add_done_callback(self._finished)
        return await asyncio.shield(task)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._writes.discard(task)
        if not task.cancelled():
            task.exception()  # seen, so that asyncio does not complain where the caller has gone

    async def finish_writes(self) -> None:
        await asyncio.gather(*self._writes, return_exceptions=True)

    @asynccontextmanager
    async def turn(self, tool: str) -> AsyncIterator[None]:
        """Commits of this process to one tool go one after the other, in the order in which they were handed over."""
        lock, waiting = self._turns.get(tool, (asyncio.Lock(), 0))
        self._turns[tool] = (lock, waiting + 1)
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._turns.pop(tool)
            if waiting > 1:
                self._turns[tool] = (lock, waiting - 1)
