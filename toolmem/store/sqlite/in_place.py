"""Is the file that a connection has open still the one at its path?

A connection goes on with the file that it opened, wherever that was moved, and also when it was deleted: each write
would be acknowledged and lost.
"""

from __future__ import annotations

import ctypes
import os

import apsw

from toolmem.errors import StoreUnavailable

_BESIDE = ("-wal", "-shm")  # as long as a connection is open, these two stay the same files as well


class InPlace:
    """Watches the files of one connection."""

    def __init__(self, db: apsw.Connection) -> None:
        self._path = db.filename  # "": in memory
        self._beside = {side: inode for side in _BESIDE if (inode := _inode(self._path + side))} if self._path else {}

    def holds(self, db: apsw.Connection) -> bool:
        if not self._path:
            return True
        moved = ctypes.c_int(0)
        db.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
        return not moved.value and all(_inode(self._path + side) == inode for side, inode in self._beside.items())

    def require(self, db: apsw.Connection) -> None:
        """Raises StoreUnavailable."""
        if not self.holds(db):
            raise StoreUnavailable(
                f"the store {self._path} was moved, replaced or deleted while it was open, and takes nothing more: put "
                f"it back together with {self._path}-wal, which holds the newest writes, or start again"
            )


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0
