"""Open the stores whose rules bind an agent's calls: the project's, and the user's own."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from datetime import tzinfo
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from toolmem.config.sections import OWN_FOLDER, WORKSPACE, GuardSection
from toolmem.errors import StoreError
from toolmem.guard.guard import Guard
from toolmem.guard.rule_copies import (
    RuleCopy,
    aside_file,
    aside_folder,
    copy_as_store,
    is_current,
    is_elsewhere,
    keep_copy,
    lost_rules,
    only_lost,
    read_copy,
    read_head,
    recognize,
    watch,
)
from toolmem.guard.self_protection import own_paths
from toolmem.models.calls import SystemClock, ToolCallResult
from toolmem.models.decisions import Decision
from toolmem.models.protocols import Store
from toolmem.models.rules import TEAM_FILE
from toolmem.rules.store import GUARDED, RuleListing, ToolMemoryStore
from toolmem.store.sqlite import SqliteStore, trust

if TYPE_CHECKING:  # loaded where a demand could not be kept
    from toolmem.guard.aside import Aside

log = logging.getLogger("toolmem.guard")
UNTRUSTED = "A store that is not trusted"
OWN_STORE = os.path.join(OWN_FOLDER, "memory.db")
KEPT_CALLS = 100  # of a tool
MAX_OUTPUT = 100_000  # characters of an output that is kept
LOCK_TIMEOUT = 4.0  # seconds to wait for a locked store; agents give a hook ten
DECISION_WAIT = 1.0  # the same before a call, and when the user is to be answered at once


class Stores(Struct):
    """The open stores. Calls and demands are kept in `main`."""

    main: Store
    further: list[Store] = []
    copies: dict[str, Store] = {}  # by location: in memory, the rules that the store there lost
    foreign: SqliteStore | None = None  # the project's, which is not trusted: its rules only ask
    elsewhere: list[Store] = []  # copies of rules of a project that another has replaced: they ask
    untrusted: str = ""  # why the project's store is not used
    workspace: str = WORKSPACE
    rules_changed: bool = False  # the rules may have changed since they were copied
    zone: tzinfo | None = None  # of the user; None: the machine's
    project: str = ""  # its root, where the repository's file of rules is
    lost: list[str] = []  # messages for the user: which store lost its rules, and what binds now
    moved: list[str] = []  # messages for the user: which store was recognized in another place

    @property
    def all(self) -> list[Store]:
        return [self.main, *self.further]

    def rules(self, store: Store | None = None) -> ToolMemoryStore:
        """The rules of one store, by default of the main one."""
        return ToolMemoryStore(store or self.main, WORKSPACE, SystemClock(), self.zone)

    def listing(self, session: str = "") -> RuleListing:
        """The rules of all stores. Raises StoreError for the main one, if that has no copy."""
        found = []
        for store in (*self.all, *self.copies.values()):
            try:
                found.append(self.rules(store).all_rules(session))
            except StoreError:
                if store is self.main and store.location not in self.copies:
                    raise
        rules = {rule.id: rule for each in reversed(found) for rule in each.rules}
        return RuleListing([*rules.values()], [r for each in found for r in each.damaged])

    def aside(self, session: str) -> Aside:
        """The demands of a session that the main store could not take."""
        from toolmem.guard.aside import Aside

        return Aside(self.rules(), aside_file(self.main.location, session))

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
        team_file = os.path.join(self.project, TEAM_FILE)
        own = [*own_paths(*self.all), str(aside_folder()), team_file]
        options: dict[str, Any] = {"protected": [*own, *protected]}
        options |= {"zone": self.zone, "lost": "; ".join(self.lost)}
        options["copies"] = list(self.copies.values())
        clock = SystemClock()
        guards = [
            Guard(store, WORKSPACE, clock, main if store is self.main else further, **options)
            for store in self.all
        ]
        return guards

    def asking_guards(self) -> list[Guard]:
        """Guards of rules that only ask: nothing is written for them, and no reply is theirs."""
        modes = GuardSection(repeats="off", names="off", schema="off")
        found = [(each, "Another project here", "; ".join(self.lost)) for each in self.elsewhere]
        if self.foreign is not None:
            found.append((self.foreign, UNTRUSTED, self.untrusted))
        return [
            Guard(store, WORKSPACE, SystemClock(), modes, only_asks=what, lost=lost)
            for store, what, lost in found
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
        failed = call.failed
        call_id = call.id or ""

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
            try:
                if not self.rules(store).is_guarded():
                    store.put(*GUARDED, {"by": by})
            except StoreError:
                if store is self.main:
                    raise

    def keep_copies(self) -> list[str]:
        """Update the copies of rules, except those that bind in place of a store.

        Returns what to tell the user where that fails.
        """
        stores = self.all if self.rules_changed else []
        self.rules_changed = False
        kept = (keep_copy(s, self.workspace) for s in stores if s.location not in self.copies)
        return [f"toolmem: {problem}" for problem in kept if problem]

    def close(self) -> None:
        for store in (*self.all, *self.copies.values(), *filter(None, [self.foreign])):
            store.close()

    def find_loss(self, store: SqliteStore) -> None:
        """Compare a store with the copy of its rules, which binds if the store lost some.

        Raises StoreError.
        """
        if is_current(store, read_head(store.location, self.workspace), self.workspace):
            return
        self.rules_changed = True
        copy = read_copy(store.location, self.workspace)
        if copy is not None and (loss := lost_rules(store, copy, self.workspace)):
            self.bind_copy(store, only_lost(store, copy, self.workspace), loss)

    def is_whole_again(self) -> bool:
        """Whether the main store has what it had lost, so that no copy binds in its place."""
        if not isinstance(self.main, SqliteStore):
            return False
        with suppress(StoreError):
            head = read_head(self.main.location, self.workspace)
            return head is None or is_current(self.main, head, self.workspace)
        return False

    def bind_copy(self, store: SqliteStore, copy: RuleCopy, why: str, first: str = "") -> None:
        """Let the copied rules bind in place of a store.

        `why`: what happened to it. `first`: what the user has to do before they are written back.
        """
        if not copy.rules or store.location in self.copies:
            return
        copied = copy_as_store(copy, self.workspace)
        effect = "bind"
        if is_elsewhere(copy, store):  # a path is no project
            self.elsewhere.append(copied)
            effect = "ask, as another folder is in its place,"
        else:
            self.copies[store.location] = copied
        command = f"toolmem store restore --store {quote(store.location)}"
        self.lost.append(
            f"{why}; {len(copy.rules)} rule(s) {effect} from their copy. To write them back"
            f"{first}: {command}; to let them go: {command} --drop"
        )


def open_stores(folder: str, named: str = "", wait: float = LOCK_TIMEOUT) -> Stores:
    """Open the store of the project that `folder` belongs to, and the user's.

    `folder`: where the agent was started. `named`: a store file to open in place of the project's.
    `wait`: seconds to wait for one that is locked. The rules of a store that came with the folder
    (its author wrote them) only ask, until it is trusted.
    """
    users = _user_store_path()
    main = SqliteStore(named or store_path(folder), busy_timeout=wait)
    stores = Stores(main, project=project_root(folder))
    _open(stores, main)
    if stores.untrusted:
        stores.foreign = main
        stores.main = SqliteStore(users, busy_timeout=wait)
        _open(stores, stores.main)
    elif os.path.realpath(main.location) != users:
        further = SqliteStore(users, busy_timeout=wait)
        try:
            if _open(stores, further) and os.path.exists(users):
                stores.further.append(further)
        except StoreError as error:  # what the project's store holds binds nevertheless
            further.wait_no_longer()
            stores.further.append(further)
            stores.lost.append(f"the rules of {users} do not bind: {error}")
    for path in () if named else _stores_above(folder, {main.location, users}):
        above = SqliteStore(path, busy_timeout=wait)
        with suppress(StoreError):
            if not above.untrusted and _open(stores, above):
                stores.further.append(above)
    if trust.is_state_lost(main.location):
        state = trust.state_folder()
        stores.lost.append(
            f"{state} was deleted or emptied; the rules of {main.location} still bind"
        )
    return stores


def compare_with_copy(store: SqliteStore, workspace: str) -> Stores:
    """The copies that bind in place of what a store lost, for programs; the copy is kept else.

    A loss is logged, for whoever runs the program.
    """
    stores = Stores(store, workspace=workspace, rules_changed=True)
    with suppress(StoreError):  # the guard says what that means, call by call
        if _open(stores, store):
            stores.keep_copies()
    for line in stores.lost:
        logging.getLogger("toolmem.operator").error("%s", line)
    return stores


def _stores_above(folder: str, known: Collection[str]) -> Iterator[str]:
    """Stores of the folders from `folder` up: one that became a repository keeps its rules."""
    start = Path(os.path.realpath(folder or os.getcwd()))
    for at in (start, *start.parents):
        path = os.path.join(at, OWN_STORE)
        if path not in known and os.path.isfile(path):
            yield path


def _open(stores: Stores, store: SqliteStore) -> bool:
    """Whether a store can be read and is trusted; where it is not, its copy binds.

    Raises StoreError for a store that cannot be read and has no copy.
    """
    try:
        untrusted = store.untrusted
        if untrusted and (moved := recognize(store, stores.workspace)):
            stores.moved.append(moved)
        elif untrusted:
            stores.untrusted = (
                f"{untrusted}: its rules only ask, and nothing else of it is used. To trust it: "
                f"toolmem store trust --store {quote(store.location)}"
            )
            if copy := read_copy(store.location, stores.workspace):
                stores.bind_copy(store, copy, f"{store.location} was replaced")
            return False
        stores.find_loss(store)
        watch(store)
    except StoreError as error:
        copy = read_copy(store.location, stores.workspace)
        if copy is None:
            raise
        log.warning("%s", error)
        store.wait_no_longer()
        first = ", if the file is damaged, move it away and run"
        stores.bind_copy(store, copy, f"the store cannot be used ({error})", first)
        return False
    return True


def place_now(project: str, folder: str) -> str:
    """The folder of a project that an install names; `folder`, if it was moved there since.

    An install names the old place after a project was renamed. Where its store is not in `folder`,
    the copy of its rules goes on to bind.
    """
    if not project or not folder or os.path.isdir(project):
        return project or folder
    head = read_head(store_path(project))
    with suppress(StoreError), closing(SqliteStore(store_path(folder))) as store:
        if head is None or store.store_id() == head.store_id:
            return folder
    return project


def store_path(folder: str) -> str:
    """The path of the store of the project around a folder; outside of projects, the user's."""
    root = project_root(folder)
    return _user_store_path() if root == os.sep else os.path.join(root, OWN_STORE)


def _user_store_path() -> str:
    return os.path.join(os.path.realpath(os.path.expanduser("~")), OWN_STORE)


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
