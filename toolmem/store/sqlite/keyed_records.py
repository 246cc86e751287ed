"""Keyed records: JSON objects under (workspace, namespace, key), each with a version."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import apsw

from toolmem.errors import Conflict, RequestError, StoreError
from toolmem.store import documents
from toolmem.store.codec import dump_json, micros, moment, require_storable, storable
from toolmem.store.sqlite.lookup import one, require_workspace_id, workspace_id
from toolmem.stored import Document, RawRecord, Record

if TYPE_CHECKING:
    from toolmem.protocols import EmbedderIdentity

logger = logging.getLogger("toolmem.store")

_COLUMNS = "namespace, key, value, version, time_created, time_modified"


def encode_value(value: Mapping[str, Any]) -> str:
    """Raises RequestError where the value is no JSON object."""
    if not isinstance(value, Mapping):
        raise RequestError(f"value: expected a JSON object, got {type(value).__name__}", field="value")
    try:
        return dump_json(dict(value))
    except (ValueError, TypeError, RecursionError) as error:
        raise RequestError(f"value: cannot be kept as JSON: {error}", field="value") from error


def put(
    db: apsw.Connection,
    now: datetime,
    workspace: str,
    namespace: str,
    key: str,
    value: str,
    document: Document | None,
    expected_version: int | None,
    embedder: EmbedderIdentity | None,
) -> Record:
    """Runs inside a write transaction; `value` comes from `encode_value`."""
    require_storable(namespace, "namespace")
    require_storable(key, "key")
    number = require_workspace_id(db, workspace)
    time = micros(now)
    row = one(
        db,
        "SELECT id, version, time_created FROM records WHERE workspace = ? AND namespace = ? AND key = ?",
        *(number, namespace, key),
    )
    version = 0 if row is None else row[1]
    if expected_version is not None and expected_version != version:
        raise Conflict(
            f"workspace {workspace!r}: record {key!r} of {namespace!r} is at version {version}, "
            f"not at {expected_version}; read again and decide again"
        )
    if row is None:
        db.execute(
            "INSERT INTO records (workspace, namespace, key, version, time_created, time_modified, value) "
            "VALUES (?, ?, ?, 1, ?, ?, ?)",
            (number, namespace, key, time, time, value),
        )
    else:
        db.execute(
            "UPDATE records SET value = ?, version = ?, time_modified = ? WHERE id = ?",
            (value, version + 1, time, row[0]),
        )
    if document is None:
        documents.remove(db, number, documents.RECORDS, namespace, key)
    else:
        documents.write(db, number, documents.RECORDS, namespace, key, document, time, embedder)
    created = time if row is None else row[2]
    return Record(namespace, key, json.loads(value), version + 1, moment(created), moment(time))


def get(db: apsw.Connection, workspace: str, namespace: str, key: str) -> Record | None:
    """Raises StoreError where the row is there but damaged."""
    number = workspace_id(db, workspace)
    if number is None or not storable(namespace) or not storable(key):
        return None
    row = one(
        db,
        f"SELECT {_COLUMNS} FROM records WHERE workspace = ? AND namespace = ? AND key = ?",
        *(number, namespace, key),
    )
    if row is None:
        return None
    record = _record(row)
    if record is None:
        raise StoreError(f"workspace {workspace!r}: record {key!r} of {namespace!r} is damaged; put or delete it")
    return record


def list_records(db: apsw.Connection, workspace: str, namespace: str) -> list[Record]:
    number = workspace_id(db, workspace)
    if number is None or not storable(namespace):
        return []
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM records WHERE workspace = ? AND namespace = ? ORDER BY key", (number, namespace)
    )
    found = []
    for row in rows:
        record = _record(row)
        if record is None:
            logger.error("record %r of %r is damaged and left out", row[1], namespace)
        else:
            found.append(record)
    return found


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
    # A damaged value may be of any type.
    sql = (
        "SELECT namespace, key, CAST(value AS TEXT), version, time_created FROM records "
        f"WHERE {' AND '.join(conditions)} ORDER BY namespace, key"
    )
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


def _record(row: Any) -> Record | None:
    try:
        value = json.loads(row[2])
    except (ValueError, TypeError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return Record(row[0], row[1], value, row[3], moment(row[4]), moment(row[5]))
