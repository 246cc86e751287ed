"""A store file that is open: its transactions, whether it is in its place still, and one that is not made yet."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

import apsw

from toolmem.errors import StoreClosed, StoreDamaged, StoreUnavailable
from toolmem.store.sqlite.connection import explained, is_unmade, open_unmade, read_transaction, write_transaction
from toolmem.store.sqlite.damage import rows_checked

T = TypeVar("T")

_BESIDE = ("-wal", "-shm")  # as long as a connection is open, these two stay the same files as well


class OpenFile:
    """A connection, in the hands of one thread at a time: its transactions, each with SQLite's errors explained.

    A file that is not there, or is empty, is read as an empty store, and made by the first write; one that somebody
    else makes meanwhile is the store from then on. `opened`: opens the file, and makes it. `taken`: what is done with
    the connection to it. `accepted`: raises for a store that came into its place meanwhile and is not believed.

    A connection goes on with the file that it opened, wherever that was moved, and also when it was deleted: each write
    would be acknowledged and lost. So it is asked of each read and write whether the file is still in its place.
    """

    def __init__(
        self,
        opened: Callable[[], apsw.Connection],
        path: str,
        busy_timeout: float,
        *,
        taken: Callable[[apsw.Connection], None] | None = None,
        accepted: Callable[[apsw.Connection], None] | None = None,
    ) -> None:
        self.db: apsw.Connection | None = None
        self._open = opened
        self._path = path
        self._busy_timeout = busy_timeout
        self._taken, self._accepted = taken, accepted
        self._moved = array("i", [0])
        self._moved_at = self._moved.buffer_info()[0]
        self.is_made = not is_unmade(path)
        self.is_expected = False  # another connection made it
        self.damage: StoreDamaged | None = None  # found by a read or a write
        self._take(opened() if self.is_made else open_unmade(path))

    def _take(self, db: apsw.Connection) -> None:
        self.db = db
        self._name = db.filename  # "": in memory
        self._beside = _files_beside(self._name)
        if self.is_made and self._taken is not None:
            self._taken(db)

    def close(self) -> None:
        db, self.db = self.db, None
        self._beside = _Beside()
        if db is not None:
            db.close()

    def read(self, job: Callable[[apsw.Connection], T]) -> T:
        """`job` sees one moment of the store."""
        with self._explained():
            db = self._opened(makes=False)
            self._require_in_place(db)
            with read_transaction(db), rows_checked(self._path):
                return job(db)

    def write(self, job: Callable[[apsw.Connection], T]) -> T:
        """One transaction."""
        with self._explained():
            db = self._opened(makes=True)
            with write_transaction(db):
                self._require_in_place(db)
                with rows_checked(self._path):
                    result = job(db)
            self._require_in_place(db)  # nothing is acknowledged that was taken away under the commit
        return result

    def make(self) -> None:
        """The file, where it is not there."""
        with self._explained():
            self._opened(makes=True)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            with explained(self._path, self._busy_timeout):
                yield
        except StoreDamaged as error:
            self.damage = error
            raise

    def _opened(self, *, makes: bool) -> apsw.Connection:
        if self.db is None:
            raise StoreClosed(f"the store {self._path} is closed")
        if not self.is_made and (makes or self.is_expected or not is_unmade(self._path)):
            self._open_made(self.db)
        return self.db

    def _open_made(self, empty: apsw.Connection) -> None:
        made = self._open()
        try:
            if self._accepted is not None:
                self._accepted(made)
        except BaseException:
            made.close()
            raise
        self.is_made = True
        self._take(made)
        empty.close()

    def in_place(self, db: apsw.Connection) -> bool:
        if not self._name:
            return True
        db.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, self._moved_at)
        return not self._moved[0] and all(_inode(name) == inode for name, inode in self._beside.items())

    def _require_in_place(self, db: apsw.Connection) -> None:
        if not self.in_place(db):
            raise moved(self._path)


# By file: what lay beside it when this process opened it first. A connection that is opened later, while another is
# open, takes over what that one saw: it would make what somebody has taken away anew, and not see that it is gone.
_seen: WeakValueDictionary[tuple[str, int], _Beside] = WeakValueDictionary()


class _Beside(dict[str, int]):
    """Inodes by name."""


def _files_beside(name: str) -> _Beside:
    if not name:
        return _Beside()
    now = {name + side: _inode(name + side) for side in _BESIDE}
    found = _Beside({each: inode for each, inode in now.items() if inode})
    return _seen.setdefault((name, _inode(name)), found)


def moved(path: str) -> StoreUnavailable:
    """Of a file that is not in its place any more."""
    return StoreUnavailable(
        f"the store {path} was moved, replaced or deleted while it was open, and takes nothing more: put "
        f"it back together with {path}-wal, which holds the newest writes, or start again"
    )


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0
