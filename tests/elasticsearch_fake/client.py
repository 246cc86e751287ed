"""Stands in the place of an `elasticsearch.Elasticsearch`; `send` carries each request out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from elastic_transport import ApiResponseMeta, ConnectionError, ObjectApiResponse
from elasticsearch import ApiError

from elasticsearch_fake.server import Bulk, Doc, Item, Lost, Mget, Refresh, Rejected, Search


class FakeClient:
    """The methods that the store uses, answered as the library answers them."""

    def __init__(self, send: Callable[[Any], Any]) -> None:
        self._send = send
        self.indices = self

    def _asked(self, request: Any) -> Any:
        try:
            return self._send(request)
        except Lost as error:
            raise ConnectionError("lost") from error
        except Rejected as error:
            body = {"error": {"type": "es_rejected_execution_exception", "reason": "busy"}}
            raise ApiError("busy", _meta(429), body) from error

    def mget(self, docs: list[dict[str, Any]]) -> Any:
        request = Mget(tuple((each["_index"], each["_id"]) for each in docs))
        found = zip(request.keys, self._asked(request), strict=True)
        fields = docs[0]["_source"]
        return _answer({"docs": [_shown(key[1], doc, fields) for key, doc in found]})

    def bulk(self, operations: list[bytes], **_: Any) -> Any:
        stands = self._asked(Bulk(tuple(_item(lines) for lines in operations)))
        items = []
        for each in stands:
            if isinstance(each, tuple):
                item = {"status": 200, "_seq_no": each[0], "_primary_term": each[1]}
            else:
                item = {"status": each, "_seq_no": 0, "_primary_term": 0}
                if each != 200:
                    kind = "es_rejected_execution_exception" if each == 429 else "conflict"
                    item["error"] = {"type": kind, "reason": ""}
            items.append({"index": item})
        return _answer({"items": items})

    def search(
        self, index: str, query: Any, size: int, sort: Any = (), source: Any = True, **_: Any
    ) -> Any:
        found = self._asked(Search(index, tuple(query["bool"]["filter"])))
        hits = [_shown(key[1], doc, source) for key, doc in found.items()]
        for order in sort:
            ((name, direction),) = order.items()
            hits.sort(key=lambda hit: hit["_source"][name], reverse=direction == "desc")
            hits = [{**hit, "sort": [hit["_source"][name]]} for hit in hits]
        return _answer({"hits": {"hits": hits[:size]}})

    def options(self, **_: Any) -> FakeClient:
        return self

    def info(self) -> Any:
        return _answer({})

    def refresh(self, index: str) -> Any:
        self._asked(Refresh(index))
        return _answer({})

    def get_mapping(self, **_: Any) -> Any:
        return _answer({})

    def create(self, **_: Any) -> Any:
        return _answer({})

    def close(self) -> None:
        pass


def _meta(status: int) -> ApiResponseMeta:
    return ApiResponseMeta(status, "1.1", {}, 0.0, None)  # type: ignore[arg-type]


def _answer(body: Any) -> Any:
    return ObjectApiResponse(body=body, meta=_meta(200))


def _shown(name: str, doc: Doc | None, fields: Any) -> dict[str, Any]:
    if doc is None:
        return {"_id": name, "found": False}
    seq_no, term = doc.position
    head = {"_id": name, "found": True, "_seq_no": seq_no, "_primary_term": term}
    source = doc.source if fields is True else {}
    if isinstance(fields, list):
        source = {name: value for name, value in doc.source.items() if name in fields}
    return {**head, "_version": doc.version, "_source": source}


def _item(lines: bytes) -> Item:
    head, _, source = lines.partition(b"\n")
    ((action, told),) = msgspec.json.decode(head).items()
    position = (told["if_seq_no"], told["if_primary_term"]) if "if_seq_no" in told else None
    version = told.get("version")
    anyhow = version is None and position is None and action == "index"
    body = msgspec.json.decode(source) if source else None
    return Item((told["_index"], told["_id"]), body, version, position, anyhow)
