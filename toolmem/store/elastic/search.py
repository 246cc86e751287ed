"""Search: both legs in one round trip, fused here.

The text leg compares the words that `toolmem.store.words` cut, on both backends alike. The vector leg takes from the
engine which documents are nearest and ranks them here by the exact cosine of their stored float32 numbers, so that
equal vectors are equal and a quantized index changes only which candidates there are.
"""

from __future__ import annotations

import asyncio
import json
from binascii import a2b_base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolmem.store.codec import storable
from toolmem.store.elastic import embedders, failures, searchable
from toolmem.store.elastic.embedders import Claim
from toolmem.store.elastic.indices import packed_field, vector_field
from toolmem.store.elastic.names import is_cut, record_id, scope_key, tool_id, workspace_key
from toolmem.store.elastic.searchable import fact
from toolmem.store.elastic.session import Session
from toolmem.store.searching import Legs, SearchRequest, best_first
from toolmem.stored import Document

MAX_DEPTH = 10_000  # of a leg: the engine's own limit for the hits of a search, and for neighbours
_SPARE = 8  # neighbours beyond the depth, so that ties at its end are seen
_TOLERANCE = 1e-5  # the engine's float32 products of equal vectors differ by less
Packed = dict[str, str | None]  # keys with their vectors as the engine hands them out: base64 of float32, if any
_CANDIDATES = 2  # per neighbour, for the approximate index


async def legs(session: Session, workspace: str, asked: SearchRequest) -> Legs:
    """Raises EmbedderMismatch: the vector is another embedder's."""
    query = asked.vector
    filters = _filters(workspace, asked)
    kind = "tools" if asked.where.namespace is None else "records"
    claim, _ = await asyncio.gather(
        _claim(session, query),
        _nothing() if filters is None else session.connection.refresh(session.layout.alias(kind)),
    )
    if filters is None:
        return Legs(())
    depth = min(asked.depth, MAX_DEPTH)
    by_text, by_vector = await _Legs(session, kind, workspace, filters, depth, claim).ask(asked.words, query)
    if query is None:
        return Legs(list(by_text))
    similarity = _cosines({**by_vector, **by_text}, query)
    ranked = best_first({key: similarity[key] for key in by_vector if key in similarity}, depth)
    return Legs(list(by_text), ranked, similarity)


async def _nothing() -> None:
    return None


async def _claim(session: Session, query: NDArray[np.float32] | None) -> Claim | None:
    """Whose vectors to compare with; nobody's where there is nothing to compare."""
    if query is None:
        return None
    claim = await embedders.stored_claim(session.connection, session.layout)
    embedders.check(claim, session.embedder)
    if claim is not None and claim.embedder == session.embedder:
        await session.map_vectors(claim)
    return claim


async def documents(
    session: Session, workspace: str, namespace: str | None, keys: Sequence[str]
) -> dict[str, Document]:
    """The searchable side of these tools or records, with the vector of the store's own embedder."""
    asked = [key for key in dict.fromkeys(keys) if storable(key)]
    if not asked or not storable(workspace) or not storable(namespace or ""):
        return {}
    index = session.layout.alias("tools" if namespace is None else "records")
    claim = await embedders.stored_claim(session.connection, session.layout)
    routing = workspace_key(workspace)
    found = await session.connection.multi_get(
        [{"_index": index, "_id": _document_id(workspace, namespace, key), "routing": routing} for key in asked]
    )
    held = {}
    for key, each in zip(asked, found, strict=True):
        document = (
            searchable.read(each["_source"], json.loads(each["_source"]["body"])["text"]) if each["found"] else None
        )
        if document is not None:
            held[key] = Document(document.text, None if claim is None else document.vectors.get(claim.generation))
    return held


# -- filters


def _filters(workspace: str, asked: SearchRequest) -> list[dict[str, Any]] | None:
    """None: nothing can pass."""
    where = asked.where
    if not storable(workspace) or not storable(where.namespace or ""):
        return None
    of = (
        {"w": workspace_key(workspace)} if where.namespace is None else {"scope": scope_key(workspace, where.namespace)}
    )
    filters: list[dict[str, Any]] = [{"term": of}, {"term": {"searchable": True}}]
    if where.keys is not None:
        keys = [key for key in where.keys if storable(key)]
        if not keys:
            return None
        filters.append({"ids": {"values": [_document_id(workspace, where.namespace, key) for key in keys]}})
    if asked.since is not None:
        filters.append({"range": {"time_modified": {"gte": asked.since}}})
    for name, value in where.equals.items():
        try:
            filters.append({"term": {"facts": fact(name, value)}})
        except (ValueError, TypeError):  # what no record can hold
            return None
    return filters


def _document_id(workspace: str, namespace: str | None, key: str) -> str:
    return tool_id(workspace, key) if namespace is None else record_id(workspace, namespace, key)


# -- the legs


