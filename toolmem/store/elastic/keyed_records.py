"""Keyed records: one document each, searchable side included, replaced by compare-and-swap."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

from toolmem.errors import Conflict
from toolmem.store.codec import CALL_FAULTS, storable
from toolmem.store.elastic import embedders, searchable
from toolmem.store.elastic.names import is_cut, label, random_name, record_id, scope_key, shown_part, workspace_key
from toolmem.store.elastic.session import Session
from toolmem.store.records import PutRecord
from toolmem.stored import RawRecord

_BODY = ["body"]
_WHOLE = ["body", "value"]


async def put(session: Session, record: PutRecord) -> RawRecord:
    """Raises Conflict where `expected_version` is not the record's."""
    name = random_name(10)
    give_up = session.connection.deadline()
    place = (record.workspace, record.namespace, record.key)
    while True:
        found, claim = await session.connection.multi_get(
            [_request(session, *place, _BODY), embedders.claim_request(session.layout)], deadline=give_up
        )
        new = record.decide(_held(found, record, name))
        body: dict[str, Any] = {
            "workspace": record.workspace,
            "namespace": record.namespace,
            "key": record.key,
            "text": None if record.document is None else record.document.text,
            "version": new.version,
            "times": [new.born, new.modified],
            "name": name,
        }
        source = await _source(session, record, body, embedders.read_claim(claim.get("_source")))
        if await _swap(session, record, found, source, give_up):
            return new
        if time.monotonic() > give_up:
            raise Conflict(
                f"workspace {record.workspace!r}: record {record.key!r} of {record.namespace!r} kept changing for "
                f"{session.connection.timeout:g} s; try again"
            )
        await asyncio.sleep(random.uniform(0, 0.05))


def _request(session: Session, workspace: str, namespace: str, key: str, fields: list[str]) -> dict[str, Any]:
    return {
        "_index": session.layout.alias("records"),
        "_id": record_id(workspace, namespace, key),
        "routing": workspace_key(workspace),
        "_source": fields,
    }


def _held(found: Mapping[str, Any], record: PutRecord, name: str) -> RawRecord | None:
    """What is there now; of a damaged document what is needed to replace it."""
    if not found.get("found"):
        return None
    held = _raw({**found["_source"], "value": ""}, record.namespace, record.key)
    # Our own write may have been carried out although its answer was lost; it was decided on what was there before.
    ours = held.version > 0 and json.loads(found["_source"]["body"])["name"] == name
    return held._replace(version=held.version - ours)


async def _source(
    session: Session, record: PutRecord, body: Mapping[str, Any], claim: embedders.Claim | None
) -> dict[str, Any]:
    document = None if record.document is None else await session.searchable(record.document, claim)
    return {
        "w": workspace_key(record.workspace),
        "workspace": label(record.workspace),
        "scope": scope_key(record.workspace, record.namespace),
        "namespace": label(record.namespace),
        "key": label(record.key),
        "body": json.dumps(body, ensure_ascii=False, separators=(",", ":")),
        "value": record.text,
        "facts": [] if document is None else searchable.facts(json.loads(record.text)),
        **searchable.fields(document, body["times"][1]),
    }


