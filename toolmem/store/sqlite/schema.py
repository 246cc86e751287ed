"""The tables of the embedded store, and the marks of its file."""

from __future__ import annotations

from pathlib import Path

import apsw

APPLICATION_ID = 0x746D656D  # "tmem", in the file's header: tells a toolmem store from any other SQLite file
SCHEMA_VERSION = 1


def make_tables(db: apsw.Connection) -> None:
    """In a new file; the caller holds the write transaction."""
    db.execute(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
