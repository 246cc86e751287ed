"""The file of hooks' receipts."""

from __future__ import annotations

import json
import time
from typing import Any

import apsw

from toolmem.store.state_file import StateFile

LOOK_EVERY = 256  # receipts between two looks at how many there are
_LONGEST = 300  # characters of a name or key
_MOST = {"receipts": 50_000, "sessions": 2_000, "demands": 5_000, "agents": 2_000}  # rows; the oldest go
_SCHEMA = """
CREATE TABLE IF NOT EXISTS receipts (
  number INTEGER PRIMARY KEY, session TEXT NOT NULL, event TEXT NOT NULL, key TEXT NOT NULL, host TEXT NOT NULL,
  began REAL NOT NULL, ended REAL, action TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '',
  store TEXT NOT NULL DEFAULT '', note TEXT);
CREATE UNIQUE INDEX IF NOT EXISTS receipts_once ON receipts (session, event, key);
CREATE TABLE IF NOT EXISTS sessions (
  number INTEGER PRIMARY KEY, session TEXT NOT NULL UNIQUE, host TEXT NOT NULL, cwd TEXT NOT NULL,
  project TEXT NOT NULL, transcript TEXT NOT NULL, began REAL NOT NULL, ended REAL, turns INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS demands (
  number INTEGER PRIMARY KEY, session TEXT NOT NULL, turn INTEGER NOT NULL, tool TEXT NOT NULL, rule TEXT NOT NULL,
  effect TEXT NOT NULL, condition TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS demands_of ON demands (session);
CREATE TABLE IF NOT EXISTS installs (
  host TEXT NOT NULL, scope TEXT NOT NULL, place TEXT NOT NULL, command TEXT NOT NULL, files TEXT NOT NULL,
  at REAL NOT NULL, PRIMARY KEY (host, scope, place));
CREATE TABLE IF NOT EXISTS agents (
  number INTEGER PRIMARY KEY, pid INTEGER NOT NULL, process TEXT NOT NULL, session TEXT NOT NULL,
  UNIQUE (pid, process, session));
CREATE INDEX IF NOT EXISTS agents_of ON agents (session);
"""


class ReceiptsFile(StateFile):
    """As `StateFile`."""

    file = "hooks.db"
    application = 0x746D686B
    schema = _SCHEMA


def drop_oldest(db: apsw.Connection) -> None:
    """Keep what is within the limits."""
    for table, most in _MOST.items():
        db.execute(f"DELETE FROM {table} WHERE number <= (SELECT max(number) FROM {table}) - ?", (most,))


def insert_receipt(db: apsw.Connection, host: str, session: str, event: str, key: str, store: str) -> bool:
    """Was there none yet?"""
    db.execute(
        "INSERT OR IGNORE INTO receipts (session, event, key, host, store, began) VALUES (?, ?, ?, ?, ?, ?)",
        (bounded(session), event, bounded(key), bounded(host), bounded(store), time.time()),
    )
    is_new = db.changes() > 0
    if is_new and db.last_insert_rowid() % LOOK_EVERY == 0:
        drop_oldest(db)
    return is_new


def put_away_others(db: apsw.Connection, session: str, event: str, key: str, before: float) -> None:
    """Receipts of an event that bears no name of its own, where what is told of now is another one that looks alike.

    It is another one where they are of `before` (seconds since 1970), and where a prompt or a turn's end is told of and
    anything else was since: no agent goes on before all its hooks have heard these.
    """
    # The keys of one event in several stores begin alike.
    db.execute(
        "UPDATE receipts SET key = key || ' ' || number WHERE session = ?1 AND event = ?2 AND key = ?3 AND (began < ?4 "
        "OR (event IN ('prompt', 'turn_end') AND EXISTS (SELECT 1 FROM receipts AS since WHERE since.session = ?1 "
        "AND since.number > receipts.number AND since.event IN ('prompt', 'turn_end', 'before_call', 'after_call') "
        "AND (since.event <> ?2 OR substr(since.key, 1, 64) <> substr(receipts.key, 1, 64)))))",
        (session, event, key, before),
    )


def bounded(text: str) -> str:
    """A name of any length, and of any characters, in few; two that differ stay different."""
    if len(text) <= _LONGEST and text.isprintable():
        return text
    from hashlib import sha256

    whole = text.encode("utf-8", "surrogatepass")
    return f"{whole[:_LONGEST].decode('utf-8', 'replace')} {sha256(whole).hexdigest()}"


def read_json(text: str | None) -> Any:
    """None for what cannot be read."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
