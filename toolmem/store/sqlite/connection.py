"""Opening a store file: which paths are refused and why, the pragmas, the tables, transactions."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import apsw

from toolmem.config.own_folder import OWN, make_folder, refuse_links, write_new
from toolmem.errors import StoreError, StoreUnavailable, StoreVersionError
from toolmem.store.known_stores import give_id, remember_made
from toolmem.store.sqlite.damage import MAGIC, bears_our_mark, damaged, holds_our_tables
from toolmem.store.sqlite.schema import APPLICATION_ID, SCHEMA_VERSION, make_tables

MEMORY = ":memory:"
# A call is a row of some 700 bytes that enters in the middle of a B-tree: when a page is full, up to four of its
# neighbours are written with it. Measured at 1000 tools, median per call added: 37 kB with pages of 4096, 19 kB so.
PAGE_BYTES = 2048
CACHE_KIB = 16_384  # page cache of each connection
WAL_LIMIT_BYTES = 64 * 1024 * 1024  # a log that a huge transaction blew up is cut back to this

Synchronous = Literal["FULL", "NORMAL"]
_HIGHEST_VERSION = 1000  # of a schema, in any toolmem to come


def location_of(path: str | Path) -> str:
    """The file's absolute path, or ":memory:"."""
    return MEMORY if str(path) == MEMORY else str(Path(path).expanduser().absolute())


def open_writer(path: str, synchronous: Synchronous, busy_timeout: float) -> apsw.Connection:
    """Open or create the store at `path`.

    Raises StoreUnavailable (the path cannot hold a store) or StoreVersionError (written by another version of toolmem).
    """
    if path != MEMORY:
        _check_path(Path(path))
        _make_ready(Path(path))
    try:
        db = _connect(path, apsw.SQLITE_OPEN_READWRITE)
    except (apsw.Error, ValueError) as error:  # ValueError: a null character in the path
        raise StoreUnavailable(f"cannot open the store {path!r}: {error}") from error
    try:
        _prepare(db, path, synchronous, busy_timeout)
    except BaseException:
        db.close()
        raise
    return db


def _prepare(db: apsw.Connection, path: str, synchronous: Synchronous, busy_timeout: float) -> None:
    db.setbusytimeout(round(busy_timeout * 1000))
    with explained(path, busy_timeout):
        if path != MEMORY and db.readonly("main"):
            raise StoreUnavailable(
                f"cannot open the store {path}: it is not writable. `toolmem store info --store sqlite:{path}` and "
                f"`toolmem store copy --from sqlite:{path}` can read it"
            )
        with read_transaction(db):  # another process may be making the same store
            is_new = _is_new(db, path)
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # of a new file; an old one keeps its own
        switch_to_wal(db, busy_timeout)
        _set_pragmas(db)
        db.execute(f"PRAGMA synchronous = {synchronous}")
        db.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
        if is_new:
            with write_transaction(db):
                if not _is_new(db, path):  # another process was quicker
                    return
                make_tables(db)
                if path != MEMORY:  # noted before anybody else can see it
                    remember_made(path, give_id(db))


def patiently(opened: Callable[[], apsw.Connection]) -> apsw.Connection:
    """`opened`, tried again after an I/O error: processes that make one file at once can meet some that soon pass."""
    for pause in (0.02, 0.05, 0.1, 0.2):  # seconds
        try:
            return opened()
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, apsw.IOError):
                raise
        time.sleep(pause)
    return opened()


def open_unmade(path: str) -> apsw.Connection:
    """What stands for a store that is not there yet: empty, in memory. Raises StoreUnavailable where none can be made.

    Nothing is made by it: to look at a store is no reason to have one.
    """
    _check_path(Path(path))
    _require_makeable(Path(path))
    if Path(path).parent.name == OWN:
        _refuse_foreign_logs(Path(path))
    db = apsw.Connection(MEMORY)
    _set_pragmas(db)
    with write_transaction(db):
        make_tables(db)
    return db


def _require_makeable(path: Path) -> None:
    try:
        above = next(each for each in path.parents if os.path.lexists(each))
        if not above.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(above))
        if not os.access(above, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(above))
    except (OSError, ValueError) as error:
        raise StoreUnavailable(f"cannot open the store {path}: {error}") from error


