"""What an open store holds: its connection, its name as a writer, the turns of its own writes, and writes under way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from toolmem.protocols import EmbedderIdentity
from toolmem.store.codec import GuidanceCache
from toolmem.store.elastic import embedders
from toolmem.store.elastic.connection import Connection
from toolmem.store.elastic.embedders import Claim
from toolmem.store.elastic.indices import Layout, ensure_vector_fields
from toolmem.store.elastic.names import random_name
from toolmem.store.elastic.searchable import Searchable
from toolmem.store.searching import require_embedder, stored_document
from toolmem.stored import Document

logger = logging.getLogger("toolmem.store")

T = TypeVar("T")

_REMEMBERED_TOOLS = 100_000


class Session:
    """From `open` to `close`, on one event loop."""

    def __init__(self, connection: Connection, layout: Layout, embedder: EmbedderIdentity | None) -> None:
        self.connection = connection
        self.layout = layout
        self.embedder = embedder
        self.writer = random_name(8)
        self.registered = 0.0  # when the writer last said that it lives, seconds since 1970
        self.littered = False  # a write ended without its outcome being known
        self.settled: dict[str, str] = {}  # tool -> the commit whose leftovers were put in order
        self.guidance = GuidanceCache()
        self._tokens = 0
        self._highest: dict[str, int] = {}  # by stem: the last seq written under the current token
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}
        self._writes: set[asyncio.Task[Any]] = set()
        self._mapped: set[int] = set()  # generations whose fields are known to exist

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

    # -- documents and their vectors

    async def searchable(self, document: Document, claim: Claim | None) -> Searchable:
        """As it is stored. `claim`: as just read. Raises RequestError or EmbedderMismatch."""
        kept = stored_document(document, self.embedder, None if claim is None else claim.embedder)
        if kept.vector is None or self.embedder is None:
            return Searchable(kept.text)
        if claim is None:
            claim = await embedders.make_claim(self.connection, self.layout, self.embedder)
            require_embedder(claim.embedder, self.embedder)
        await self.map_vectors(claim)
        return Searchable(kept.text, {claim.generation: kept.vector})

    async def map_vectors(self, claim: Claim) -> None:
        if claim.generation not in self._mapped:
            await ensure_vector_fields(self.connection, self.layout, claim.generation, claim.embedder.dimension)
            self._mapped.add(claim.generation)
