"""Keyed records. Each is one document, and each change one compare-and-swap of it.

A deleted record leaves an empty document behind, so that a delayed request meets a newer revision.
Each write to a rule also replaces the stamp of the rules, a document in the same shard, in the same
request: whoever reads the new stamp reads the new rule, too. Then rule and stamp are copied to
another index. A comparison with these copies shows which rules the store lost.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from shlex import quote
from typing import Any

import msgspec

from toolmem.errors import RequestError, StoreError, StoreUnavailable
from toolmem.models.records import RULE_PREFIX, Document, Record, Snapshot
from toolmem.store import storable
from toolmem.store.base import BaseStore
from toolmem.store.elasticsearch.client import MAX_CONFLICT_PAUSE, Client, Doc, Write
from toolmem.store.elasticsearch.layout import SYSTEM, Layout, digest, terms
from toolmem.store.search import index_words
from toolmem.store.storable import MAX_NAME, RecordKey
from toolmem.text.display import plain

log = logging.getLogger("toolmem.operator")
COPY_SECONDS = 3.0  # timeout of requests to copies of rules
RECENT = 4  # names of changes kept in a record, by which a writer recognizes its own
STAMP = (SYSTEM, "stamp")  # namespace and key
FIELDS = [*RecordKey._fields, "live", "version", "created", "modified", "recent", "body"]


def document_fields(text: str) -> dict[str, str]:
    """Return the fields `text` and `words`, by which searches find a document."""
    return {"text": text, "words": " ".join(index_words(text))}


def record_of(doc: Doc | None) -> Record | None:
    """Decode a document's record; None if it was deleted or never written."""
    if doc is None or not doc.source["live"]:
        return None
    source = doc.source
    body = msgspec.Raw(source["body"].encode())
    times = (storable.moment_of(source["created"]), storable.moment_of(source["modified"]))
    return Record(source["namespace"], source["key"], body, source["version"], *times)


