"""A small SQLite file of the user's state folder: for this user alone, put aside where it is damaged, never waited for
long. Whatever is wrong with it, the work that asks it goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import apsw

T = TypeVar("T")

BUSY_TIMEOUT = 0.25  # seconds: the agent waits


class StateFile:
    """Opened when it is first needed; who asks is answered `otherwise` where it cannot be."""

    file: ClassVar[str]  # its name in the state folder
    version: ClassVar[int] = 1
    application: ClassVar[int]
    schema: ClassVar[str]  # makes the tables

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
        return self._looked(lambda db: db.execute(sql, values).fetchall(), nothing)

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

    def _looked(self, work: Callable[[apsw.Connection], T], otherwise: T) -> T:
        """As `_asked`, of who only looks: a file that is not there is not made for it."""
        with suppress(OSError):
            if self._db is None and not self.path.exists():
                return otherwise
        return self._asked(work, otherwise)

    def _opened(self) -> apsw.Connection:
        if self._db is None:
            path = self.path
            _make_file(path)
            db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
            try:
                db.setbusytimeout(self._busy)
                self._prepare(db)
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

            self._path = state_folder() / self.file
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

    def _prepare(self, db: apsw.Connection) -> None:
        """Raises _Strange, or ValueError for a file of another version, which is left as it is."""
        from toolmem.store.sqlite.connection import switch_to_wal

        version = self._version(db)
        db.execute("PRAGMA synchronous = NORMAL; PRAGMA trusted_schema = OFF")
        if version == self.version:
            return
        switch_to_wal(db, BUSY_TIMEOUT)
        db.execute("BEGIN IMMEDIATE")
        try:
            if not self._version(db):  # nobody was quicker
                db.execute(self.schema)
                db.execute(f"PRAGMA application_id = {self.application}; PRAGMA user_version = {self.version}")
            db.execute("COMMIT")
        except BaseException:
            with suppress(apsw.Error):
                db.execute("ROLLBACK")
            raise

    def _version(self, db: apsw.Connection) -> int:
        version, application = int(db.pragma("user_version")), int(db.pragma("application_id"))
        if application not in (0, self.application) or (application == 0 and version):
            raise _Strange("it is another program's")
        if version not in (0, self.version):
            raise ValueError(f"it has schema version {version}, and this toolmem reads {self.version}")
        return version


class _Strange(Exception):
    """A SQLite file that is not ours."""


def _make_file(path: Path) -> None:
    if not path.exists():
        from toolmem.config.own_folder import make_folder, write_new

        make_folder(path.parent)
        with suppress(FileExistsError):
            write_new(path)
