"""The stores that a hook works on: the project's, and the user's, whose rules bind as well."""

from __future__ import annotations

import os

from msgspec import Struct

from toolmem.models.protocols import Store
from toolmem.store.sqlite import SqliteStore

OWN_STORE = os.path.join(".toolmem", "memory.db")
PATIENCE = 4.0  # seconds that a hook waits for a locked store; agents give it ten


class Stores(Struct):
    """`main` is where calls and demands are kept."""

    main: Store
    further: list[Store] = []
    untrusted: str = ""  # why the project's store is not used

    @property
    def all(self) -> list[Store]:
        return [self.main, *self.further]


def stores_of(folder: str, named: str = "") -> Stores:
    """`folder`: where the agent was started. `named`: a store file that takes the project's place.

    A store that came with the folder is not used until the user trusts it: its author wrote the
    rules in it.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    users = os.path.join(home, OWN_STORE)
    root = project_root(folder)
    path = named or (users if root in (home, os.sep) else os.path.join(root, OWN_STORE))
    main = SqliteStore(path, busy_timeout=PATIENCE)
    untrusted = main.untrusted
    if untrusted:
        main.close()
        main = SqliteStore(users, busy_timeout=PATIENCE)
    stores = Stores(main, untrusted=untrusted)
    if os.path.realpath(main.location) != users and os.path.exists(users):
        further = SqliteStore(users, busy_timeout=PATIENCE)
        if not further.untrusted:
            stores.further.append(further)
    return stores


def users_store() -> SqliteStore:
    """The store of all that the user does; made by the first write."""
    return SqliteStore(os.path.join(os.path.realpath(os.path.expanduser("~")), OWN_STORE))


def project_root(folder: str) -> str:
    """The repository that a folder is in, else the folder. A worktree shares the repository's."""
    start = at = os.path.realpath(folder or os.getcwd())
    while True:
        mark = os.path.join(at, ".git")
        if os.path.isdir(mark):
            return at
        if os.path.isfile(mark):
            return _main_worktree(mark) or at
        parent = os.path.dirname(at)
        if parent == at:
            return start
        at = parent


def _main_worktree(mark: str) -> str:
    """`gitdir: /project/.git/worktrees/name` belongs to /project, where that knows it too."""
    try:
        with open(mark, encoding="utf-8") as file:
            git = file.read(4_096).removeprefix("gitdir:").strip()
        with open(os.path.join(git, "gitdir"), encoding="utf-8") as file:
            knows = os.path.realpath(file.read(4_096).strip()) == os.path.realpath(mark)
    except (OSError, UnicodeDecodeError):
        return ""
    found = git.partition(f"{os.sep}.git{os.sep}worktrees{os.sep}")[0]
    return os.path.realpath(found) if knows and found != git else ""
