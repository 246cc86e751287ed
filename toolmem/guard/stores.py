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
    copy_as_store,
    describe_loss,
    is_current,
    is_replaced,
    keep_copy,
    only_lost,
    pending_file,
    pending_folder,
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
from toolmem.text.display import counted

if TYPE_CHECKING:  # loaded where a demand could not be kept
    from toolmem.guard.pending_demands import PendingDemands

log = logging.getLogger("toolmem.guard")
UNTRUSTED = "A store that is not trusted"
OWN_STORE = os.path.join(OWN_FOLDER, "memory.db")
KEPT_CALLS = 100  # newest calls of a tool
MAX_OUTPUT = 100_000  # characters of an output that is kept
LOCK_TIMEOUT = 4.0  # seconds to wait for a locked store; agents give a hook ten
DECISION_WAIT = 1.0  # the same before a call


class Stores(Struct):
    """The stores whose rules bind an agent. Its calls and demands are written to `main`."""

    main: Store
    further: list[Store] = []  # others whose rules bind
    copies: dict[str, Store] = {}  # location of a store -> the rules that it lost, in memory
    replaced: list[Store] = []  # copied rules of a project that another has replaced: they only ask
    foreign: SqliteStore | None = None  # the project's, if it is not trusted: its rules only ask
    untrusted: str = ""  # why it is not trusted
    workspace: str = WORKSPACE
    rules_changed: bool = False  # the rules may have changed since they were copied
    zone: tzinfo | None = None  # of the user; None: the machine's
    project: str = ""  # its root folder
    lost: list[str] = []  # messages for the user: which store lost its rules, and what binds now
    moved: list[str] = []  # messages for the user: which store was recognized in another place

    @property
    def all(self) -> list[Store]:
        return [self.main, *self.further]

    @property
    def warnings(self) -> list[str]:
        """Return messages for the user: which stores are not trusted, or lost rules."""
        return [*filter(None, [self.untrusted]), *self.lost]

    def rules(self, store: Store | None = None) -> ToolMemoryStore:
        """Return the rules of one store, by default of the main one."""
        return ToolMemoryStore(store or self.main, WORKSPACE, SystemClock(), self.zone)

    def listing(self, conversation_id: str = "") -> RuleListing:
        """List the rules of all stores. Raises StoreError if `main` fails and has no copy."""
        found = []
        for store in (*self.all, *self.copies.values()):
            try:
                found.append(self.rules(store).all_rules(conversation_id))
            except StoreError:
                if store is self.main and store.location not in self.copies:
                    raise
        rules = {rule.id: rule for each in reversed(found) for rule in each.rules}
        return RuleListing([*rules.values()], [r for each in found for r in each.damaged])

    def pending_demands(self, conversation_id: str) -> PendingDemands:
        """Return the demands of a conversation that the main store could not take."""
        from toolmem.guard.pending_demands import PendingDemands

        return PendingDemands(self.rules(), pending_file(self.main.location, conversation_id))

    def guards(
        self,
        on_error: Literal["open", "closed"] = "open",
        *,
        shadow: bool = False,
        protected: Sequence[str] = (),
    ) -> list[Guard]:
        """Make a guard for each store. Only the guard of the main store stops repeats.

        `shadow`: no guard stops anything. `protected`: further files that only the user may change.
        """
        main = GuardSection(repeats="enforce", on_error=on_error)
        if shadow:
            main = GuardSection(rules="shadow", repeats="shadow", names="shadow", schema="shadow")
        further = replace(main, repeats="off", names="off", schema="off")
        team_file = os.path.join(self.project, TEAM_FILE)
        own = [*own_paths(*self.all), str(pending_folder()), team_file, *protected]
        return [
            Guard(
                store,
                WORKSPACE,
                SystemClock(),
                main if store is self.main else further,
                protected=own,
                zone=self.zone,
                copies=list(self.copies.values()),
                lost="; ".join(self.lost),
            )
            for store in self.all
        ]

    def asking_guards(self) -> list[Guard]:
        """Make guards for rules that only ask: of an untrusted store, and of replaced projects."""
        modes = GuardSection(repeats="off", names="off", schema="off")
        found = [(each, "Another project here", "; ".join(self.lost)) for each in self.replaced]
        if self.foreign is not None:
            found.append((self.foreign, UNTRUSTED, self.untrusted))
        return [
            Guard(store, WORKSPACE, SystemClock(), modes, only_asks=name, lost=lost)
            for store, name, lost in found
        ]

    def keep_call(
        self,
        call: ToolCallResult,
        arguments: Any,
        guards: Sequence[Guard],
        decisions: Sequence[Decision],
    ) -> None:
        """Store a call that ended; each guard learns from the call and from its own decision.

        `decisions`: in the order of `guards`. Guards beyond the last decision learn nothing. The
        main store commits first, and keeps the call even if a further store fails.
        """
        failed = call.failed
        call_id = call.id or ""

        def learn(pairs: Sequence[tuple[Guard, Decision]]) -> None:
            for guard, decision in pairs:
                guard.after(decision, arguments, output=call.output, failed=failed, call_id=call_id)

        pairs = list(zip(guards, decisions, strict=False))  # the main store's pair first
        with self.main.transaction():
            self.main.append_calls(WORKSPACE, [call], KEPT_CALLS)
            learn(pairs[:1])
        learn(pairs[1:])

    def mark_guarded(self, by: str) -> None:
        """Let only the user loosen these stores' rules from now on. `by`: the agent or proxy."""
        for store in self.all:
            try:
                if not self.rules(store).is_guarded():
                    store.put(*GUARDED, {"by": by})
            except StoreError:
                if store is self.main:
                    raise

    def keep_copies(self) -> list[str]:
        """Update the copies of rules, except of stores that lost some. Returns any problems."""
        stores = self.all if self.rules_changed else []
        self.rules_changed = False
        kept = (keep_copy(s, self.workspace) for s in stores if s.location not in self.copies)
        return [f"toolmem: {problem}" for problem in kept if problem]

    def close(self) -> None:
        for store in (*self.all, *self.copies.values(), *filter(None, [self.foreign])):
            store.close()

    def find_loss(self, store: SqliteStore) -> None:
        """Compare a store with its copy; the copy binds if rules were lost. Raises StoreError."""
        if is_current(store, read_head(store.location, self.workspace), self.workspace):
            return
        self.rules_changed = True
        copy = read_copy(store.location, self.workspace)
        if copy is not None and (loss := describe_loss(store, copy, self.workspace)):
            self.bind_copy(store, only_lost(store, copy, self.workspace), loss)

    def is_whole_again(self) -> bool:
        """Whether the main store has its rules again, so that no copy needs to bind."""
        if not isinstance(self.main, SqliteStore):
            return False
        with suppress(StoreError):
            head = read_head(self.main.location, self.workspace)
            return head is None or is_current(self.main, head, self.workspace)
        return False

    def bind_copy(self, store: SqliteStore, copy: RuleCopy, why: str, first: str = "") -> None:
        """Let copied rules bind in place of a store.

        `why`: what happened to the store. `first`: what to do before the rules are written back.
        """
        if not copy.rules or store.location in self.copies:
            return
        copied = copy_as_store(copy, self.workspace)
        effect = "binds"
        if is_replaced(copy, store):
            self.replaced.append(copied)
            effect = "asks, as another folder is in its place"
        else:
            self.copies[store.location] = copied
        command = f"toolmem store restore --store {quote(store.location)}"
        self.lost.append(
            f"{why}; its copy of {counted(len(copy.rules), 'rule')} {effect}. To write them back"
            f"{first}: {command}; to let them go: {command} --drop"
        )


