"""Keyed records. Each is one document, and each change one compare-and-swap of it.

A deleted record leaves an empty document behind: a delayed request finds its position gone. The
stamp of the rules is a document of the same shard, written by the same request as the rule, so
that whoever reads the new stamp reads the new rule.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from toolmem.errors import Conflict, RequestError, StoreUnavailable
from toolmem.models.records import Document, Record
from toolmem.store.elasticsearch.client import Client, Doc, Write
from toolmem.store.elasticsearch.layout import SYSTEM, Layout, digest
from toolmem.store.storable import GUIDANCE, MAX_NAME, is_rule, is_storable, micros, moment_of
from toolmem.store.words import index_words

RECENT = 4  # names of the last changes, by which a writer knows its own
FIELDS = ["namespace", "key", "live", "version", "created", "modified", "recent", "body"]
_LIVE = {"term": {"live": True}}


def record_id(workspace: str, namespace: str, key: str) -> str:
    """Of the document of a record."""
    return digest(workspace, namespace, key)


def document_fields(text: str) -> dict[str, str]:
    """What a document is found by."""
    return {"text": text, "words": " ".join(index_words(text))}


def record_of(doc: Doc | None) -> Record | None:
    """None where it was deleted, or never there."""
    if doc is None or not doc.source["live"]:
        return None
    of = doc.source
    body = msgspec.Raw(of["body"].encode())
    times = (moment_of(of["created"]), moment_of(of["modified"]))
    return Record(of["namespace"], of["key"], body, of["version"], *times)


class Records:
    """The keyed records of a store."""

    def __init__(self, client: Client, layout: Layout) -> None:
        self._client = client
        self._index = layout.records

    def get(self, workspace: str, places: Sequence[tuple[str, str]]) -> list[Record | None]:
        """In the order asked; `places`: namespace and key."""
        return [record_of(doc) for doc in self._docs(workspace, places)]

    def _docs(self, workspace: str, places: Sequence[tuple[str, str]]) -> list[Doc | None]:
        wanted = [each for each in places if is_storable(workspace + each[0] + each[1])]
        docs = self._client.mget([(self._index, record_id(workspace, *p)) for p in wanted], FIELDS)
        found = dict(zip(wanted, docs, strict=True))
        return [found.get(each) for each in places]

    def put(
        self,
        workspace: str,
        namespace: str,
        key: str,
        body: str,
        document: Document | None,
        expected_version: int | None,
        now: datetime,
    ) -> Record:
        """Raises Conflict, RequestError."""
        for field, name in (("namespace", namespace), ("key", key)):
            if len(name) > MAX_NAME or not is_storable(name):
                raise RequestError(
                    f"{field}: expected text of at most {MAX_NAME:,} characters", field=field
                )

        def change(held: Record | None) -> dict[str, Any]:
            version = 0 if held is None else held.version
            if expected_version not in (None, version):
                raise Conflict(
                    f"record {namespace!r}/{key!r} is at version {version}, not at "
                    f"{expected_version}; read again and decide again"
                )
            return {
                "live": True,
                "version": version + 1,
                "created": micros(now if held is None else held.time_created),
                "modified": micros(now),
                "body": body,
                **({} if document is None else document_fields(document.text)),
            }

        written = self._swap(workspace, namespace, key, change)
        assert written is not None
        return written

    def delete(self, workspace: str, namespace: str, key: str) -> bool:
        """Whether there was one."""
        if not is_storable(workspace + namespace + key):
            return False
        deleted: list[bool] = []

        def change(held: Record | None) -> dict[str, Any] | None:
            deleted[:] = [held is not None]
            return None if held is None else {"live": False}

        self._swap(workspace, namespace, key, change)
        return deleted[0]

    def _swap(
        self,
        workspace: str,
        namespace: str,
        key: str,
        change: Callable[[Record | None], dict[str, Any] | None],
    ) -> Record | None:
        """Write what `change` makes of the record as it stands; None of it: nothing to write."""
        name, tried = os.urandom(6).hex(), dict[str, Record | None]()
        place = (self._index, record_id(workspace, namespace, key))
        for attempt, _ in enumerate(self._client.pauses()):
            (doc,) = self._docs(workspace, [(namespace, key)])
            recent = [] if doc is None else doc.source["recent"]
            if mine := tried.keys() & set(recent):  # it was swapped, and the answer was lost
                return tried[mine.pop()]
            changed = change(record_of(doc))
            if changed is None:
                return None
            source = {
                "workspace": workspace,
                "namespace": namespace,
                "key": key,
                "recent": [*recent, f"{name}-{attempt}"][-RECENT:],
                **changed,
            }
            position = None if doc is None else doc.position
            tried[f"{name}-{attempt}"] = record_of(Doc("", source, (0, 0), 0))
            writes = [Write(*place, source, position=position, is_new=doc is None)]
            if is_rule(namespace, key):
                writes.append(self.stamp(workspace))
            if self._client.bulk(writes)[0] is not None:
                return tried[f"{name}-{attempt}"]
        raise StoreUnavailable(
            f"Elasticsearch at {self._client.location}: others changed record "
            f"{namespace!r}/{key!r} during every attempt"
        )

    def stamp(self, workspace: str) -> Write:
        """Another stamp of the rules, which none has had before."""
        source = {
            "workspace": workspace,
            "namespace": SYSTEM,
            "key": "stamp",
            "live": False,
            "body": os.urandom(8).hex(),
        }
        return Write(self._index, record_id(workspace, SYSTEM, "stamp"), source)

    def stamped(
        self, workspace: str, places: Sequence[tuple[str, str]]
    ) -> tuple[str, list[Record | None]]:
        """Records and the stamp of the rules, read by one request."""
        stamp, *docs = self._docs(workspace, [(SYSTEM, "stamp"), *places])
        return "" if stamp is None else stamp.source["body"], [record_of(doc) for doc in docs]

    def listed(
        self,
        workspace: str,
        namespace: str | None,
        prefix: str = "",
        key_prefix: str = "",
        newest: int | None = None,
    ) -> list[Record]:
        """By namespace and key; `newest`: only the last so many keys, oldest of them first."""
        filters: list[Any] = [{"term": {"workspace": workspace}}, _LIVE]
        if namespace is not None:
            filters.append({"term": {"namespace": namespace}})
        elif prefix:
            filters.append({"prefix": {"namespace": prefix}})
        if key_prefix:
            filters.append({"prefix": {"key": key_prefix}})
        if newest is None:
            docs = list(self._client.scan(self._index, filters, FIELDS))
        else:
            docs = self._client.newest(self._index, filters, FIELDS, ("namespace", "key"), newest)
        found = [record for doc in docs if (record := record_of(doc)) is not None]
        if namespace is None:
            found = [each for each in found if not each.namespace.startswith(".")]
        return sorted(found, key=lambda each: (each.namespace, each.key))

    def delete_workspace(self, workspace: str) -> bool:
        """Every record of it; whether there was one. The stamp of its rules changes."""
        filters = [{"term": {"workspace": workspace}}, _LIVE]
        places = [
            (doc.source["namespace"], doc.source["key"])
            for doc in self._client.scan(self._index, filters, ["namespace", "key"])
            if doc.source["namespace"] != GUIDANCE
        ]
        gone = [self.delete(workspace, *place) for place in places]
        if gone:
            self._client.bulk([self.stamp(workspace)])
        return any(gone)

    def put_many(
        self, workspace: str, namespace: str, bodies: Mapping[str, bytes], now: datetime
    ) -> None:
        """Records that anybody would write alike."""
        at = micros(now)
        writes = [
            Write(
                self._index,
                record_id(workspace, namespace, key),
                {
                    "workspace": workspace,
                    "namespace": namespace,
                    "key": key,
                    "recent": [],
                    "live": True,
                    "version": 1,
                    "created": at,
                    "modified": at,
                    "body": body.decode(),
                },
            )
            for key, body in bodies.items()
        ]
        self._client.bulk(writes)

    def names(self, field: str, filters: Sequence[Any]) -> Collection[str]:
        """The different values of a field."""
        return self._client.values(self._index, field, [*filters, _LIVE])
