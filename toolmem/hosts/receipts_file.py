"""The file of hooks' receipts: made for this user alone, put aside where it is damaged, never waited for long."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw

T = TypeVar("T")

FILE = "hooks.db"
BUSY_TIMEOUT = 0.25  # seconds: the agent waits
_VERSION = 1
_APPLICATION = 0x746D686B
_MOST = {"receipts": 50_000, "sessions": 2_000, "demands": 5_000}  # rows; the oldest go
_SCHEMA = """
CREATE TABLE receipts (
  number INTEGER PRIMARY KEY, session TEXT NOT NULL, event TEXT NOT NULL, key TEXT NOT NULL, host TEXT NOT NULL,
  began REAL NOT NULL, ended REAL, action TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '',
  store TEXT NOT NULL DEFAULT '', note TEXT);
CREATE UNIQUE INDEX receipts_once ON receipts (session, event, key);
CREATE TABLE sessions (
  number INTEGER PRIMARY KEY, session TEXT NOT NULL UNIQUE, host TEXT NOT NULL, cwd TEXT NOT NULL,
  project TEXT NOT NULL, transcript TEXT NOT NULL, began REAL NOT NULL, ended REAL, turns INTEGER NOT NULL DEFAULT 0);
CREATE TABLE demands (
  number INTEGER PRIMARY KEY, session TEXT NOT NULL, turn INTEGER NOT NULL, tool TEXT NOT NULL, rule TEXT NOT NULL,
  effect TEXT NOT NULL, condition TEXT NOT NULL);
CREATE INDEX demands_of ON demands (session);
CREATE TABLE installs (
  host TEXT NOT NULL, scope TEXT NOT NULL, place TEXT NOT NULL, command TEXT NOT NULL, files TEXT NOT NULL,
  at REAL NOT NULL, PRIMARY KEY (host, scope, place));
"""


class ReceiptsFile:
    """Opened when it is first needed; who asks is answered `otherwise` where it cannot be."""

    def __init__(self, path: str | Path | None = None, *, busy_timeout: float = BUSY_TIMEOUT) -> None:
        self._path = path
        self._busy = round(busy_timeout * 1000)
        self._db: apsw.Connection | None = None
        self.trouble = ""  # the last that the file gave

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        nothing: list[tuple[Any, ...]] = []
        return self._asked(lambda db: db.execute(sql, values).fetchall(), nothing)

    def _do(self, sql: str, *values: Any) -> None:
        def work(db: apsw.Connection) -> None:
            db.execute(sql, values)

        self._write(work, None)

    def _write(self, work: Callable[[apsw.Connection], T], otherwise: T) -> T:
        def whole(db: apsw.Connection) -> T:
            db.execute("BEGIN IMMEDIATE")
            try:
                done = work(db)
                db.execute("COMMIT")
            except BaseException:
                with suppress(apsw.Error):
                    db.execute("ROLLBACK")
                raise
            return done

        return self._asked(whole, otherwise)

    def _asked(self, work: Callable[[apsw.Connection], T], otherwise: T) -> T:
        """What the file answers. One that is damaged is put aside, and a new one is begun, once."""
        for is_last in (False, True):
            try:
                return work(self._opened())
            except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError, _Strange) as error:
                self.trouble = f"{type(error).__name__}: {error}"
                self.close()
                if is_last or not self._put_aside():
                    break
            except (apsw.Error, OSError, ValueError) as error:
                self.trouble = f"{type(error).__name__}: {error}"
                break
        return otherwise

    def _opened(self) -> apsw.Connection:
        if self._db is None:
            path = self.path
            _make_file(path)
            db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
            try:
                db.setbusytimeout(self._busy)
                _prepare(db)
            except BaseException:
                db.close()
                raise
            self._db = db
        return self._db

    @property
    def path(self) -> Path:
        """Raises OSError where the user has no home folder."""
        if self._path is None:
            from toolmem.config.own_folder import state_folder

            self._path = state_folder() / FILE
        return Path(os.path.realpath(os.path.dirname(self._path))) / os.path.basename(self._path)

    def _put_aside(self) -> bool:
        try:
            path = self.path
            os.replace(path, f"{path}.damaged")
            for beside in ("-wal", "-shm"):
                with suppress(FileNotFoundError):
                    os.unlink(f"{path}{beside}")
        except OSError:
            return False
        return True


class _Strange(Exception):
    """A SQLite file that is not ours."""


def _make_file(path: Path) -> None:
    if not path.exists():
        from toolmem.config.own_folder import make_folder, write_new

        make_folder(path.parent)
        with suppress(FileExistsError):
            write_new(path)


def _prepare(db: apsw.Connection) -> None:
    """Raises _Strange, or ValueError for a newer file, which is left as it is."""
    from toolmem.store.sqlite.connection import switch_to_wal

    version = _version(db)
    db.execute("PRAGMA synchronous = NORMAL; PRAGMA trusted_schema = OFF")
    if version == _VERSION:
        return
    switch_to_wal(db, BUSY_TIMEOUT)
    db.execute("BEGIN IMMEDIATE")
    try:
        if _version(db) == 0:  # nobody was quicker
            db.execute(_SCHEMA)
            db.execute(f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {_VERSION}")
        db.execute("COMMIT")
    except BaseException:
        with suppress(apsw.Error):
            db.execute("ROLLBACK")
        raise


def _version(db: apsw.Connection) -> int:
    version, application = int(db.pragma("user_version")), int(db.pragma("application_id"))
    if application not in (0, _APPLICATION) or (application == 0 and version):
        raise _Strange("it is another program's")
    if version > _VERSION:
        raise ValueError(f"it has schema version {version}, and this toolmem reads {_VERSION}")
    return version


def drop_oldest(db: apsw.Connection) -> None:
    """Keep what is within the limits."""
    for table, most in _MOST.items():
        db.execute(f"DELETE FROM {table} WHERE number <= (SELECT max(number) FROM {table}) - ?", (most,))