async def _swap(
    session: Session, record: PutRecord, found: Mapping[str, Any], source: Mapping[str, Any], give_up: float
) -> bool:
    place: dict[str, Any] = {"op_type": "create"}
    if found.get("found"):
        place = {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
    answer = await session.connection.call(
        lambda es: es.index(
            index=session.layout.alias("records"),
            id=record_id(record.workspace, record.namespace, record.key),
            routing=workspace_key(record.workspace),
            document=source,
            **place,
        ),
        ignore=(409,),
        deadline=give_up,
    )
    return bool(answer.meta.status != 409)


async def get(session: Session, workspace: str, namespace: str, key: str) -> RawRecord | None:
    (found,) = await session.connection.multi_get([_request(session, workspace, namespace, key, _WHOLE)])
    return _raw(found["_source"], namespace, key) if found.get("found") else None


async def delete(session: Session, workspace: str, namespace: str, key: str) -> bool:
    if not all(storable(text) for text in (workspace, namespace, key)):
        return False
    answer = await session.connection.call(
        lambda es: es.delete(
            index=session.layout.alias("records"),
            id=record_id(workspace, namespace, key),
            routing=workspace_key(workspace),
        ),
        ignore=(404,),
    )
    return bool(answer.meta.status != 404)


async def list_raw(
    session: Session, workspace: str, namespaces: Sequence[str] | None, prefix: str, key_prefix: str
) -> list[RawRecord]:
    """By namespace and key. `namespaces` None: all whose name begins with `prefix`."""
    if not all(storable(text) for text in (workspace, prefix, key_prefix)):
        return []
    filters: list[dict[str, Any]] = [{"term": {"w": workspace_key(workspace)}}]
    wanted: set[str] | None = None
    if namespaces is not None:
        wanted = {name for name in namespaces if storable(name)}
        filters.append({"terms": {"scope": sorted(scope_key(workspace, name) for name in wanted)}})
    elif prefix:
        filters.append({"prefix": {"namespace": shown_part(prefix)}})
    if key_prefix:
        filters.append({"prefix": {"key": shown_part(key_prefix)}})
    index, routing = session.layout.alias("records"), workspace_key(workspace)
    await session.connection.refresh(index)
    wanted_fields: dict[str, Any] = {"source": _WHOLE, "docvalue_fields": ["namespace", "key"]}
    found = []
    async for hit in session.connection.scan(index, {"bool": {"filter": filters}}, routing=routing, **wanted_fields):
        fields = hit["fields"]
        raw = _raw(hit["_source"], fields["namespace"][0], fields["key"][0])
        chosen = raw.namespace.startswith(prefix) if wanted is None else raw.namespace in wanted
        if chosen and raw.key.startswith(key_prefix):
            found.append(raw)
    return sorted(found, key=lambda raw: raw[:2])


def _raw(source: Mapping[str, Any], namespace: str, key: str) -> RawRecord:
    """`namespace` and `key`: as labels show them, for a damaged one."""
    try:
        body = json.loads(source["body"])
        born, modified = body["times"]
        return RawRecord(
            body["namespace"], body["key"], str(source["value"]), int(body["version"]), int(born), int(modified)
        )
    except (*CALL_FAULTS, IndexError):
        return RawRecord(namespace, key, str(source.get("body")), 0, 0)


async def namespaces(session: Session, workspace: str) -> list[str]:
    """Sorted. One bucket each, whatever the number of records in it."""
    if not storable(workspace):
        return []
    index = session.layout.alias("records")
    await session.connection.refresh(index)
    found = set()
    query = {"term": {"w": workspace_key(workspace)}}
    async for bucket in buckets(session, index, query, "namespace", routing=workspace_key(workspace)):
        shown = bucket["key"]["value"]
        found.add(await whole(session, index, "namespace", shown) if is_cut(shown) else shown)
    return sorted(found)


async def buckets(
    session: Session,
    index: str,
    query: Mapping[str, Any],
    field: str,
    *,
    routing: str | None = None,
    inner: Mapping[str, Any] | None = None,
) -> Any:
    """Every different value of a keyword field, with its figures (`inner` aggregations)."""
    after = None
    while True:
        composite: dict[str, Any] = {"size": 1000, "sources": [{"value": {"terms": {"field": field}}}]}
        if after is not None:
            composite["after"] = after
        aggregations = {"values": {"composite": composite, "aggs": inner or {}}}
        answer = await session.connection.call(
            lambda es, aggs=aggregations: es.search(  # type: ignore[misc]
                index=index, query=query, aggs=aggs, size=0, routing=routing, allow_partial_search_results=False
            )
        )
        found = answer["aggregations"]["values"]
        for bucket in found["buckets"]:
            yield bucket
        after = found.get("after_key")
        if after is None:
            return


async def whole(session: Session, index: str, field: str, shown: str) -> str:
    """The text behind a label that was cut."""
    answer = await session.connection.call(
        lambda es: es.search(
            index=index, query={"term": {field: shown}}, size=1, source=_BODY, allow_partial_search_results=False
        )
    )
    hits = answer["hits"]["hits"]
    try:
        return str(json.loads(hits[0]["_source"]["body"])[field])
    except (ValueError, TypeError, KeyError, IndexError):
        return shown
