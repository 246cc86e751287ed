"""Open the stores whose rules bind an agent's calls: the project's, and the user's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from toolmem.config.sections import GuardSection
from toolmem.errors import StoreError
from toolmem.guard.guard import Guard
from toolmem.guard.rule_copies import (
    copy_as_store,
    is_current,
    keep_copy,
    lost_rules,
    read_copy,
)
from toolmem.models.calls import SystemClock, ToolCallResult
from toolmem.models.decisions import Decision
from toolmem.models.protocols import Store
from toolmem.rules.store import GUARDED, RuleListing, ToolMemoryStore
from toolmem.store.sqlite import SqliteStore, trust

WORKSPACE = "default"
OWN_STORE = os.path.join(".toolmem", "memory.db")
KEPT_CALLS = 100  # of a tool
MAX_OUTPUT = 100_000  # characters of an output that is kept
LOCK_TIMEOUT = 4.0  # seconds to wait for a locked store; agents give a hook ten


class Stores(Struct):
    """The open stores. Calls and demands are kept in `main`."""

    main: Store
    further: list[Store] = []
    copies: list[Store] = []  # in memory: rules of stores that lost them
    untrusted: str = ""  # why the project's store is not used
    rules_changed: bool = False  # since they were copied, or perhaps
    lost: list[str] = []  # what is wrong with a store or the state folder, for the user

    @property
    def all(self) -> list[Store]:
        return [self.main, *self.further]

    def rules(self, store: Store | None = None) -> ToolMemoryStore:
        """The rules of one store, by default of the main one."""
        return ToolMemoryStore(store or self.main, WORKSPACE, SystemClock())

    def listing(self, session: str = "") -> RuleListing:
        """The rules of all stores."""
        found = [self.rules(store).all_rules(session) for store in (*self.all, *self.copies)]
        rules = {rule.id: rule for each in reversed(found) for rule in each.rules}
        return RuleListing([*rules.values()], [r for each in found for r in each.damaged])

    def guards(
        self,
        on_error: Literal["open", "closed"] = "open",
        *,
        shadow: bool = False,
        protected: Sequence[str] = (),
    ) -> list[Guard]:
        """Make a guard for each store. Only the main one stops repeats; `shadow`: none does.

        `protected`: files beside the stores that only the user may change.
        """
        main = GuardSection(repeats="enforce", on_error=on_error)
        if shadow:
            main = GuardSection(rules="shadow", repeats="shadow", names="shadow", schema="shadow")
        further = replace(main, repeats="off", names="off", schema="off")
        files = [each.location for each in self.all if os.path.exists(each.location)]
        paths, clock = [*files, str(trust.state_folder()), *protected], SystemClock()
        return [
            Guard(store, WORKSPACE, clock, main if store is self.main else further, protected=paths)
            for store in (*self.all, *self.copies)
        ]

    def keep_call(
        self,
        call: ToolCallResult,
        arguments: Any,
        guards: Sequence[Guard],
        decisions: Sequence[Decision],
    ) -> None:
        """Store a call that ended; each guard learns from it and its decision, if there is one.

        One commit in the main store. Another store that fails takes nothing of it back.
        """
        failed, call_id = call.failed, call.id or ""

        def learn(pairs: Sequence[tuple[Guard, Decision]]) -> None:
            for guard, decision in pairs:
                guard.after(decision, arguments, output=call.output, failed=failed, call_id=call_id)

        pairs = list(zip(guards, decisions, strict=False))  # that of the main store first
        with self.main.transaction():
            self.main.append_calls(WORKSPACE, [call], KEPT_CALLS)
            learn(pairs[:1])
        learn(pairs[1:])

    def mark_guarded(self, by: str) -> None:
        """Let programs and agents no longer loosen the user's rules in these stores."""
        for store in self.all:
            if not self.rules(store).is_guarded():
                store.put(*GUARDED, {"by": by})

    def keep_copies(self) -> None:
        """Bring the copies of rules up to date, but not those that bind in place of a store."""
        for store in self.all if self.rules_changed and not self.copies else ():
            keep_copy(store, WORKSPACE)
        self.rules_changed = False

    def close(self) -> None:
        for store in (*self.all, *self.copies):
            store.close()

    def add_copy(self, store: SqliteStore, why: str = "") -> None:
        """Let the copy of a store's rules bind where the store lost them. `why`: it cannot be read.

        Raises StoreError where it cannot be read, and has no copy.
        """
        copy = read_copy(store.location)
        if not why:
            if is_current(store, copy, WORKSPACE):
                return
            self.rules_changed = True
            why = lost_rules(store, copy, WORKSPACE) if copy else ""
        if copy is None or not copy.rules or not why:
            return
        self.copies.append(copy_as_store(copy, WORKSPACE))
        self.lost.append(
            f"{why}; {len(copy.rules)} rule(s) bind from their copy. To write them back: toolmem "
            "store restore; to let them go: toolmem store restore --drop"
        )


