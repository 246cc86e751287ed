"""Keyed records: one document each, searchable side included, replaced by compare-and-swap."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from toolmem.errors import Conflict, StoreError
from toolmem.store.codec import micros, moment, require_storable, storable
from toolmem.store.elastic import embedders, searchable
from toolmem.store.elastic.names import is_cut, label, random_name, record_id, scope_key, shown_part, workspace_key
from toolmem.store.elastic.session import Session
from toolmem.store.semantics import require_names
from toolmem.stored import Document, RawRecord, Record

logger = logging.getLogger("toolmem.store")

_BODY = ["body"]
_WHOLE = ["body", "value"]


@dataclass(frozen=True, slots=True)
class Put:
    """A record on its way in. `value`: its JSON."""

    workspace: str
    namespace: str
    key: str
    value: str
    document: Document | None
    expected_version: int | None


async def put(session: Session, now: datetime, record: Put) -> Record:
    """Raises Conflict where `expected_version` is not the record's."""
    require_storable(record.namespace, "namespace")
    require_storable(record.key, "key")
    require_names(record.workspace, "a record")
    name = random_name(10)
    give_up = session.connection.deadline()
    while True:
        found, claim = await session.connection.multi_get(
            [_request(session, record), embedders.claim_request(session.layout)], deadline=give_up
        )
        held = _held(found)
        version = held["version"] if held else 0
        # Our own write may have been carried out although its answer was lost.
        ours = held is not None and held["name"] == name
        if not ours and record.expected_version is not None and record.expected_version != version:
            raise Conflict(
                f"workspace {record.workspace!r}: record {record.key!r} of {record.namespace!r} is at version "
                f"{version}, not at {record.expected_version}; read again and decide again"
            )
        body: dict[str, Any] = {
            "workspace": record.workspace,
            "namespace": record.namespace,
            "key": record.key,
            "text": None if record.document is None else record.document.text,
            "version": version if ours else version + 1,
            "times": [held["times"][0] if held else micros(now), micros(now)],
            "name": name,
        }
        source = await _source(session, record, body, embedders.read_claim(claim.get("_source")))
        if await _swap(session, record, found, source, give_up):
            return _record(_raw(body, record.value), body["times"][1])
        if time.monotonic() > give_up:
            raise Conflict(
                f"workspace {record.workspace!r}: record {record.key!r} of {record.namespace!r} kept changing for "
                f"{session.connection.timeout:g} s; try again"
            )
        await asyncio.sleep(random.uniform(0, 0.05))


def _request(session: Session, record: Put) -> dict[str, Any]:
    return {
        "_index": session.layout.alias("records"),
        "_id": record_id(record.workspace, record.namespace, record.key),
        "routing": workspace_key(record.workspace),
        "_source": _BODY,
    }


def _held(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is there now; of a damaged document what is needed to replace it."""
    if not found.get("found"):
        return None
    try:
        body = json.loads(found["_source"]["body"])
        return {"version": int(body["version"]), "times": [int(body["times"][0])], "name": str(body["name"])}
    except (ValueError, TypeError, KeyError, IndexError):
        return {"version": 0, "times": [0], "name": ""}


async def _source(
    session: Session, record: Put, body: Mapping[str, Any], claim: embedders.Claim | None
) -> dict[str, Any]:
    document = None if record.document is None else await session.searchable(record.document, claim)
    return {
        "w": workspace_key(record.workspace),
        "workspace": label(record.workspace),
        "scope": scope_key(record.workspace, record.namespace),
        "namespace": label(record.namespace),
        "key": label(record.key),
        "body": json.dumps(body, ensure_ascii=False, separators=(",", ":")),
        "value": record.value,
        "facts": [] if document is None else searchable.facts(json.loads(record.value)),
        **searchable.fields(document, body["times"][1]),
    }


async def _swap(
    session: Session, record: Put, found: Mapping[str, Any], source: Mapping[str, Any], give_up: float
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


async def get(session: Session, workspace: str, namespace: str, key: str) -> Record | None:
    """Raises StoreError where the record is there but damaged."""
    if not all(storable(text) for text in (workspace, namespace, key)):
        return None
    request = {**_request(session, Put(workspace, namespace, key, "", None, None)), "_source": _WHOLE}
    (found,) = await session.connection.multi_get([request])
    if not found.get("found"):
        return None
    try:
        return _readable(found["_source"])
    except _DAMAGE as error:
        raise StoreError(
            f"workspace {workspace!r}: record {key!r} of {namespace!r} is damaged; put or delete it"
        ) from error


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


async def list_records(session: Session, workspace: str, namespace: str) -> list[Record]:
    """By key; a damaged one is logged and left out."""
    found = []
    for source, raw in await _listed(session, workspace, [namespace], "", ""):
        try:
            found.append(_readable(source))
        except _DAMAGE:
            logger.error("record %r of %r is damaged and left out", raw.key, namespace)
    return found


async def list_raw(
    session: Session, workspace: str, namespaces: Sequence[str] | None, prefix: str, key_prefix: str
) -> list[RawRecord]:
    """By namespace and key. `namespaces` None: all whose name begins with `prefix`."""
    return [raw for _, raw in await _listed(session, workspace, namespaces, prefix, key_prefix)]


async def _listed(
    session: Session, workspace: str, namespaces: Sequence[str] | None, prefix: str, key_prefix: str
) -> list[tuple[Mapping[str, Any], RawRecord]]:
    """With the sources that they come from."""
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
        raw = _raw_of_hit(hit)
        chosen = raw.namespace.startswith(prefix) if wanted is None else raw.namespace in wanted
        if chosen and raw.key.startswith(key_prefix):
            found.append((hit["_source"], raw))
    return sorted(found, key=lambda each: each[1][:2])


_DAMAGE = (ValueError, TypeError, KeyError, IndexError, RecursionError)


def _raw_of_hit(hit: Mapping[str, Any]) -> RawRecord:
    source = hit["_source"]
    try:
        return _raw(json.loads(source["body"]), str(source["value"]))
    except _DAMAGE:
        fields = hit["fields"]
        return RawRecord(fields["namespace"][0], fields["key"][0], str(source.get("body")), 0, 0)


def _raw(body: Mapping[str, Any], value: str) -> RawRecord:
    return RawRecord(body["namespace"], body["key"], value, int(body["version"]), int(body["times"][0]))


def _readable(source: Mapping[str, Any]) -> Record:
    """Raises one of `_DAMAGE`."""
    body = json.loads(source["body"])
    return _record(_raw(body, source["value"]), body["times"][1])


def _record(raw: RawRecord, modified: int) -> Record:
    value = json.loads(raw.text)
    if not isinstance(value, dict):
        raise ValueError("the value is not an object")
    return Record(raw.namespace, raw.key, value, raw.version, moment(raw.born), moment(modified))


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
