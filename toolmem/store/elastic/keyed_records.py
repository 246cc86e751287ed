"""Keyed records: one document each, searchable side included, replaced by compare-and-swap."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from toolmem.errors import Conflict
from toolmem.store.codec import CALL_FAULTS, storables, unnameable
from toolmem.store.elastic import generations, rule_stamps, search_fields
from toolmem.store.elastic.cluster import BulkItem, compact
from toolmem.store.elastic.document_ids import label, random_name, record_id, scope_key, shown_part, workspace_key
from toolmem.store.elastic.session import Session
from toolmem.store.keyed import PutRecord
from toolmem.stored import RawRecord, Stamped

_WHOLE = ["body", "value"]


async def put(session: Session, record: PutRecord) -> RawRecord:
    """Raises Conflict where `expected_version` is not the record's."""
    name = random_name(10)
    give_up = session.connection.deadline()
    document = record_id(record.workspace, record.namespace, record.key)
    wanted = [
        session.wanted("records", document, record.workspace, ["body"]),
        session.wanted("meta", generations.DOCUMENT),
    ]
    while True:
        found, generation = await session.connection.multi_get(wanted, deadline=give_up)
        new = record.decide(_held(found, record, name))
        source = await _source(session, record, new, name, generations.read_generation(generation))
        position = (found["_seq_no"], found["_primary_term"]) if found.get("found") else None
        if await _swap(session, record, document, source, position, give_up):
            return new
        if time.monotonic() > give_up:
            raise Conflict(
                f"workspace {record.workspace!r}: record {record.key!r} of {record.namespace!r} kept changing for "
                f"{session.connection.timeout:g} s; try again"
            )
        await asyncio.sleep(random.uniform(0, 0.05))


async def _swap(
    session: Session,
    record: PutRecord,
    document: str,
    source: Mapping[str, Any],
    position: tuple[int, int] | None,
    give_up: float,
) -> bool:
    if not rule_stamps.is_rule(record.namespace, record.key):
        return await session.swap("records", document, record.workspace, source, position, give_up)
    action, options = "create", {}
    if position is not None:
        action, options = "index", {"if_seq_no": position[0], "if_primary_term": position[1]}
    place = session.layout.alias("records"), document
    item = BulkItem(action, *place, source, workspace_key(record.workspace), options)
    (result,) = await rule_stamps.write(session, record.workspace, [item], give_up)
    if result.status != 409:
        session.connection.require([result])
    return result.status != 409


def _held(found: Mapping[str, Any], record: PutRecord, name: str) -> RawRecord | None:
    """What is there now; of a damaged document what is needed to replace it."""
    if not found.get("found"):
        return None
    held = _raw({**found["_source"], "value": ""}, record.namespace, record.key)
    # Our own write may have been carried out although its answer was lost; it was decided on what was there before.
    ours = held.version > 0 and json.loads(found["_source"]["body"])["name"] == name
    return held._replace(version=held.version - ours)


async def _source(
    session: Session, record: PutRecord, new: RawRecord, name: str, generation: generations.Generation | None
) -> dict[str, Any]:
    document = None
    if record.document is not None:
        document = await generations.searchable_of(session, record.document, generation)
    body = {
        "workspace": record.workspace,
        "namespace": record.namespace,
        "key": record.key,
        "text": record.document and record.document.text,
        "version": new.version,
        "times": [new.born, new.modified],
        "name": name,
    }
    return {
        "w": workspace_key(record.workspace),
        "workspace": label(record.workspace),
        "scope": scope_key(record.workspace, record.namespace),
        "namespace": label(record.namespace),
        "key": label(record.key),
        "body": compact(body),
        "value": record.text,
        "facts": [] if document is None else search_fields.facts(json.loads(record.text)),
        **search_fields.fields(document, new.modified),
    }


async def get(session: Session, workspace: str, namespace: str, key: str) -> RawRecord | None:
    wanted = session.wanted("records", record_id(workspace, namespace, key), workspace, _WHOLE)
    (found,) = await session.connection.multi_get([wanted])
    return _raw(found["_source"], namespace, key) if found.get("found") else None


async def delete(session: Session, workspace: str, namespace: str, key: str) -> bool:
    document = record_id(workspace, namespace, key)
    item = BulkItem("delete", session.layout.alias("records"), document, routing=workspace_key(workspace))
    if rule_stamps.is_rule(namespace, key):
        if await get(session, workspace, namespace, key) is None:
            return False
        (result,) = await rule_stamps.write(session, workspace, [item])
    else:
        (result,) = await session.connection.bulk([item])
    session.connection.require([result])
    return result.status != 404


async def read_stamped(session: Session, workspace: str, keys: Sequence[tuple[str, str]]) -> Stamped:
    """One multi-get. A record that no store can hold is absent."""
    asked = [key for key in dict.fromkeys(keys) if not unnameable(*key)]
    wanted = [session.wanted("records", record_id(workspace, *key), workspace, _WHOLE) for key in asked]
    stamp, *found = await session.connection.multi_get([rule_stamps.wanted(session, workspace), *wanted])
    held = {key: _raw(each["_source"], *key) for key, each in zip(asked, found, strict=True) if each.get("found")}
    told = await rule_stamps.told(session, workspace, stamp)
    return Stamped(told, tuple(held.get(key) for key in keys))


async def list_raw(
    session: Session, workspace: str, namespaces: Sequence[str] | None, *, prefix: str = "", key_prefix: str = ""
) -> list[RawRecord]:
    """By namespace and key. `namespaces` None: all whose name begins with `prefix`."""
    filters: list[dict[str, Any]] = []
    names = None if namespaces is None else set(storables(namespaces))
    if names is not None:
        filters.append({"terms": {"scope": sorted(scope_key(workspace, name) for name in names)}})
    elif prefix:
        filters.append({"prefix": {"namespace": shown_part(prefix)}})
    if key_prefix:
        filters.append({"prefix": {"key": shown_part(key_prefix)}})
    found = []
    async for hit in session.held("records", workspace, *filters, source=_WHOLE, docvalue_fields=["namespace", "key"]):
        fields = hit["fields"]
        raw = _raw(hit["_source"], fields["namespace"][0], fields["key"][0])
        chosen = raw.namespace.startswith(prefix) if names is None else raw.namespace in names
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
    await session.connection.refresh(session.layout.alias("records"))
    found = {name async for name, _ in buckets(session, "records", "namespace", workspace=workspace)}
    return sorted(found)


async def buckets(
    session: Session, kind: str, field: str, *, workspace: str | None = None, inner: Mapping[str, Any] | None = None
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Every different value of a keyword field, with its figures (`inner` aggregations)."""
    index = session.layout.alias(kind)
    routing = None if workspace is None else workspace_key(workspace)
    query = {"match_all": {}} if routing is None else {"term": {"w": routing}}
    composite: dict[str, Any] = {"size": 1000, "sources": [{"value": {"terms": {"field": field}}}]}
    while True:
        aggregations = {"values": {"composite": composite, "aggs": inner or {}}}
        answer = await session.connection.search(index=index, query=query, aggs=aggregations, size=0, routing=routing)
        found = answer["aggregations"]["values"]
        for bucket in found["buckets"]:
            yield await session.whole(kind, field, bucket["key"]["value"]), bucket
        if "after_key" not in found:
            return
        composite["after"] = found["after_key"]