def is_unmade(path: str) -> bool:
    """Is there nothing at this path yet that a store could be read from?"""
    try:
        return path != MEMORY and stat.S_ISREG((state := os.lstat(path)).st_mode) and not state.st_size
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):  # whoever opens it is told why
        return False


def open_reader(path: str, busy_timeout: float) -> apsw.Connection:
    """A second connection to a store that `open_writer` has opened; it cannot write."""
    with explained(path, busy_timeout):
        db = _connect(path, apsw.SQLITE_OPEN_READWRITE)
        db.setbusytimeout(round(busy_timeout * 1000))
        _set_pragmas(db)
        db.execute("PRAGMA query_only = ON")
        return db


def _connect(path: str, flags: int, query: str = "") -> apsw.Connection:
    """SQLite refuses a link at each part of the path, so the folder's own way there is resolved first."""
    if path == MEMORY:
        return apsw.Connection(path)
    whole = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    given = f"file:{quote(whole)}?{query}" if query else whole
    return apsw.Connection(given, flags=flags | apsw.SQLITE_OPEN_NOFOLLOW | (apsw.SQLITE_OPEN_URI if query else 0))


def can_be_written(path: str) -> bool:
    """False for a file that is there and lies on a read-only medium, or that this user may only read."""
    return (
        path == MEMORY
        or not Path(path).is_file()
        or (os.access(path, os.W_OK) and os.access(Path(path).parent, os.W_OK))
    )


def open_read_only(path: str, busy_timeout: float) -> apsw.Connection:
    """A store that cannot be written. Raises StoreUnavailable or StoreVersionError."""
    _check_path(Path(path))
    with explained(path, busy_timeout):
        try:
            db = _connect_read_only(path, "mode=ro", busy_timeout)
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            # Nobody has it open, and SQLite may not make the two files beside it through which processes agree. On a
            # read-only medium nobody can write: there is nothing to agree about.
            if not _on_read_only_medium(path):
                raise StoreUnavailable(
                    f"cannot read the store {path}: its folder is not writable; {_COPY_IT}"
                ) from None
            if os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal"):
                raise StoreUnavailable(
                    f"cannot read the store {path}: its last writes are in {path}-wal still; {_COPY_IT}"
                ) from None
            db = _connect_read_only(path, "immutable=1", busy_timeout)
        _set_pragmas(db)
        return db


def _on_read_only_medium(path: str) -> bool:
    return hasattr(os, "statvfs") and bool(os.statvfs(path).f_flag & os.ST_RDONLY)


_COPY_IT = "copy it, with the files beside it, to a writable folder and read it there"


def _connect_read_only(path: str, how: str, busy_timeout: float) -> apsw.Connection:
    db = _connect(path, apsw.SQLITE_OPEN_READONLY, how)
    try:
        db.setbusytimeout(round(busy_timeout * 1000))
        with read_transaction(db):
            if _is_new(db, path):
                raise StoreUnavailable(f"cannot read the store {path}: it is empty, and cannot be written")
    except BaseException:
        db.close()
        raise
    return db


def _set_pragmas(db: apsw.Connection) -> None:
    db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    db.execute("PRAGMA temp_store = MEMORY")
    db.execute("PRAGMA trusted_schema = OFF")  # the file may be anybody's: triggers in it call no function of effect


def switch_to_wal(db: apsw.Connection, busy_timeout: float) -> None:
    """Two processes that switch at once refuse each other without asking the busy handler: try again."""
    give_up = time.monotonic() + busy_timeout
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except apsw.BusyError:
            if time.monotonic() >= give_up:
                raise
            time.sleep(0.005)


def _is_new(db: apsw.Connection, path: str) -> bool:
    """Whether the file holds nothing yet; raises where it is no store that this version reads.

    In a transaction: what it reads must be of one moment.
    """
    version = int(db.pragma("user_version"))
    application = int(db.pragma("application_id"))
    if application == APPLICATION_ID:
        if not 1 <= version <= _HIGHEST_VERSION:  # the mark and the version are written in one transaction
            raise damaged(path, f"it bears toolmem's mark and schema version {version}, which no toolmem writes")
        if version != SCHEMA_VERSION:
            raise StoreVersionError(
                f"the store {path} has schema version {version}, this toolmem reads version {SCHEMA_VERSION}: "
                "open it with the toolmem that wrote it, or choose another path"
            )
        return False
    if application or version or db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
        if holds_our_tables(db):
            raise damaged(path, "the mark of toolmem in its header is another")
        raise StoreUnavailable(f"{path} is a SQLite file, but not a toolmem store; choose another path")
    return True


