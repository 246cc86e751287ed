"""Which stores an event of an agent has to do with: the project's, and the user's own; the rules of both bind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile

OWN_STORE = ".toolmem/memory.db"
BUSY_TIMEOUT = 2.0  # seconds: the agent waits
_HIGHEST = 64  # folders between a project's and its repository's root


class EventStores(NamedTuple):
    """Opened for one event."""

    main: StoreFile | None  # where calls go and what the user says; None: none can be opened
    further: StoreFile | None = None  # the user's own, where the project has one: its rules bind too
    untrusted: str = ""  # the project's store, which this user neither made nor trusts: nothing of it is used
    trouble: str = ""  # why a store that is there could not be opened
    gone: tuple[str, ...] = ()  # not there, or not to be read: their rules hold as they were kept, nothing is kept

    @property
    def all(self) -> list[StoreFile]:
        return [each for each in (self.main, self.further) if each is not None]

    def close(self) -> None:
        for each in self.all:
            each.close()


def store_place(folder: str, named: str = "", home: str = "") -> str:
    """Where the store of `open_stores` lies that calls go to, whatever it is; two installs may have different ones."""
    found = Path(named).expanduser() if named else project_store(folder, home) or users_store(home)
    return os.path.realpath(found) if found is not None else ""


def open_stores(folder: str, named: str = "", home: str = "") -> EventStores:
    """The stores of a project that was begun in `folder`. `named`: the file that the hook was installed with.

    A store that is named is this user's own word; one that is found must be trusted. `home`: the user's folder, else as
    the system says. Raises nothing for what a file is.
    """
    from toolmem.errors import StoreError

    users = users_store(home)
    found = Path(named).expanduser() if named else project_store(folder, home)
    project, untrusted, trouble = None, "", ""
    gone: list[str] = []
    if found is not None and not _same(found, users):
        try:
            project = _opened(found, gone)
            if not named and not gone and not project.is_known():
                project.close()
                project, untrusted = _kept_of(found, gone), str(found)
        except (StoreError, OSError) as error:
            trouble = f"{type(error).__name__}: {error}"
    if users is None or (project is not None and not _is_known(users)):
        return EventStores(project, None, untrusted, trouble, tuple(gone))
    try:
        own = _opened(users, gone)
    except (StoreError, OSError) as error:
        return EventStores(project, None, untrusted, trouble or f"{type(error).__name__}: {error}", tuple(gone))
    return EventStores(project or own, own if project is not None else None, untrusted, trouble, tuple(gone))


def _opened(path: Path, gone: list[str]) -> StoreFile:
    """The store, or what was kept of the rules of one that is gone. Raises StoreError, OSError."""
    from toolmem.engine.store_file import StoreFile
    from toolmem.errors import StoreError

    if not _holds_something(path) and (kept := _kept_of(path, gone)) is not None:
        return kept
    try:
        return StoreFile(path, busy_timeout=BUSY_TIMEOUT)
    except (StoreError, OSError):
        if (kept := _kept_of(path, gone)) is not None:
            return kept
        raise


def _kept_of(path: Path, gone: list[str]) -> StoreFile | None:
    if not _has_kept(path):
        return None
    from toolmem.hosts.rule_snapshots import stand_in

    store = stand_in(path)
    if store is not None:
        gone.append(str(path))
    return store


def _holds_something(path: str | Path) -> bool:
    try:
        return os.path.isfile(path) and os.path.getsize(path) > 0
    except OSError:
        return False


def _has_kept(path: str | Path) -> bool:
    """Were the rules of a store at this path kept?"""
    from toolmem.engine.protected_paths import kept_rules_file

    try:
        return kept_rules_file(str(path)).is_file()
    except OSError:
        return False


def _is_known(path: str | Path) -> bool:
    """Is a store there, or was one?"""
    return os.path.isfile(path) or _has_kept(path)


def users_store(home: str = "") -> Path | None:
    """None where the user has no home folder."""
    folder = home or os.path.expanduser("~")
    return Path(folder, OWN_STORE) if os.path.isabs(folder) else None


def project_store(folder: str, home: str = "") -> Path | None:
    """The store of the folder or of one above it, up to the root of its repository; the user's own is no project's."""
    if not os.path.isabs(folder):
        return None
    end = os.path.realpath(home or os.path.expanduser("~"))
    at = os.path.realpath(folder)
    for _ in range(_HIGHEST):
        if at == end:
            return None
        if _is_known(os.path.join(at, OWN_STORE)):
            return Path(at, OWN_STORE)
        above = os.path.dirname(at)
        if os.path.exists(os.path.join(at, ".git")) or above == at:
            return None
        at = above
    return None


def _same(one: Path, other: Path | None) -> bool:
    return other is not None and os.path.realpath(one) == os.path.realpath(other)
