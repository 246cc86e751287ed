"""Search documents by words and by vectors, both in one round trip.

`toolmem.store.search` splits texts into words, so that all backends find the same texts. Each
document names the embedder of its vector. A vector of another embedder counts as missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from toolmem.errors import RequestError
from toolmem.models.records import Document, EmbedderIdentity, TextRow
from toolmem.store.elasticsearch.client import Write
from toolmem.store.elasticsearch.layout import SYSTEM, digest, terms
from toolmem.store.elasticsearch.records import RecordStore
from toolmem.store.search import Query, Ranking, Scope, scope_of
from toolmem.store.storable import GUIDANCE

_EMBEDDER = (SYSTEM, SYSTEM, "embedder")
MAX_DEPTH = 10_000  # hits of a search; the server's own limit
_SHOWN = {"_source": False, "docvalue_fields": ["key"], "track_total_hits": False}
SPARE = 8  # more neighbours than asked, so that ties at the end are ordered by key


class SearchStore(RecordStore):
    """Finds guidance and records by the words and the vectors of their texts."""

    def _rank(self, query: Query) -> Ranking:
        """Rank keys by words and by vector, in one request."""
        scope, words, identity, unit, depth, keys = query
        filters: list[Any] = terms(**scope._asdict(), live=True)
        depth = min(depth, MAX_DEPTH)
        if keys is not None:
            filters.append({"ids": {"values": _document_ids(scope, keys)}})
        bodies: list[dict[str, Any]] = []
        if words:
            match = {"match": {"words": {"query": " ".join(words)}}}
            by_score = {"size": depth, "sort": [{"_score": "desc"}, {"key": "asc"}], **_SHOWN}
            bodies.append({"query": {"bool": {"must": [match], "filter": filters}}, **by_score})
        if identity is not None and unit.any():
            field = self._layout.vector_field(identity.dimension)
            filters = [*filters, *terms(embedder=_embedder_mark(identity))]
            near = min(depth + SPARE, MAX_DEPTH)
            knn = {"field": field, "query_vector": unit.tolist(), "filter": filters}
            knn |= {"k": near, "num_candidates": near}
            bodies.append({"knn": knn, "size": near, **_SHOWN})
        if not bodies:
            return Ranking(())
        index = self._layout.records
        self._client.refresh(index)
        head = {"index": index, "allow_partial_search_results": False}
        searches = [part for body in bodies for part in (head, body)]
        answers = self._client.ask(lambda es: es.msearch(searches=searches))["responses"]
        for each in answers:
            if "error" in each:
                raise self._client.refusal(each["status"], each["error"])
        found = [
            {hit["fields"]["key"][0]: hit["_score"] for hit in each["hits"]["hits"]}
            for each in answers
        ]
        by_words = list(found.pop(0)) if words else []
        if not found:
            return Ranking(by_words)
        # The server's score of a cosine is (1 + cosine) / 2.
        cosines = {key: round(2 * score - 1, 6) for key, score in found[0].items()}
        nearest = sorted(cosines, key=lambda key: (-cosines[key], key))[:depth]
        return Ranking(by_words, nearest, cosines)

    def documents(
        self, workspace: str, namespace: str | None, keys: Collection[str]
    ) -> dict[str, Document]:
        ids = _document_ids(scope_of(workspace, namespace), keys)
        docs = self._client.mget([(self._layout.records, each) for each in ids], ["key", "text"])
        sources = [doc.source for doc in docs if doc is not None and "text" in doc.source]
        return {source["key"]: Document(source["text"]) for source in sources}

    def embedder(self) -> EmbedderIdentity | None:
        record = self.get(*_EMBEDDER)
        return None if record is None else record.read(EmbedderIdentity)

    def use_embedder(self, identity: EmbedderIdentity) -> None:
        if self.embedder() != identity:
            self.put(*_EMBEDDER, identity)

    def texts_without_vector(
        self, workspace: str, namespace: str | None, limit: int
    ) -> list[TextRow]:
        filters = terms(**scope_of(workspace, namespace)._asdict(), live=True)
        query: dict[str, Any] = {"filter": [*filters, {"exists": {"field": "words"}}]}
        if (identity := self.embedder()) is not None:
            query["must_not"] = terms(embedder=_embedder_mark(identity))
        index = self._layout.records
        self._client.refresh(index)
        options = {"source": ["text"], "size": limit, "sort": ["key"], "seq_no_primary_term": True}
        answer = self._client.search(index=index, query={"bool": query}, **options)
        return [
            TextRow(f"{h['_id']} {h['_seq_no']} {h['_primary_term']}", h["_source"]["text"])
            for h in answer["hits"]["hits"]
        ]

    def put_vectors(self, identity: EmbedderIdentity, vectors: Mapping[str, Any]) -> None:
        if self.embedder() != identity:
            raise RequestError("the store holds the vectors of another embedder", field="vector")
        index = self._layout.records
        field = self._layout.vector_field(identity.dimension)
        rows = [row.split() for row in vectors]
        docs = self._client.mget([(index, row[0]) for row in rows])
        writes = []
        for row, doc, vector in zip(rows, docs, vectors.values(), strict=True):
            if doc is None or doc.revision != (int(row[1]), int(row[2])):
                continue
            source = {name: value for name, value in doc.source.items() if name[:7] != "vector_"}
            source["embedder"] = _embedder_mark(identity)
            if vector.any():  # the server refuses a vector of zeros
                source[field] = [round(value, 9) for value in vector.tolist()]
            if source["namespace"] == GUIDANCE:  # its version is that of its tool's commit
                writes.append(Write(index, doc.id, source, version=doc.version))
            else:
                writes.append(Write(index, doc.id, source, revision=doc.revision))
        self._client.bulk(writes)


def _embedder_mark(identity: EmbedderIdentity) -> str:
    return digest(identity.name, identity.model, str(identity.dimension))


def _document_ids(scope: Scope, keys: Collection[str]) -> list[str]:
    return [digest(*scope, key) for key in keys]