def _check_path(path: Path) -> None:
    """Refuse what is no store, before anything is made or opened."""
    try:
        for each in (path, *_beside(path)):
            refuse_links(each)
        if path.is_dir():
            raise StoreUnavailable(_folder_message(path))
        if path.exists() and not path.is_file():
            raise StoreUnavailable(f"cannot open the store {path}: it is not a regular file")
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(100)
            if head and not head.startswith(MAGIC):
                if bears_our_mark(head):
                    raise damaged(path, "its first bytes are no SQLite file's")
                hint = f"; JSON Lines are brought over with `toolmem store import {path}`" if head[:1] == b"{" else ""
                raise StoreUnavailable(f"cannot open the store {path}: it is not a SQLite file{hint}")
    except OSError as error:
        raise StoreUnavailable(f"cannot open the store {path}: {error}") from error


def _make_ready(path: Path) -> None:
    """The folder and an empty file for this user alone; SQLite gives the files beside it the same permissions."""
    try:
        make_folder(path.parent)
        with suppress(FileExistsError):
            write_new(path)
        if path.parent.name == OWN:
            _refuse_foreign_logs(path)
            _close_to_others(path)  # made by another program, or unpacked from somewhere
    except (OSError, ValueError) as error:
        raise StoreUnavailable(f"cannot open the store {path}: {error}") from error


def _refuse_foreign_logs(path: Path) -> None:
    """SQLite gives what it writes beside a file the file's own permissions; what others may read beside a file that
    they may not was put there, by a checkout say, and would be taken over into the store.
    """
    if path.exists() and _is_open_to_others(path):
        return
    for each in _beside(path):
        if each.exists() and _is_open_to_others(each):
            raise StoreUnavailable(
                f"cannot open the store {path}: {each.name} was not written by this store (others may read it, "
                f"the store they may not); remove it, or if it is yours: chmod 600 {each}"
            )


def _is_open_to_others(path: Path) -> bool:
    return os.name == "posix" and bool(path.stat().st_mode & 0o077)


def _close_to_others(path: Path) -> None:
    for each in (path, *_beside(path)):
        with suppress(FileNotFoundError, PermissionError):
            if _is_open_to_others(each):
                each.chmod(0o600)


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal")]


def _folder_message(folder: Path) -> str:
    if any(folder.glob("*.jsonl")):  # as ReMe's file store writes them, one per workspace
        return (
            f"{folder} is a folder of JSON Lines, as ReMe keeps its memories, not a toolmem store: "
            f"bring it over with `toolmem store import {folder}`"
        )
    return f"cannot open the store {folder}: it is a folder; give the path of a file, e.g. {folder / 'memory.db'}"


@contextmanager
def explained(path: str, busy_timeout: float) -> Iterator[None]:
    """Turn SQLite's errors into toolmem's, which name the store."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreUnavailable(
            f"the store {path} stayed locked by another process for {busy_timeout:g} s; try again when it is done"
        ) from error
    except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError, UnicodeDecodeError) as error:
        raise damaged(path, error) from error
    except apsw.ReadOnlyError as error:
        raise StoreUnavailable(f"the store {path} cannot be written: {error}") from error
    except (apsw.CantOpenError, apsw.FullError, apsw.IOError) as error:
        raise StoreUnavailable(f"the store {path} cannot be used: {error}") from error
    except apsw.Error as error:
        raise StoreError(f"the store {path}: {type(error).__name__}: {error}") from error


@contextmanager
def write_transaction(db: apsw.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """All or nothing. IMMEDIATE: the lock is waited for before anything is read, so no writer ever loses its work."""
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def read_transaction(db: apsw.Connection) -> AbstractContextManager[None]:
    """Everything read inside is of one moment."""
    return write_transaction(db, "BEGIN")