class _Legs:
    def __init__(
        self,
        session: Session,
        kind: str,
        workspace: str,
        filters: Sequence[Mapping[str, Any]],
        depth: int,
        claim: Claim | None,
    ) -> None:
        self._session = session
        self._index = session.layout.alias(kind)
        self._name = "name" if kind == "tools" else "key"
        self._routing = workspace_key(workspace)
        self._filters = filters
        self._depth = depth
        self._claim = claim

    async def ask(self, words: Sequence[str], query: NDArray[np.float32] | None) -> tuple[Packed, Packed]:
        """Keys with their vectors: the text leg's, best first, and the vector leg's candidates."""
        neighbours = min(self._depth + _SPARE, MAX_DEPTH)
        bodies = []
        if words:
            bodies.append(self._text_body(words))
        by_vector = query is not None and bool(query.any()) and self._claim is not None
        if by_vector:
            assert query is not None
            bodies.append(self._vector_body(query, neighbours))
        if not bodies:
            return {}, {}
        answers = await self._send(bodies)
        text_hits = answers[0] if words else []
        vector_hits = answers[-1] if by_vector else []
        while self._cut_through_a_tie(vector_hits, neighbours):
            assert query is not None
            neighbours = min(neighbours * 4, MAX_DEPTH)
            (vector_hits,) = await self._send([self._vector_body(query, neighbours)])
        return await self._held(text_hits), await self._held(vector_hits)

    def _text_body(self, words: Sequence[str]) -> dict[str, Any]:
        match = {"match": {"words": {"query": " ".join(words), "operator": "or"}}}
        return {
            "query": {"bool": {"must": [match], "filter": list(self._filters)}},
            "size": self._depth,
            "sort": [{"_score": "desc"}, {self._name: "asc"}],
            **self._fetched(),
        }

    def _vector_body(self, query: NDArray[np.float32], neighbours: int) -> dict[str, Any]:
        assert self._claim is not None
        return {
            "knn": {
                "field": vector_field(self._claim.generation),
                "query_vector": query.tolist(),
                "k": neighbours,
                "num_candidates": min(_CANDIDATES * neighbours, MAX_DEPTH),
                "filter": list(self._filters),
            },
            "size": neighbours,
            **self._fetched(),
        }

    def _fetched(self) -> dict[str, Any]:
        """From columns: reading the sources of hundreds of documents takes longer than finding them."""
        packed = [] if self._claim is None else [packed_field(self._claim.generation)]
        return {"_source": False, "docvalue_fields": [self._name, *packed], "track_total_hits": False}

    async def _send(self, bodies: Sequence[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
        head = {"index": self._index, "routing": self._routing, "allow_partial_search_results": False}
        searches = [part for body in bodies for part in (head, body)]
        answer = await self._session.connection.call(lambda es: es.msearch(searches=searches))
        found = []
        for each in answer["responses"]:
            if "error" in each:
                raise failures.refusal(each["status"], each["error"], self._session.connection.location)
            found.append(each["hits"]["hits"])
        return found

    def _cut_through_a_tie(self, hits: Sequence[Mapping[str, Any]], neighbours: int) -> bool:
        """Whether documents that were not handed over may be as near as one within the depth."""
        if len(hits) < neighbours or neighbours >= MAX_DEPTH:
            return False
        # _score is (1 + cosine) / 2
        return bool(2 * (hits[self._depth - 1]["_score"] - hits[-1]["_score"]) <= _TOLERANCE)

    async def _held(self, hits: Sequence[Mapping[str, Any]]) -> Packed:
        held: Packed = {}
        whole = await self._whole_names(hits)
        column = None if self._claim is None else packed_field(self._claim.generation)
        for hit in hits:
            fields = hit["fields"]
            packed = fields.get(column)
            held[whole.get(hit["_id"], fields[self._name][0])] = packed[0] if packed else None
        return held

    async def _whole_names(self, hits: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Of documents whose name is too long for a column."""
        cut = [hit["_id"] for hit in hits if is_cut(hit["fields"][self._name][0])]
        wanted = [{"_index": self._index, "_id": each, "routing": self._routing, "_source": ["body"]} for each in cut]
        found = await self._session.connection.multi_get(wanted) if wanted else []
        return {each["_id"]: json.loads(each["_source"]["body"])[self._name] for each in found if each.get("found")}


# -- exact cosines


def _cosines(held: Packed, query: NDArray[np.float32]) -> dict[str, float]:
    """Of those that have a vector. Products in float64, row by row, as the embedded store computes them."""
    packed = {key: vector for key, vector in held.items() if vector is not None}
    if not packed:
        return {}
    numbers = np.frombuffer(b"".join(a2b_base64(vector) for vector in packed.values()), dtype="<f4")
    rows = numbers.reshape(len(packed), -1).astype(np.float64)
    products: list[float] = np.clip((rows * query.astype(np.float64)).sum(axis=1), -1.0, 1.0).tolist()
    return dict(zip(packed, products, strict=True))
