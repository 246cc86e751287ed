"""The migrations that lead to the tables of the embedded store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import apsw

from toolmem.store.codec import CALL_FAULTS, conversation_digest

APPLICATION_ID = 0x746D656D  # "tmem", in the file's header: tells a toolmem store from any other SQLite file

# Entry n leads from user_version n to n + 1.
MIGRATIONS: tuple[str, ...] = tuple(
    Path(__file__).with_name(f"schema_{version}.sql").read_text(encoding="utf-8") for version in (1, 2)
)
SCHEMA_VERSION = len(MIGRATIONS)


def migrate(db: apsw.Connection, version: int) -> None:
    """Bring the file from `version` to the newest; the caller holds the write transaction."""
    for number, step in enumerate(MIGRATIONS[version:], version + 1):
        if number == 2:
            _note_arrivals(db)
        db.execute(step)
    db.execute("DROP TABLE IF EXISTS temp.arrivals")
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _note_arrivals(db: apsw.Connection) -> None:
    """When each kept call was made and in which conversation, as its payload of schema version 1 tells."""
    db.execute("CREATE TEMP TABLE arrivals (key INTEGER PRIMARY KEY, workspace INTEGER, created INTEGER, conversation)")
    db.executemany("INSERT INTO temp.arrivals VALUES (?, ?, ?, ?)", _arrivals(db))


def _arrivals(db: apsw.Connection) -> Iterator[tuple[int, int, int, bytes | None]]:
    of_tools: dict[Any, Any] = dict(db.execute("SELECT id, workspace FROM tools"))
    rows: Iterable[Any] = db.execute("SELECT key, CAST(payload AS BLOB) FROM calls")
    for key, payload in rows:
        if (workspace := of_tools.get(key >> 32)) is not None:
            yield key, workspace, *_told(payload)


def _told(payload: bytes) -> tuple[int, bytes | None]:
    try:
        body = json.loads(payload)
        return int(body["create_time"]), conversation_digest(body.get("metadata") or {})
    except (*CALL_FAULTS, AttributeError):  # damaged: kept as it is, and logged when it is read
        return 0, None
