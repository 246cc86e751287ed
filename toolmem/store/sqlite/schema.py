"""The migrations that lead to the tables of the embedded store."""

from __future__ import annotations

from pathlib import Path

import apsw

APPLICATION_ID = 0x746D656D  # "tmem", in the file's header: tells a toolmem store from any other SQLite file

# Entry n leads from user_version n to n + 1.
MIGRATIONS: tuple[str, ...] = (Path(__file__).with_name("schema_1.sql").read_text(encoding="utf-8"),)
SCHEMA_VERSION = len(MIGRATIONS)


def migrate(db: apsw.Connection, version: int) -> None:
    """Bring the file from `version` to the newest; the caller holds the write transaction."""
    for step in MIGRATIONS[version:]:
        db.execute(step)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
