"""Keyed records: JSON objects under (workspace, namespace, key), each with a version."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import apsw

from toolmem.store.codec import storable
from toolmem.store.records import PutRecord
from toolmem.store.sqlite import documents
from toolmem.store.sqlite.lookup import one, require_workspace_id, workspace_id
from toolmem.stored import RawRecord

if TYPE_CHECKING:
    from toolmem.protocols import EmbedderIdentity

# A damaged value may be of any type.
_SELECT = "SELECT namespace, key, CAST(value AS TEXT), version, time_created, time_modified FROM records"


def put(db: apsw.Connection, record: PutRecord, embedder: EmbedderIdentity | None) -> RawRecord:
    """Runs inside a write transaction."""
    held = get(db, record.workspace, record.namespace, record.key)
    new = record.decide(held)
    number = require_workspace_id(db, record.workspace)
    place = (number, record.namespace, record.key)
    if held is None:
        db.execute(
            "INSERT INTO records (workspace, namespace, key, version, time_created, time_modified, value) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*place, new.version, new.born, new.modified, new.text),
        )
    else:
        db.execute(
            "UPDATE records SET value = ?, version = ?, time_modified = ? "
            "WHERE workspace = ? AND namespace = ? AND key = ?",
            (new.text, new.version, new.modified, *place),
        )
    if record.document is None:
        documents.remove(db, number, documents.RECORDS, record.namespace, record.key)
    else:
        scope = (documents.RECORDS, record.namespace, record.key)
        documents.write(db, number, *scope, record.document, record.now, embedder)
    return new


def get(db: apsw.Connection, workspace: str, namespace: str, key: str) -> RawRecord | None:
    number = workspace_id(db, workspace)
    row = one(db, f"{_SELECT} WHERE workspace = ? AND namespace = ? AND key = ?", number, namespace, key)
    return None if row is None else RawRecord._make(row)


def list_raw(
    db: apsw.Connection, workspace: str, namespaces: Sequence[str] | None, prefix: str, key_prefix: str
) -> list[RawRecord]:
    """`namespaces` None: all whose name begins with `prefix`. Walks the index of keys, one range per namespace."""
    number = workspace_id(db, workspace)
    if number is None or not storable(prefix) or not storable(key_prefix):
        return []
    conditions = ["workspace = ?"]
    values: list[Any] = [number]
    if namespaces is None:
        _begins_with("namespace", prefix, conditions, values)
    else:
        conditions.append("namespace IN (SELECT value FROM json_each(?))")
        values.append(json.dumps([name for name in namespaces if storable(name)]))
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
    if number is None or not storable(namespace) or not storable(key):
        return False
    db.execute("DELETE FROM records WHERE workspace = ? AND namespace = ? AND key = ?", (number, namespace, key))
    if not db.changes():
        return False
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
