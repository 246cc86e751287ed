"""Whose vectors the store holds. Each embedder is a generation with vector fields of its own, so that a process that
has not heard of a change can never mix its vectors with those of another embedder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from toolmem.protocols import EmbedderIdentity
from toolmem.store.elastic.indices import ensure_vector_fields
from toolmem.store.elastic.search_fields import Searchable
from toolmem.store.elastic.session import Session
from toolmem.store.searching import require_embedder, stored_document
from toolmem.stored import Document

DOCUMENT = "embedder"  # id in the index `meta`


@dataclass(frozen=True, slots=True)
class Generation:
    embedder: EmbedderIdentity
    number: int

    def source(self) -> dict[str, Any]:
        return {"kind": DOCUMENT, "body": json.dumps({"embedder": asdict(self.embedder), "generation": self.number})}


def read_generation(found: Mapping[str, Any]) -> Generation | None:
    """From the answer of a get."""
    if "_source" not in found:
        return None
    body = json.loads(found["_source"]["body"])
    return Generation(EmbedderIdentity(**body["embedder"]), body["generation"])


async def stored_generation(session: Session) -> Generation | None:
    (found,) = await session.connection.multi_get([session.wanted("meta", DOCUMENT)])
    return read_generation(found)


async def first_generation(session: Session, embedder: EmbedderIdentity) -> Generation:
    """The first vector written decides whose vectors the store holds; of two that come at once, one decides."""
    index, source = session.layout.alias("meta"), Generation(embedder, 1).source()
    await session.connection.call(
        lambda es: es.index(index=index, id=DOCUMENT, document=source, op_type="create", refresh=True), ignore=(409,)
    )
    generation = await stored_generation(session)
    assert generation is not None
    return generation


async def searchable_of(session: Session, document: Document, generation: Generation | None) -> Searchable:
    """As it is stored. `generation`: as just read. Raises RequestError or EmbedderMismatch."""
    kept = stored_document(document, session.embedder, None if generation is None else generation.embedder)
    if kept.vector is None or session.embedder is None:
        return Searchable(kept.text)
    if generation is None:
        generation = await first_generation(session, session.embedder)
        require_embedder(generation.embedder, session.embedder)
    await map_vectors(session, generation)
    return Searchable(kept.text, {generation.number: kept.vector})


async def map_vectors(session: Session, generation: Generation) -> None:
    """Make the vector fields of this generation, where they are not known to be there."""
    if generation.number not in session.mapped:
        await ensure_vector_fields(session.connection, session.layout, generation.number, generation.embedder.dimension)
        session.mapped.add(generation.number)
