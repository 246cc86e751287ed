"""Which store files this user's toolmem made, or the user trusts: a list in the user's state folder.

A store is known by its resolved path, the random id inside it, and its inode: a file that was cloned, unpacked or
copied into the place of a known one is another store. Each known store is a small file of its own, replaced in one
step, so that any number of processes add to the list without waiting for each other.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolmem.config.own_folder import make_folder, state_folder, write_new
from toolmem.late import late_logger

if TYPE_CHECKING:
    import apsw

logger = late_logger("toolmem.store")

_ID = "store_id"
_made_here: set[tuple[str, str]] = set()  # by this process, where the list cannot be written


def give_id(db: apsw.Connection) -> str:
    """The store's id, made where there is none; the caller holds the write transaction."""
    db.execute("INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)", (_ID, os.urandom(16).hex()))
    return read_id(db)


def read_id(db: apsw.Connection) -> str:
    """ "" where the store holds none."""
    row = db.execute("SELECT value FROM meta WHERE name = ?", (_ID,)).fetchone()
    return str(row[0]) if row else ""


def id_at(path: str) -> str:
    """The id of the store in this file; "" where there is none, or it cannot be read."""
    import apsw

    try:
        db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOFOLLOW)
        try:
            return read_id(db)
        finally:
            db.close()
    except (apsw.Error, UnicodeDecodeError):
        return ""


def remember_made(path: str, store_id: str) -> None:
    """As `remember`, for a store that was made just now; without a list to write, it is known to this process."""
    try:
        remember(path, store_id)
    except OSError as error:
        _made_here.add((os.path.realpath(path), store_id))
        logger.debug("the store %s cannot be noted in the list of known stores: %s", path, error)


def remember(path: str, store_id: str) -> None:
    """Note a store as this user's own. Raises OSError where the list cannot be written."""
    entry = _entry(path)
    make_folder(entry.parent)
    unfinished = entry.with_name(f"{entry.name}.{os.urandom(4).hex()}.part")
    try:
        write_new(unfinished, _description(path, store_id))
        unfinished.replace(entry)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def is_known(path: str, store_id: str) -> bool:
    """Whether this user made or trusts the store at the path."""
    if not store_id:
        return False
    if (os.path.realpath(path), store_id) in _made_here:
        return True
    try:
        return _entry(path).read_bytes() == _description(path, store_id)
    except OSError:
        return False


def is_listed(path: str) -> bool:
    """Did this user make or trust a store at the path, whatever is there now? For one that cannot be asked its id."""
    real = os.path.realpath(path)
    return any(at == real for at, _ in _made_here) or _entry(path).is_file()


def can_be_asked(path: str) -> bool:
    """Can the list be read? One that is not there is empty."""
    try:
        os.stat(_entry(path))
    except PermissionError:
        return False
    except OSError:
        pass
    return True


def _entry(path: str) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]
    return state_folder() / "known-stores" / f"{name}.json"


def _description(path: str, store_id: str) -> bytes:
    real = os.path.realpath(path)
    shown = os.fsencode(real).decode("utf-8", "backslashreplace")
    return json.dumps({"path": shown, "id": store_id, "inode": os.stat(real).st_ino}).encode()
