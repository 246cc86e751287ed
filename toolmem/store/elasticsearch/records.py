"""Keyed records. Each is one document, and each change one compare-and-swap of it.

A deleted record leaves an empty document behind, so a delayed request finds its position gone. The
stamp of the rules is a document of the same shard, written by the same request as the rule, so
that whoever reads the new stamp reads the new rule.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from toolmem.errors import RequestError, StoreUnavailable
from toolmem.models.records import Document, Record, Snapshot
from toolmem.store import storable
from toolmem.store.base import BaseStore
from toolmem.store.elasticsearch.client import MAX_CONFLICT_PAUSE, Client, Doc, Write
from toolmem.store.elasticsearch.layout import SYSTEM, Layout, digest, terms
from toolmem.store.search import index_words
from toolmem.store.storable import MAX_NAME, Place

RECENT = 4  # names of the last changes, by which a writer recognizes its own
FIELDS = ["namespace", "key", "live", "version", "created", "modified", "recent", "body"]


def document_fields(text: str) -> dict[str, str]:
    """The fields by which searches find a text."""
    return {"text": text, "words": " ".join(index_words(text))}


def record_of(doc: Doc | None) -> Record | None:
    """None where the record was deleted, or never written."""
    if doc is None or not doc.source["live"]:
        return None
    of = doc.source
    body = msgspec.Raw(of["body"].encode())
    times = (storable.moment_of(of["created"]), storable.moment_of(of["modified"]))
    return Record(of["namespace"], of["key"], body, of["version"], *times)


class RecordStore(BaseStore):
    """The keyed records of a store."""

    _client: Client
    _layout: Layout

    def _docs(self, workspace: str, places: Sequence[tuple[str, str]]) -> list[Doc | None]:
        index = self._layout.records
        return self._client.mget([(index, digest(workspace, *p)) for p in places], FIELDS)

    def get_many(self, workspace: str, keys: Sequence[tuple[str, str]]) -> Snapshot:
        """In one request, so that stamp and records fit together."""
        stamp, *docs = self._docs(workspace, [(SYSTEM, "stamp"), *keys])
        stamp_value = "" if stamp is None else stamp.source["body"]
        return Snapshot(stamp_value, [record_of(doc) for doc in docs])

    def _put(
        self, place: Place, body: bytes, document: Document | None, expected: int | None
    ) -> Record:
        now = datetime.now(UTC)
        for field, name in (("namespace", place.namespace), ("key", place.key)):
            if len(name) > MAX_NAME or not storable.is_storable(name):
                problem = f"{field}: expected text of at most {MAX_NAME:,} characters"
                raise RequestError(problem, field)

        def change(existing: Record | None) -> dict[str, Any]:
            version = storable.next_version(place, existing, expected)
            created = now if existing is None else existing.time_created
            times = {"created": storable.micros(created), "modified": storable.micros(now)}
            found_by = {} if document is None else document_fields(document.text)
            return {"live": True, "version": version, "body": body.decode(), **times, **found_by}

        written = record_of(self._swap(place, change))
        assert written is not None
        return written

    def delete(self, workspace: str, namespace: str, key: str) -> bool:
        place = Place(workspace, namespace, key)
        return self._swap(place, lambda existing: {"live": False} if existing else None) is not None

    def _swap(
        self, place: Place, change: Callable[[Record | None], dict[str, Any] | None]
    ) -> Doc | None:
        """Write what `change` makes of the current record; where it makes None, write nothing."""
        name, attempts = os.urandom(6).hex(), dict[str, Doc]()
        for attempt, _ in enumerate(self._client.pauses(longest=MAX_CONFLICT_PAUSE)):
            (doc,) = self._docs(place.workspace, [place[1:]])
            recent = [] if doc is None else doc.source["recent"]
            if own := attempts.keys() & set(recent):  # it was swapped, and the answer was lost
                return attempts[own.pop()]
            changed = change(record_of(doc))
            if changed is None:
                return None
            changed["recent"] = [*recent, f"{name}-{attempt}"][-RECENT:]
            write = self._write(place, changed)
            write.position, write.is_new = None if doc is None else doc.position, doc is None
            written = attempts[f"{name}-{attempt}"] = Doc(write.id, write.source, (0, 0), 0)
            stamps = [self._stamp(place.workspace)] if storable.is_rule(*place[1:]) else []
            if self._client.bulk([write, *stamps])[0] is not None:
                return written
        raise StoreUnavailable(
            f"Elasticsearch at {self._client.location}: others changed record "
            f"{place.namespace!r}/{place.key!r} during every attempt"
        )

    def _write(self, place: Place, fields: Mapping[str, Any]) -> Write:
        source = {**place._asdict(), **fields}
        return Write(self._layout.records, digest(*place), source)

    def _stamp(self, workspace: str) -> Write:
        """The write of a new, unique stamp of the rules."""
        fields = {"live": False, "body": os.urandom(8).hex()}
        return self._write(Place(workspace, SYSTEM, "stamp"), fields)

    def list_records(
        self,
        workspace: str,
        namespace: str | None = None,
        *,
        prefix: str = "",
        key_prefix: str = "",
        newest: int | None = None,
    ) -> list[Record]:
        filters: list[Any] = terms(workspace=workspace, live=True)
        if namespace is not None:
            filters += terms(namespace=namespace)
        elif prefix:
            filters.append({"prefix": {"namespace": prefix}})
        if key_prefix:
            filters.append({"prefix": {"key": key_prefix}})
        order = [{"namespace": "desc"}, {"key": "desc"}]
        limit = sys.maxsize if newest is None else newest
        docs = self._client.scan(self._layout.records, filters, FIELDS, order, limit)
        found = [record for doc in docs if (record := record_of(doc)) is not None]
        if namespace is None:
            found = [each for each in found if not each.namespace.startswith(".")]
        return sorted(found, key=lambda each: (each.namespace, each.key))

    def namespaces(self, workspace: str, *, hidden: bool = False) -> list[str]:
        filters = terms(workspace=workspace, live=True)
        found = self._client.values(self._layout.records, "namespace", filters)
        shown = [each for each in found if hidden or not each.startswith(".")]
        return [each for each in shown if each != storable.GUIDANCE]
