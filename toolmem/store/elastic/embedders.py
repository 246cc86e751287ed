"""Whose vectors the store holds. Each embedder is a generation with vector fields of its own, so that a process that
has not heard of a change can never mix its vectors with those of another embedder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from toolmem.protocols import EmbedderIdentity
from toolmem.store.elastic.connection import Connection
from toolmem.store.elastic.indices import Layout
from toolmem.store.searching import require_embedder

DOCUMENT = "embedder"  # id in the index `meta`


@dataclass(frozen=True, slots=True)
class Claim:
    embedder: EmbedderIdentity
    generation: int


def read_claim(source: Mapping[str, Any] | None) -> Claim | None:
    """From the document's source."""
    if source is None:
        return None
    body = json.loads(source["body"])
    return Claim(EmbedderIdentity(**body["embedder"]), body["generation"])


def claim_source(claim: Claim) -> dict[str, Any]:
    return {"kind": DOCUMENT, "body": json.dumps({"embedder": asdict(claim.embedder), "generation": claim.generation})}


def claim_request(layout: Layout) -> dict[str, Any]:
    """Of a multi-get that asks for the claim beside other documents."""
    return {"_index": layout.alias("meta"), "_id": DOCUMENT}


async def stored_claim(connection: Connection, layout: Layout) -> Claim | None:
    (found,) = await connection.multi_get([claim_request(layout)])
    return read_claim(found.get("_source"))


async def make_claim(connection: Connection, layout: Layout, embedder: EmbedderIdentity) -> Claim:
    """The first vector written decides whose vectors the store holds; of two that come at once, one decides."""
    await connection.call(
        lambda es: es.index(
            index=layout.alias("meta"),
            id=DOCUMENT,
            document=claim_source(Claim(embedder, 1)),
            op_type="create",
            refresh=True,
        ),
        ignore=(409,),
    )
    claim = await stored_claim(connection, layout)
    assert claim is not None
    return claim


def check(claim: Claim | None, embedder: EmbedderIdentity | None) -> None:
    """Raises EmbedderMismatch where the store's vectors come from another embedder."""
    require_embedder(None if claim is None else claim.embedder, embedder)