def open_stores(folder: str, named: str = "") -> Stores:
    """Open the store of the project that `folder` belongs to, and the user's.

    `folder`: where the agent was started. `named`: a store file to open in place of the project's.
    A store that came with the folder (its author wrote the rules) is not used until it is trusted.
    """
    users = os.path.join(os.path.realpath(os.path.expanduser("~")), OWN_STORE)
    root = project_root(folder)
    path = named or (users if root == os.sep else os.path.join(root, OWN_STORE))
    main = SqliteStore(path, busy_timeout=LOCK_TIMEOUT)
    stores = Stores(main)
    _open(stores, main)
    if stores.untrusted:
        main.close()
        stores.main = SqliteStore(users, busy_timeout=LOCK_TIMEOUT)
        _open(stores, stores.main)
    elif os.path.realpath(main.location) != users:
        further = SqliteStore(users, busy_timeout=LOCK_TIMEOUT)
        if _open(stores, further) and os.path.exists(users):
            stores.further.append(further)
    if trust.is_forgotten(main.location):
        state = trust.state_folder()
        stores.lost.append(f"{state} was deleted or emptied; the rules of {main.location} go on")
    return stores


def _open(stores: Stores, store: SqliteStore) -> bool:
    """Whether a store can be read and is trusted. Raises StoreError where nothing binds for it."""
    try:
        if untrusted := store.untrusted:
            stores.untrusted = stores.untrusted or untrusted
            stores.add_copy(store, f"{store.location} was replaced")
            return False
        stores.add_copy(store)
    except StoreError as error:
        stores.add_copy(store, f"the store cannot be used ({error})")
        if not stores.copies:
            raise
        return False
    return True


def open_user_store() -> SqliteStore:
    """Open the user's own store, which the first write creates."""
    return SqliteStore(os.path.join(os.path.realpath(os.path.expanduser("~")), OWN_STORE))


def project_root(folder: str) -> str:
    """The root of the repository around a folder, else the folder; of a worktree the main one."""
    start = Path(os.path.realpath(folder or os.getcwd()))
    for at in (start, *start.parents):
        mark = os.path.join(at, ".git")
        if os.path.isdir(mark):
            return str(at)
        if os.path.isfile(mark):
            return _main_worktree(mark) or str(at)
    return str(start)


def _main_worktree(mark: str) -> str:
    """The main worktree of `gitdir: /project/.git/worktrees/x`, if /project lists it; else ""."""
    try:
        with open(mark, encoding="utf-8") as file:
            git = file.read(4_096).removeprefix("gitdir:").strip()
        with open(os.path.join(git, "gitdir"), encoding="utf-8") as file:
            knows = os.path.realpath(file.read(4_096).strip()) == os.path.realpath(mark)
    except (OSError, UnicodeDecodeError):
        return ""
    found = git.partition(f"{os.sep}.git{os.sep}worktrees{os.sep}")[0]
    return os.path.realpath(found) if knows and found != git else ""