class RecordStore(BaseStore):
    """Reads and writes keyed records: JSON values under a namespace and a key."""

    location: str
    _client: Client
    _layout: Layout
    _losses: dict[str, str]  # messages on lost rules, by workspace

    def _stamps_and_docs(
        self, workspace: str, keys: Sequence[tuple[str, str]], client: Client | None = None
    ) -> list[Doc | None]:
        """The stamp of the rules, the stamp of their copies, and the documents of records."""
        stamp, copies = digest(workspace, *STAMP), self._layout.copies
        asked = [(self._layout.records, digest(workspace, *key)) for key in keys]
        stamps = [(self._layout.records, stamp), (copies, stamp)]
        return (client or self._client).mget([*stamps, *asked], FIELDS, optional=copies)

    def get_many(self, workspace: str, keys: Sequence[tuple[str, str]]) -> Snapshot:
        """Read records and, in the same request, the stamp that changes with each write to a rule.

        If the copies of the rules have another stamp, `rules_stamp` is both of them.
        """
        stamp, copied, *docs = self._stamps_and_docs(workspace, keys)
        value = _body(stamp) if _is_same_stamp(stamp, copied) else f"{_body(stamp)} {_body(copied)}"
        return Snapshot(value, [record_of(doc) for doc in docs])

    def _put(
        self, record_key: RecordKey, body: bytes, document: Document | None, expected: int | None
    ) -> Record:
        now = datetime.now(UTC)
        for field, name in (("namespace", record_key.namespace), ("key", record_key.key)):
            if len(name) > MAX_NAME or not storable.is_storable(name):
                problem = f"{field}: expected text of at most {MAX_NAME:,} characters"
                raise RequestError(problem, field)

        def change(existing: Record | None) -> dict[str, Any]:
            version = storable.next_version(record_key, existing, expected)
            created = now if existing is None else existing.time_created
            times = {"created": storable.micros(created), "modified": storable.micros(now)}
            found_by = {} if document is None else document_fields(document.text)
            return {"live": True, "version": version, "body": body.decode(), **times, **found_by}

        written = record_of(self._swap(record_key, change))
        assert written is not None
        return written

    def delete(self, workspace: str, namespace: str, key: str) -> bool:
        record_key = RecordKey(workspace, namespace, key)
        gone = {"live": False, "modified": storable.micros(datetime.now(UTC))}
        return self._swap(record_key, lambda existing: dict(gone) if existing else None) is not None

    def _swap(
        self, record_key: RecordKey, change: Callable[[Record | None], dict[str, Any] | None]
    ) -> Doc | None:
        """Write what `change` makes of the current record. If that is None, nothing is written."""
        name, attempts = os.urandom(6).hex(), dict[str, Doc]()
        for attempt, _ in enumerate(self._client.attempts(longest=MAX_CONFLICT_PAUSE)):
            *before, doc = self._stamps_and_docs(record_key.workspace, [record_key[1:]])
            recent = [] if doc is None else doc.source["recent"]
            if own := attempts.keys() & set(recent):  # it was swapped; the reply was lost
                return attempts[own.pop()]
            changed = change(record_of(doc))
            if changed is None:
                return None
            changed["modified"] = max(changed["modified"], _modified(doc) + 1)
            changed["recent"] = [*recent, f"{name}-{attempt}"][-RECENT:]
            write = _only_over(doc, self._write(record_key, changed))
            written = attempts[f"{name}-{attempt}"] = Doc(write.id, write.source, (0, 0), 0)
            stamps = (
                [self._stamp(record_key.workspace)] if storable.is_rule(*record_key[1:]) else []
            )
            if self._client.bulk([write, *stamps])[0] is not None:
                if stamps:
                    self._copy_rules([written], stamps[0], before)
                return written
        raise StoreUnavailable(
            f"Elasticsearch at {self._client.location}: others changed record "
            f"{record_key.namespace!r}/{record_key.key!r} during every attempt"
        )

    def _write(self, record_key: RecordKey, fields: Mapping[str, Any]) -> Write:
        source = {**record_key._asdict(), **fields}
        return Write(self._layout.records, digest(*record_key), source)

    def _stamp(self, workspace: str) -> Write:
        """Return a write that gives a workspace's rules a new, unique stamp."""
        fields = {"live": False, "body": os.urandom(8).hex()}
        return self._write(RecordKey(workspace, *STAMP), fields)

    # ------------------------------------------------------------ copies of rules

    def _copy_rules(
        self, rules: Sequence[Doc], stamp: Write | Doc, before: Sequence[Doc | None]
    ) -> None:
        """Copy rules, and the stamp if the copies were up to date. A failure is logged.

        `before`: the stamps of the rules and of the copies before this change.
        """
        index = self._layout.copies
        writes = [Write(index, r.id, r.source, version=_modified(r)) for r in rules]
        if _is_same_stamp(*before):
            writes.append(_only_over(before[1], Write(index, stamp.id, stamp.source)))
        try:
            self._client.within(COPY_SECONDS).bulk(writes)
        except StoreError as error:
            log.error("the copy of the rules is not up to date: %s", error)

    def lost_rules(self, workspace: str) -> list[Record]:
        """Return the copy of each rule that the store lost, or holds older or altered.

        A loss is logged once. If nothing is lost, the copies are brought up to date. Raises
        StoreError if the copies cannot be read.
        """
        lost, behind, stamps = self._compare_copies(workspace)
        if not lost:
            self._losses.pop(workspace, None)
            stamp, copied = stamps
            if stamp is not None and (behind or not _is_same_stamp(stamp, copied)):
                self._copy_rules(behind, stamp, (copied, copied))
        return [record for doc in lost if (record := record_of(doc)) is not None]

    def _compare_copies(self, workspace: str) -> tuple[list[Doc], list[Doc], Sequence[Doc | None]]:
        """Find rules that the store lost, and rules that the copies lack; and both stamps."""
        client, layout = self._client.within(COPY_SECONDS), self._layout
        stamps: list[Doc | None] = [None, None]
        what = "were deleted or emptied"
        stored: dict[str, Doc] = {}
        try:
            stamps = self._stamps_and_docs(workspace, [], client)
            if stamps[1] is None:
                layout.create(layout.copies)
        except StoreError as error:
            what = f"cannot be read ({error})"
        # A rule is written before it is copied, so copies are read first.
        copied = _rules_in(client, layout.copies, workspace)
        try:
            if stored := _rules_in(client, layout.records, workspace):
                what = "were put back to an older state, or damaged"
        except StoreError as error:
            what = f"cannot be read ({error})"
        lost = [doc for doc in copied.values() if _is_lost(doc, stored.get(doc.id))]
        behind = [doc for doc in stored.values() if _modified(doc) > _modified(copied.get(doc.id))]
        command = f"toolmem store restore --store {self.location}/{layout.prefix}"
        command += f" --workspace {quote(workspace)}"
        message = (
            f"the rules of workspace {plain(workspace, 80)!r} in {layout.records} at "
            f"{self.location} {what}; their copy binds. To write them back: {command}; "
            f"to let them go: {command} --drop"
        )
        if lost and self._losses.get(workspace) != message:
            self._losses[workspace] = message
            log.error("%s", message)
        return lost, behind, stamps

    def rule_losses(self) -> dict[str, str]:
        """Return a message for each workspace that lost rules, by its name. Raises StoreError."""
        index = self._layout.copies
        for doc in self._client.scan(index, terms(namespace=SYSTEM), ["workspace", "body"]):
            workspace = doc.source["workspace"]
            if workspace in self._losses or not _is_same_stamp(
                *self._stamps_and_docs(workspace, [])
            ):
                self.lost_rules(workspace)
        return dict(self._losses)

    def accept_rules(self, workspace: str) -> None:
        """Give up lost rules: replace their copies by what the store holds. Raises StoreError."""
        lost = self._compare_copies(workspace)[0]
        stamp = self._stamp(workspace)
        _, copied = self._stamps_and_docs(workspace, [])
        self._client.bulk([stamp])  # it is new, so every guard reads the rules again
        index, now = self._layout.copies, storable.micros(datetime.now(UTC))
        found = self._client.mget([(self._layout.records, doc.id) for doc in lost], FIELDS)
        writes = [_only_over(copied, Write(index, stamp.id, stamp.source))]
        for doc, stored in zip(lost, found, strict=True):
            source = doc.source | {"live": False, "modified": 0, "body": ""}
            source = source if stored is None else stored.source
            writes.append(Write(index, doc.id, source, version=max(now, doc.version + 1)))
        self._client.bulk(writes)
        self._losses.pop(workspace, None)

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


