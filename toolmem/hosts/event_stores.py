"""Which stores an event of an agent has to do with: the project's, and the user's own; the rules of both bind."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile
    from toolmem.errors import StoreDamaged

T = TypeVar("T")

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


def users_own(stores: EventStores, home: str = "") -> StoreFile | None:
    """The user's own store, for what is to hold in all projects: one that is not there yet is made by the first write.

    None where it cannot be opened, or the user has no home folder.
    """
    users = users_store(home)
    if users is None or str(users) in stores.gone:
        return None
    for each in stores.all:
        if each.location != ":memory:" and _same(Path(each.location), users):
            return each
    from toolmem.errors import StoreError

    try:
        return _opened(users, [])
    except (StoreError, OSError):
        return None


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
            if not named and not gone and not (project.is_known() or nobody_can_say(found)):
                project.close()
                project, untrusted = _kept_of(found, gone), str(found)
        except (StoreError, OSError) as error:
            project = _kept_of(found, gone)  # also of a store that opens, and does not tell whose it is
            if project is None and not named and _may_be_anybodys(found, error):
                untrusted = str(found)
            elif project is None:
                trouble = f"{type(error).__name__}: {error}"
    if users is None or (project is not None and not is_known(users)):
        return EventStores(project, None, untrusted, trouble, tuple(gone))
    try:
        own = _opened(users, gone)
    except (StoreError, OSError) as error:
        return EventStores(project, None, untrusted, trouble or f"{type(error).__name__}: {error}", tuple(gone))
    return EventStores(project or own, own if project is not None else None, untrusted, trouble, tuple(gone))


def with_kept_rules(
    stores: EventStores, work: Callable[[EventStores], T], log: Callable[[StoreDamaged], object]
) -> tuple[T, EventStores]:
    """What `work` comes to with these stores, and with which. Of each that it finds damaged, the rules that were kept
    hold instead, and it is done again.
    """
    from toolmem.errors import StoreDamaged

    for _ in stores.all:
        try:
            done = work(stores)
            damage = next((each.damage for each in stores.all if each.damage is not None), None)
            if damage is None:
                return done, stores
        except StoreDamaged as error:
            damage = error
        log(damage)
        stores = _without(stores, damage)
    return work(stores), stores


def _without(stores: EventStores, damage: StoreDamaged) -> EventStores:
    gone = list(stores.gone)
    kept = _kept_of(Path(damage.path), gone)
    main, further = (
        kept if each is not None and each.location == damage.path else each for each in (stores.main, stores.further)
    )
    trouble = stores.trouble if kept is not None else f"{type(damage).__name__}: {damage}"
    left = further if main is not None else None
    return EventStores(main or further, left, stores.untrusted, trouble, tuple(gone))


def _may_be_anybodys(path: Path, error: Exception) -> bool:
    """Is this a damaged store, which does not tell its id any more, at a path where this user is known to have none?"""
    from toolmem.errors import StoreDamaged
    from toolmem.store.known_stores import is_listed

    return isinstance(error, StoreDamaged) and not is_listed(str(path)) and not nobody_can_say(path)


def nobody_can_say(path: Path) -> bool:
    """Is the list of this user's stores closed to the user? Then the user's own files bind, or to close it would lift
    what they forbid.
    """
    from toolmem.store.known_stores import can_be_asked

    try:
        return not can_be_asked(str(path)) and os.stat(path).st_uid == os.getuid()
    except (OSError, AttributeError):
        return False


def _opened(path: Path, gone: list[str]) -> StoreFile:
    """The store, or what was kept of the rules of one that is gone. Raises StoreError, OSError."""
    from toolmem.engine.store_file import StoreFile
    from toolmem.errors import StoreError

    if not _holds_something(path) and (kept := _kept_of(path, gone)) is not None:
        return kept
    try:
        store = StoreFile(path, busy_timeout=BUSY_TIMEOUT)
        store.held = True
        return store
    except (StoreError, OSError):
        if (kept := _kept_of(path, gone)) is not None:
            return kept
        raise


def _kept_of(path: Path, gone: list[str]) -> StoreFile | None:
    if not _has_kept(path):
        return None
    from toolmem.hosts.gone_stores import stand_in

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
    from toolmem.hosts.gone_stores import kept_of

    return kept_of(path) is not None


def is_known(path: str | Path) -> bool:
    """Is a store there, or was one?"""
    return os.path.isfile(path) or _has_kept(path)


def users_store(home: str = "") -> Path | None:
    """None where the user has no home folder."""
    folder = home or os.path.expanduser("~")
    return Path(folder, OWN_STORE) if os.path.isabs(folder) else None


def project_store(folder: str, home: str = "") -> Path | None:
    """The store of the folder or of one above it, up to the root of its repository; the user's own is no project's.

    A linked worktree of git that has none shares that of the main worktree.
    """
    if not os.path.isabs(folder):
        return None
    end = os.path.realpath(home or os.path.expanduser("~"))
    at = os.path.realpath(folder)
    for _ in range(_HIGHEST):
        if at == end:
            return None
        if is_known(os.path.join(at, OWN_STORE)):
            return Path(at, OWN_STORE)
        above = os.path.dirname(at)
        if os.path.exists(os.path.join(at, ".git")):
            return _shared(at, end)
        if above == at:
            return None
        at = above
    return None


def _shared(root: str, home: str) -> Path | None:
    from toolmem.hosts.worktrees import main_worktree

    main = main_worktree(root)
    return Path(main, OWN_STORE) if main and main != home and is_known(os.path.join(main, OWN_STORE)) else None


def _same(one: Path, other: Path | None) -> bool:
    return other is not None and os.path.realpath(one) == os.path.realpath(other)
