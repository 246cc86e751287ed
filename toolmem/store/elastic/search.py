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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolmem.store.codec import storables, unnameable
from toolmem.store.elastic import generations, search_fields, server_errors
from toolmem.store.elastic.document_ids import is_cut, record_id, scope_key, tool_id, workspace_key
from toolmem.store.elastic.generations import Generation
from toolmem.store.elastic.indices import packed_field, vector_field
from toolmem.store.elastic.session import Session
from toolmem.store.searching import Legs, SearchRequest, best_first, cosines, require_embedder, unpack
from toolmem.stored import Document

MAX_DEPTH = 10_000  # of a leg: the engine's own limit for the hits of a search, and for neighbours
_SPARE = 8  # neighbours beyond the depth, so that ties at its end are seen
_TOLERANCE = 1e-5  # the engine's float32 products of equal vectors differ by less
Packed = dict[str, str | None]  # keys with their vectors as the engine hands them out: base64 of float32, if any
_CANDIDATES = 2  # per neighbour, for the approximate index


async def legs(session: Session, workspace: str, request: SearchRequest) -> Legs:
    """Raises EmbedderMismatch: the vector is another embedder's."""
    query = request.vector
    filters = _filters(workspace, request)
    kind = "tools" if request.where.namespace is None else "records"
    generation, _ = await asyncio.gather(
        _generation(session, query),
        _nothing() if filters is None else session.connection.refresh(session.layout.alias(kind)),
    )
    if filters is None:
        return Legs(())
    depth = min(request.depth, MAX_DEPTH)
    by_text, by_vector = await _Legs(session, kind, workspace, filters, depth, generation).ask(request.words, query)
    if query is None:
        return Legs(list(by_text))
    similarity = _cosines({**by_vector, **by_text}, query)
    ranked = best_first({key: similarity[key] for key in by_vector if key in similarity}, depth)
    return Legs(list(by_text), ranked, similarity)


async def _nothing() -> None:
    return None


async def _generation(session: Session, query: NDArray[np.float32] | None) -> Generation | None:
    """Whose vectors to compare with; nobody's where there is nothing to compare."""
    if query is None:
        return None
    generation = await generations.stored_generation(session)
    if generation is not None:
        require_embedder(generation.embedder, session.embedder)
        await generations.map_vectors(session, generation)
    return generation


async def documents(
    session: Session, workspace: str, namespace: str | None, keys: Sequence[str]
) -> dict[str, Document]:
    """The searchable side of these tools or records, with the vector of the store's own embedder."""
    asked = storables(keys)
    kind = "tools" if namespace is None else "records"
    wanted = [session.wanted(kind, _document_id(workspace, namespace, key), workspace) for key in asked]
    generation, *found = await session.connection.multi_get([session.wanted("meta", generations.DOCUMENT), *wanted])
    number = 0 if (stored := generations.read_generation(generation)) is None else stored.number
    held = {}
    for key, each in zip(asked, found, strict=True):
        if each["found"]:
            document = search_fields.read(each["_source"], json.loads(each["_source"]["body"])["text"])
            if document is not None:
                held[key] = Document(document.text, document.vectors.get(number))
    return held


# -- filters


def _filters(workspace: str, request: SearchRequest) -> list[dict[str, Any]] | None:
    """None: nothing can pass."""
    where = request.where
    if unnameable(workspace, where.namespace):
        return None
    of = (
        {"w": workspace_key(workspace)} if where.namespace is None else {"scope": scope_key(workspace, where.namespace)}
    )
    filters: list[dict[str, Any]] = [{"term": of}, {"term": {"searchable": True}}]
    if where.keys is not None:
        ids = [_document_id(workspace, where.namespace, key) for key in storables(where.keys)]
        filters.append({"ids": {"values": ids}})
    if request.since is not None:
        filters.append({"range": {"time_modified": {"gte": request.since}}})
    for name, value in where.equals.items():
        try:
            filters.append({"term": {"facts": search_fields.fact(name, value)}})
        except (ValueError, TypeError):  # what no record can hold
            return None
    return filters


def _document_id(workspace: str, namespace: str | None, key: str) -> str:
    return tool_id(workspace, key) if namespace is None else record_id(workspace, namespace, key)


# -- the legs