def _is_same_stamp(stamp: Doc | None, copied: Doc | None) -> bool:
    """Whether the copies have the stamp of the rules: they are up to date."""
    return _body(stamp) == _body(copied)


def _body(doc: Doc | None) -> str:
    return "" if doc is None else str(doc.source.get("body", ""))


def _modified(doc: Doc | None) -> int:
    """Return the time of the last change in microseconds since 1970; it grows with each change."""
    return 0 if doc is None else int(doc.source.get("modified", 0))


def _is_lost(copied: Doc, stored: Doc | None) -> bool:
    """Whether the copy of a rule is newer than the rule in the store, or differs from it."""
    if not copied.source["live"] and (stored is None or not stored.source["live"]):
        return False
    if _modified(copied) == _modified(stored):
        return _body(copied) != _body(stored)
    return _modified(copied) > _modified(stored)


def _only_over(doc: Doc | None, write: Write) -> Write:
    """Restrict a write: it fails unless the document is still as read (None: still missing)."""
    write.is_new = doc is None
    write.revision = None if doc is None else doc.revision
    return write


def _rules_in(client: Client, index: str, workspace: str) -> dict[str, Doc]:
    """The documents of rules by id, deleted rules included."""
    filters = [*terms(workspace=workspace), {"prefix": {"key": RULE_PREFIX}}]
    found = client.scan(index, filters, FIELDS, [{"key": "asc"}])
    return {
        doc.id: doc for doc in found if storable.is_rule(doc.source["namespace"], doc.source["key"])
    }
