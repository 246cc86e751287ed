"""Taking on another embedder: a new generation of vectors beside the old one, then one swap of the claim.

Until the swap every search uses the old vectors, from then on the new ones. Writers that go on meanwhile write vectors
of the old generation only; their documents are found again and embedded once more.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolmem.errors import Conflict
from toolmem.protocols import Embedder
from toolmem.store.elastic import embedders, searchable
from toolmem.store.elastic.connection import Operation
from toolmem.store.elastic.embedders import Claim
from toolmem.store.elastic.indices import mapped_fields
from toolmem.store.elastic.searchable import Searchable
from toolmem.store.elastic.session import Session
from toolmem.store.searching import unit_vector

BATCH = 256  # texts handed to the embedder at once
MAX_ROUNDS = 100  # of catching up with writers that go on meanwhile
_KINDS = ("tools", "records")


@dataclass(frozen=True, slots=True)
class _Pending:
    """A document as it was read."""

    index: str
    id: str
    routing: str | None
    source: Mapping[str, Any]
    position: tuple[int, int]

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.source["body"])
        return body

    def rewritten(self, document: Searchable) -> Operation:
        """The same document with other vectors, where nobody has changed it since."""
        fields = searchable.fields(document, self.source["time_modified"])
        kept = {name: value for name, value in self.source.items() if not name.startswith("packed_")}
        if "value" in self.source:
            fields["facts"] = searchable.facts(json.loads(self.source["value"]))
        options = {"if_seq_no": self.position[0], "if_primary_term": self.position[1]}
        return Operation("index", self.index, self.id, {**kept, **fields}, self.routing, options)


async def reembed(session: Session, embedder: Embedder, progress: Callable[[int, int], None] | None) -> int:
    """See `MemoryStore.reembed`."""
    identity = embedder.identity
    old = await embedders.stored_claim(session.connection, session.layout)
    claim = Claim(identity, await _free_generation(session, old))
    await session.map_vectors(claim)
    for _ in range(MAX_ROUNDS):
        if not await _catch_up(session, embedder, claim, old, progress):
            break
    else:
        raise Conflict("reembed: documents kept changing; stop the writers and run it again")
    await session.connection.call(
        lambda es: es.index(
            index=session.layout.alias("meta"),
            id=embedders.DOCUMENT,
            document=embedders.claim_source(claim),
            refresh=True,
        )
    )
    session.embedder = identity
    await _catch_up(session, embedder, claim, old, None)  # what was written between the last look and the swap
    await _drop_old_vectors(session, claim)
    return await _count(session)


async def _free_generation(session: Session, old: Claim | None) -> int:
    """One that no index has fields of, be it from a run that was stopped half way."""
    highest = 0 if old is None else old.generation
    for kind in _KINDS:
        for name in await mapped_fields(session.connection, session.layout.alias(kind)):
            if name.startswith("vector_"):
                highest = max(highest, int(name.removeprefix("vector_")))
    return highest + 1


async def _catch_up(
    session: Session,
    embedder: Embedder,
    claim: Claim,
    old: Claim | None,
    progress: Callable[[int, int], None] | None,
) -> int:
    """Embed every text that has no vector of this generation; answers how many there were."""
    lacking = {
        "bool": {
            "filter": [{"term": {"searchable": True}}],
            "must_not": [{"term": {"embedded": str(claim.generation)}}],
        }
    }
    total = await _count(session, lacking)
    done = 0
    async for batch in _batches(session, lacking):
        texts = [str(item.body["text"]) for item in batch]
        vectors = await embedder.embed(texts)
        operations = []
        for item, text, vector in zip(batch, texts, vectors, strict=True):
            unit = unit_vector(vector, claim.embedder, "embedder")
            held = searchable.read(item.source, text) or Searchable(text)
            kept = {} if old is None else {n: v for n, v in held.vectors.items() if n == old.generation}
            operations.append(item.rewritten(Searchable(text, {**kept, claim.generation: unit})))
        await _write(session, operations)
        done += len(batch)
        if progress is not None:
            progress(min(done, total), total)
    return total


async def _drop_old_vectors(session: Session, claim: Claim) -> None:
    others = {
        "bool": {
            "filter": [
                {"term": {"searchable": True}},
                {"term": {"embedded": str(claim.generation)}},
                {"exists": {"field": "embedded"}},
            ]
        }
    }
    async for batch in _batches(session, others):
        operations = []
        for item in batch:
            held = searchable.read(item.source, item.body["text"])
            if held is not None and set(held.vectors) != {claim.generation}:
                operations.append(
                    item.rewritten(Searchable(held.text, {claim.generation: held.vectors[claim.generation]}))
                )
        await _write(session, operations)


async def _batches(session: Session, query: Mapping[str, Any]) -> AsyncIterator[list[_Pending]]:
    batch: list[_Pending] = []
    for kind in _KINDS:
        index = session.layout.alias(kind)
        await session.connection.refresh(index)
        async for hit in session.connection.scan(index, query, page=BATCH):
            position = (hit["_seq_no"], hit["_primary_term"])
            batch.append(_Pending(index, hit["_id"], hit.get("_routing"), hit["_source"], position))
            if len(batch) == BATCH:
                yield batch
                batch = []
    if batch:
        yield batch


async def _write(session: Session, operations: list[Operation]) -> None:
    """Those that somebody changed meanwhile (409) come again in the next round."""
    outcomes = await session.connection.bulk(operations)
    session.connection.require([outcome for outcome in outcomes if outcome.status != 409])


async def _count(session: Session, query: Mapping[str, Any] | None = None) -> int:
    indices = [session.layout.alias(kind) for kind in _KINDS]
    await session.connection.refresh(*indices)
    answer = await session.connection.call(
        lambda es: es.count(index=",".join(indices), query=query or {"term": {"searchable": True}})
    )
    return int(answer["count"])
