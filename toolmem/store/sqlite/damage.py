"""A store file whose bytes are not what was written: how that shows, and what its user can do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING

import apsw

from toolmem.errors import StoreDamaged
from toolmem.store.sqlite.schema import APPLICATION_ID

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"SQLite format 3\x00"
_MARK_AT = 68  # where in a file's header SQLite keeps the application's id
_TABLES = frozenset(("workspaces", "tools", "calls", "records"))  # of every store
# What reading a row raises whose values are not what was written: no UTF-8, no JSON, another type, out of range.
_FAULTS = (ValueError, TypeError, LookupError, OverflowError, AttributeError, RecursionError)


def damaged(path: str | Path, why: object) -> StoreDamaged:
    """The error that says so. `why`: in a few words."""
    place = quote(str(path))
    return StoreDamaged(
        f"the store {path} is damaged ({why}); nothing was changed. Put back a copy of it, "
        f"with no -wal and -shm beside it, or save what can be read: sqlite3 {place} .recover | sqlite3 saved.db",
        path=str(path),
    )


def bears_our_mark(header: bytes) -> bool:
    """Are these the first bytes of a store, whatever became of the others?"""
    return header[_MARK_AT : _MARK_AT + 4] == APPLICATION_ID.to_bytes(4, "big")


def holds_our_tables(db: apsw.Connection) -> bool:
    return {str(name) for (name,) in db.execute("SELECT name FROM sqlite_schema")} >= _TABLES


@contextmanager
def rows_checked(path: str) -> Iterator[None]:
    """What a row cannot be read for is damage: what comes from a caller was checked before the store was asked."""
    try:
        yield
    except _FAULTS as error:
        raise damaged(path, f"{type(error).__name__}: {error}"[:200]) from error
