"""Keyed records: JSON objects under (workspace, namespace, key), each with a version."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import apsw

from toolmem.store.codec import micros, storable, storables
from toolmem.store.keyed import PutRecord, encode_value
from toolmem.store.sqlite.lookup import one, require_workspace_id, workspace_id
from toolmem.stored import RawRecord, Stamped

if TYPE_CHECKING:
    from toolmem.protocols import EmbedderIdentity

# A damaged value may be of any type.
_SELECT = "SELECT namespace, key, CAST(value AS TEXT), version, time_created, time_modified FROM records"
_PUT = (
    "INSERT INTO records (workspace, namespace, key, version, time_created, time_modified, value) "
    "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (workspace, namespace, key) DO UPDATE "
    "SET value = excluded.value, version = excluded.version, time_modified = excluded.time_modified"
)


def put(db: apsw.Connection, record: PutRecord, embedder: EmbedderIdentity | None) -> RawRecord:
    """Runs inside a write transaction."""
    from toolmem.store.sqlite import documents  # a hook that only asks needs no text index

    number = require_workspace_id(db, record.workspace)
    place = (number, record.namespace, record.key)
    new = record.decide(_held(db, *place))
    db.execute(_PUT, (*place, new.version, new.born, new.modified, new.text))
    if record.document is None:
        documents.remove(db, number, documents.RECORDS, record.namespace, record.key)
    else:
        scope = (documents.RECORDS, record.namespace, record.key)
        documents.write(db, number, *scope, record.document, record.now, embedder)
    return new


class SqliteRecordsOfCommit:
    """The keyed records of a workspace, none of them searchable, inside the write transaction that runs."""

    def __init__(self, db: apsw.Connection, workspace: str, now: datetime) -> None:
        self._db = db
        self._workspace = workspace
        self._number = workspace_id(db, workspace)
        self.now = micros(now)

    def get(self, namespace: str, key: str) -> RawRecord | None:
        return _held(self._db, self._number, namespace, key)

    def put(self, held: RawRecord | None, namespace: str, key: str, value: Mapping[str, Any]) -> None:
        """`held`: what `get` answered in this commit."""
        self._number = self._number or require_workspace_id(self._db, self._workspace)
        version, born = (1, self.now) if held is None else (held.version + 1, held.born)
        row = (self._number, namespace, key, version, born, self.now, encode_value(value))
        self._db.execute(_PUT, row)

    def of(self, namespace: str) -> list[RawRecord]:
        return list_raw(self._db, self._workspace, [namespace])

    def delete(self, namespace: str, key: str) -> None:
        delete(self._db, self._workspace, namespace, key)


def get(db: apsw.Connection, workspace: str, namespace: str, key: str) -> RawRecord | None:
    return _held(db, workspace_id(db, workspace), namespace, key)


def _held(db: apsw.Connection, workspace: int | None, namespace: str, key: str) -> RawRecord | None:
    row = one(db, f"{_SELECT} WHERE workspace = ? AND namespace = ? AND key = ?", workspace, namespace, key)
    return None if row is None else RawRecord._make(row)


def read_stamped(db: apsw.Connection, workspace: str, keys: Sequence[tuple[str, str]]) -> Stamped:
    """See `MemoryStore.read_stamped`. Triggers of the tables keep the number, whoever writes."""
    row = one(db, "SELECT id, rules_changed FROM workspaces WHERE name = ?", workspace) if storable(workspace) else None
    number, changed = row or (None, 0)
    return Stamped(
        f"{changed}", tuple(_held(db, number, *place) if storable("".join(place)) else None for place in keys)
    )


def list_raw(
    db: apsw.Connection, workspace: str, namespaces: Sequence[str] | None, *, prefix: str = "", key_prefix: str = ""
) -> list[RawRecord]:
    """`namespaces` None: all whose name begins with `prefix`. Walks the index of keys, one range per namespace."""
    number = workspace_id(db, workspace)
    conditions = ["workspace = ?"]
    values: list[Any] = [number]
    if namespaces is None:
        _begins_with("namespace", prefix, conditions, values)
    else:
        conditions.append("namespace IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(storables(namespaces)))
    _begins_with("key", key_prefix, conditions, values)
    sql = f"{_SELECT} WHERE {' AND '.join(conditions)} ORDER BY namespace, key"
    return list(map(RawRecord._make, db.execute(sql, values)))


def _begins_with(column: str, prefix: str, conditions: list[str], values: list[Any]) -> None:
    """As a range, which an index can serve. Texts are compared by code point."""
    if not prefix:
        return
    conditions.append(f"{column} >= ?")
    values.append(prefix)
    stem = prefix.rstrip("\U0010ffff")
    if stem:
        following = ord(stem[-1]) + 1
        conditions.append(f"{column} < ?")
        values.append(stem[:-1] + chr(0xE000 if following == 0xD800 else following))


def delete(db: apsw.Connection, workspace: str, namespace: str, key: str) -> bool:
    """Runs inside a write transaction."""
    number = workspace_id(db, workspace)
    db.execute("DELETE FROM records WHERE workspace = ? AND namespace = ? AND key = ?", (number, namespace, key))
    if number is None or not db.changes():
        return False
    from toolmem.store.sqlite import documents

    documents.remove(db, number, documents.RECORDS, namespace, key)
    return True


def namespaces(db: apsw.Connection, workspace: str) -> list[str]:
    """Sorted. Hops from one namespace to the next in the index, whatever the number of records in each."""
    number = workspace_id(db, workspace)
    found: list[str] = []
    sql = "SELECT namespace FROM records WHERE workspace = ? ORDER BY namespace LIMIT 1"
    row = one(db, sql, number)
    sql = "SELECT namespace FROM records WHERE workspace = ? AND namespace > ? ORDER BY namespace LIMIT 1"
    while row is not None:
        found.append(row[0])
        row = one(db, sql, number, row[0])
    return found