def open_stores(folder: str, named: str = "", wait: float = LOCK_TIMEOUT) -> Stores:
    """Open the store of the project that `folder` belongs to, and the user's store.

    `folder`: where the agent was started. `named`: a store file in place of the project's. `wait`:
    seconds to wait for a locked store. A store that came with the folder has rules of the folder's
    author: they only ask until the user trusts the store.
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
        except StoreError as error:  # the project's rules bind nevertheless
            further.wait_no_longer()
            stores.further.append(further)
            stores.lost.append(f"the rules of {users} do not bind: {error}")
    for path in () if named else _stores_above(folder, {main.location, users}):
        above = SqliteStore(path, busy_timeout=wait)
        with suppress(StoreError):
            if not above.untrusted and _open(stores, above):
                stores.further.append(above)
    if trust.is_note_lost(main.location):
        state = trust.state_folder()
        stores.lost.append(
            f"{state} was deleted or emptied; the rules of {main.location} still bind"
        )
    return stores


def compare_with_copy(store: SqliteStore, workspace: str) -> Stores:
    """Compare a program's store with the copy of its rules; the copy binds if rules were lost.

    A loss is logged for the operator. Without a loss the copy is updated.
    """
    stores = Stores(store, workspace=workspace, rules_changed=True)
    with suppress(StoreError):  # the guard says what that means, call by call
        if _open(stores, store):
            stores.keep_copies()
    for line in stores.lost:
        logging.getLogger("toolmem.operator").error("%s", line)
    return stores


def _stores_above(folder: str, known: Collection[str]) -> Iterator[str]:
    """Yield paths of stores in `folder` and above: their rules also bind in repositories inside."""
    start = Path(os.path.realpath(folder or os.getcwd()))
    for at in (start, *start.parents):
        path = os.path.join(at, OWN_STORE)
        if path not in known and os.path.isfile(path):
            yield path


def _open(stores: Stores, store: SqliteStore) -> bool:
    """Check that a store is trusted and whole. If not, return False; then its copy binds.

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