@dataclass
class _Legs:
    session: Session
    kind: str
    workspace: str
    filters: list[dict[str, Any]]
    depth: int
    generation: Generation | None  # whose vectors; None: no vector leg

    async def ask(self, words: Sequence[str], query: NDArray[np.float32] | None) -> tuple[Packed, Packed]:
        """Keys with their vectors: the text leg's, best first, and the vector leg's candidates."""
        neighbours = min(self.depth + _SPARE, MAX_DEPTH)
        bodies = [self._text_body(words)] if words else []
        vector = query if query is not None and query.any() and self.generation is not None else None
        if vector is not None:
            bodies.append(self._vector_body(vector, neighbours))
        answers = await self._send(bodies) if bodies else []
        text_hits = answers[0] if words else []
        vector_hits = answers[-1] if vector is not None else []
        while vector is not None and self._cut_through_a_tie(vector_hits, neighbours):
            neighbours = min(neighbours * 4, MAX_DEPTH)
            (vector_hits,) = await self._send([self._vector_body(vector, neighbours)])
        return await self._held(text_hits), await self._held(vector_hits)

    @property
    def _name(self) -> str:
        return "name" if self.kind == "tools" else "key"

    @property
    def _packed(self) -> str:
        return "" if self.generation is None else packed_field(self.generation.number)

    def _text_body(self, words: Sequence[str]) -> dict[str, Any]:
        match = {"match": {"words": {"query": " ".join(words), "operator": "or"}}}
        return {
            "query": {"bool": {"must": [match], "filter": self.filters}},
            "size": self.depth,
            "sort": [{"_score": "desc"}, {self._name: "asc"}],
            **self._fetched(),
        }

    def _vector_body(self, query: NDArray[np.float32], neighbours: int) -> dict[str, Any]:
        assert self.generation is not None
        return {
            "knn": {
                "field": vector_field(self.generation.number),
                "query_vector": query.tolist(),
                "k": neighbours,
                "num_candidates": min(_CANDIDATES * neighbours, MAX_DEPTH),
                "filter": self.filters,
            },
            "size": neighbours,
            **self._fetched(),
        }

    def _fetched(self) -> dict[str, Any]:
        """From columns: reading the sources of hundreds of documents takes longer than finding them."""
        columns = [self._name, self._packed] if self._packed else [self._name]
        return {"_source": False, "docvalue_fields": columns, "track_total_hits": False}

    async def _send(self, bodies: Sequence[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
        head = {
            "index": self.session.layout.alias(self.kind),
            "routing": workspace_key(self.workspace),
            "allow_partial_search_results": False,
        }
        searches = [part for body in bodies for part in (head, body)]
        answer = await self.session.connection.call(lambda es: es.msearch(searches=searches))
        found = []
        for each in answer["responses"]:
            if "error" in each:
                raise server_errors.refusal(each["status"], each["error"], self.session.connection.location)
            found.append(each["hits"]["hits"])
        return found

    def _cut_through_a_tie(self, hits: Sequence[Mapping[str, Any]], neighbours: int) -> bool:
        """Whether documents that were not handed over may be as near as one within the depth."""
        if len(hits) < neighbours or neighbours >= MAX_DEPTH:
            return False
        # _score is (1 + cosine) / 2
        return bool(2 * (hits[self.depth - 1]["_score"] - hits[-1]["_score"]) <= _TOLERANCE)

    async def _held(self, hits: Sequence[Mapping[str, Any]]) -> Packed:
        """Names that are too long for a column are read from the body."""
        cut = [hit["_id"] for hit in hits if is_cut(hit["fields"][self._name][0])]
        found = await self.session.connection.multi_get(
            [self.session.wanted(self.kind, each, self.workspace, ["body"]) for each in cut]
        )
        whole = {each["_id"]: json.loads(each["_source"]["body"])[self._name] for each in found if each.get("found")}
        held: Packed = {}
        for hit in hits:
            fields = hit["fields"]
            packed = fields.get(self._packed)
            held[whole.get(hit["_id"], fields[self._name][0])] = packed[0] if packed else None
        return held


def _cosines(held: Packed, query: NDArray[np.float32]) -> dict[str, float]:
    """Of those that have a vector."""
    packed = {key: vector for key, vector in held.items() if vector is not None}
    numbers = unpack(b"".join(a2b_base64(vector) for vector in packed.values()))
    return dict(zip(packed, cosines(numbers.reshape(len(packed), len(query)), query), strict=True))
