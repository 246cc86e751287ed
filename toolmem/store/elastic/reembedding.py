"""Changing the embedder of an Elasticsearch store: new vectors beside the old ones, then one swap of generations.

Until the swap every search uses the old vectors, from then on the new ones. Writers that go on meanwhile write vectors
of the old generation only; their documents are found again and embedded once more.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolmem.protocols import Embedder
from toolmem.store.elastic import generations, search_fields
from toolmem.store.elastic.cluster import BulkItem, pages
from toolmem.store.elastic.generations import Generation
from toolmem.store.elastic.indices import mapped_fields
from toolmem.store.elastic.search_fields import Searchable
from toolmem.store.elastic.session import Session
from toolmem.store.new_vectors import BATCH, embed_lacking

_KINDS = ("tools", "records")
_SEARCHABLE = {"term": {"searchable": True}}


@dataclass(frozen=True, slots=True)
class _Pending:
    """A document as it was read."""

    index: str
    hit: Mapping[str, Any]

    @property
    def text(self) -> str:
        return str(json.loads(self.hit["_source"]["body"])["text"])

    @property
    def held(self) -> Searchable:
        return search_fields.read(self.hit["_source"], self.text) or Searchable(self.text)

    def rewritten(self, vectors: Mapping[int, NDArray[np.float32]]) -> BulkItem:
        """The same document with other vectors, where nobody has changed it since."""
        source = self.hit["_source"]
        fields = search_fields.fields(Searchable(self.text, vectors), source["time_modified"])
        kept = {name: value for name, value in source.items() if not name.startswith("packed_")}
        if "value" in source:
            fields["facts"] = search_fields.facts(json.loads(source["value"]))
        options = {"if_seq_no": self.hit["_seq_no"], "if_primary_term": self.hit["_primary_term"]}
        return BulkItem("index", self.index, self.hit["_id"], {**kept, **fields}, self.hit.get("_routing"), options)


class BesideTheOld:
    """The `new_vectors.Reembedding` of one session."""

    def __init__(self, session: Session, embedder: Embedder) -> None:
        self._session = session
        self._embedder = embedder

    async def begin(self) -> BesideTheOld:
        """A generation that no index has fields of, be it from a run that was stopped half way."""
        session = self._session
        self._old = await generations.stored_generation(session)
        highest = 0 if self._old is None else self._old.number
        for kind in _KINDS:
            for name in await mapped_fields(session.connection, session.layout.alias(kind)):
                if name.startswith("vector_"):
                    highest = max(highest, int(name.removeprefix("vector_")))
        self._new = Generation(self._embedder.identity, highest + 1)
        self._embedded = {"term": {"embedded": str(self._new.number)}}
        self._lacking = {"bool": {"filter": [_SEARCHABLE], "must_not": [self._embedded]}}
        await generations.map_vectors(session, self._new)
        return self

    async def lacking(self) -> int:
        return await self._count(self._lacking)

    def batches(self) -> AsyncIterator[list[_Pending]]:
        return pages(self._found(self._lacking), BATCH)

    async def take(self, pending: Sequence[_Pending], vectors: Sequence[NDArray[np.float32]]) -> None:
        old = None if self._old is None else self._old.number
        items = []
        for item, vector in zip(pending, vectors, strict=True):
            kept = {number: held for number, held in item.held.vectors.items() if number == old}
            items.append(item.rewritten({**kept, self._new.number: vector}))
        await self._write(items)

    async def swap(self) -> int | None:
        if await self.lacking():
            return None
        session = self._session
        index, source = session.layout.alias("meta"), self._new.source()
        await session.connection.call(
            lambda es: es.index(index=index, id=generations.DOCUMENT, document=source, refresh=True)
        )
        session.embedder = self._new.embedder
        await embed_lacking(self, self._embedder)  # what was written between the last look and the swap
        await self._drop_old_vectors()
        return await self._count(_SEARCHABLE)

    async def _drop_old_vectors(self) -> None:
        number = self._new.number
        async for batch in pages(self._found({"bool": {"filter": [_SEARCHABLE, self._embedded]}}), BATCH):
            outdated = [item for item in batch if set(item.held.vectors) != {number}]
            await self._write([item.rewritten({number: item.held.vectors[number]}) for item in outdated])

    async def _found(self, query: Mapping[str, Any]) -> AsyncIterator[_Pending]:
        for kind in _KINDS:
            index = self._session.layout.alias(kind)
            await self._session.connection.refresh(index)
            async for hit in self._session.connection.scan(index, query, page=BATCH):
                yield _Pending(index, hit)

    async def _write(self, items: list[BulkItem]) -> None:
        """Those that somebody changed meanwhile (409) come again in the next round."""
        outcomes = await self._session.connection.bulk(items)
        self._session.connection.require([outcome for outcome in outcomes if outcome.status != 409])

    async def _count(self, query: Mapping[str, Any]) -> int:
        indices = [self._session.layout.alias(kind) for kind in _KINDS]
        await self._session.connection.refresh(*indices)
        answer = await self._session.connection.call(lambda es: es.count(index=",".join(indices), query=query))
        return int(answer["count"])