def project_folder(project: str, folder: str) -> str:
    """Return the folder `project` that an install names, or `folder` if the project moved there.

    It moved if `project` is gone, and the store of `folder` has the id in the copy of the project's
    rules, or there is no copy. If it did not move, that copy binds.
    """
    if not project or not folder or os.path.isdir(project):
        return project or folder
    head = read_head(store_path(project))
    with suppress(StoreError), closing(SqliteStore(store_path(folder))) as store:
        if head is None or store.store_id() == head.store_id:
            return folder
    return project


def store_path(folder: str) -> str:
    """Return the path of the store of the project around a folder, else of the user's store."""
    root = project_root(folder)
    return _user_store_path() if root == os.sep else os.path.join(root, OWN_STORE)


def _user_store_path() -> str:
    return os.path.join(os.path.realpath(os.path.expanduser("~")), OWN_STORE)


def project_root(folder: str) -> str:
    """Return the root of the repository around a folder (its main worktree), else the folder."""
    start = Path(os.path.realpath(folder or os.getcwd()))
    for at in (start, *start.parents):
        mark = os.path.join(at, ".git")
        if os.path.isdir(mark):
            return str(at)
        if os.path.isfile(mark):
            return _main_worktree(mark) or str(at)
    return str(start)


def _main_worktree(mark: str) -> str:
    """Return the main worktree, from another's `.git` file; "" if the main one does not list it."""
    try:
        with open(mark, encoding="utf-8") as file:
            git = file.read(4_096).removeprefix("gitdir:").strip()
        with open(os.path.join(git, "gitdir"), encoding="utf-8") as file:
            is_listed = os.path.realpath(file.read(4_096).strip()) == os.path.realpath(mark)
    except (OSError, UnicodeDecodeError):
        return ""
    found = git.partition(f"{os.sep}.git{os.sep}worktrees{os.sep}")[0]
    return os.path.realpath(found) if is_listed and found != git else ""
