"""The journal: which rules hold agents, what loosened them and why, in the user's state folder.

It outlives the stores. A rule that is just gone from its store, without evidence that its user wanted that, goes on
holding from here; whatever loosened one is kept with its evidence until the user was told. Each entry bears a digest
over itself and the one before. It is written when rules change, and when a hook's prompt or session start finds that
they did; who only looks makes, mends and writes nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import apsw

from toolmem.store.journal_changes import (
    COLUMNS,
    SCHEMA,
    SECONDS_OPEN,
    Changes,
    JournalEntry,
    KeptRule,
    KeptStore,
    Place,
    Proposal,
    digest_of,
    dump,
)
from toolmem.store.state_file import StateFile

T = TypeVar("T")
_MOST_LIFTED = 1_000  # entries that are looked through


class Journal(StateFile):
    """Nothing here raises for what the file is or holds; what cannot be read is empty."""

    file = "journal.db"
    application = 0x746D6A6C
    schema = SCHEMA

    # -- who only looks

    def store(self, store: str, workspace: str) -> KeptStore | None:
        sql = (
            "SELECT path, id, stamp, at, left_out, "
            "(SELECT count(*) FROM rules r WHERE r.store = s.store AND r.workspace = s.workspace) "
            "FROM stores s WHERE store = ? AND workspace = ?"
        )
        return next((KeptStore(*row) for row in self._rows(sql, store, workspace)), None)

    def stores(self, workspace: str) -> list[KeptStore]:
        found = self._rows("SELECT store FROM stores WHERE workspace = ? ORDER BY path", workspace)
        return [kept for (store,) in found if (kept := self.store(store, workspace)) is not None]

    def knows(self, store: str) -> bool:
        """Were agents held to a store's rules?"""
        return bool(self._rows("SELECT 1 FROM stores WHERE store = ? LIMIT 1", store))

    def rules(self, store: str, workspace: str, namespaces: Sequence[str] | None = None) -> list[KeptRule]:
        """Those that hold. `namespaces` None: of all tools."""
        sql = "SELECT namespace, key, text FROM rules WHERE store = ? AND workspace = ?"
        if namespaces is None:
            return [KeptRule(*row) for row in self._rows(sql, store, workspace)]
        sql += " AND namespace IN (SELECT value FROM json_each(?))"
        return [KeptRule(*row) for row in self._rows(sql, store, workspace, dump(namespaces))]

    def untold(self, store: str) -> list[JournalEntry]:
        """What its user was not told yet."""
        return self._entries("store IN (?, '') AND told = 0 ORDER BY number", store)

    def newest_lifted(self, store: str, code: str) -> JournalEntry | None:
        """What the code stands for among the rules that hold no longer, or less."""
        sql = "store = ? AND code = ? AND what IN ('lifted', 'let go') ORDER BY number DESC LIMIT 1"
        return next(iter(self._entries(sql, store, code)), None)

    def lifted(self, store: str) -> list[JournalEntry]:
        """What befell rules that hold no longer, or less, or did not then; the newest first."""
        sql = "store = ? AND what IN ('lifted', 'let go') ORDER BY number DESC LIMIT ?"
        return self._entries(sql, store, _MOST_LIFTED)

    def missing(self, store: str) -> list[Place]:
        """Where rules hold that are gone from their store."""
        sql = "SELECT store, workspace, namespace, key FROM rules WHERE store = ? AND told = 1"
        return [Place(*row) for row in self._rows(sql, store)]

    def proposals(self, store: str) -> list[Proposal]:
        """Those that wait, the oldest first."""
        sql = (
            "SELECT store, workspace, namespace, key, code, at, speaker, before, after, told FROM proposals "
            "WHERE store = ? AND at > ? ORDER BY at"
        )
        rows = self._rows(sql, store, time.time() - SECONDS_OPEN)
        return [Proposal(Place(*row[:4]), *row[4:]) for row in rows]

    def is_whole(self) -> bool:
        """Does every entry follow from the one before? Whoever changed one by hand did not reckon them all anew."""
        sql = f"SELECT {COLUMNS}, digest FROM entries ORDER BY number"
        before = ""
        for row in self._rows(sql):
            if before and row[-1] != digest_of(before, (row[1], *row[3:-1])):
                return False
            before = row[-1]
        return True

    def _entries(self, where: str, *values: Any) -> list[JournalEntry]:
        rows = self._rows(f"SELECT {COLUMNS} FROM entries WHERE {where}", *values)
        return [JournalEntry(row[0], row[1], Place(*row[2:6]), *row[6:]) for row in rows]

    def _looked(self, work: Callable[[apsw.Connection], T], otherwise: T) -> T:
        """One that is damaged stays in its place until somebody writes."""
        try:
            return work(self._opened()) if self._db is not None or self.path.exists() else otherwise
        except Exception as error:
            self.trouble = f"{type(error).__name__}: {error}"
            return otherwise

    def mark(self) -> tuple[str, int]:
        """Which file it is; 0 where there is none."""
        path = ""
        try:
            path = str(self.path)
            return path, os.stat(path).st_ino
        except OSError:
            return path, 0

    # -- who changes

    def changing(self, work: Callable[[Changes], T], otherwise: T) -> T:
        """One transaction; nobody else changes the journal meanwhile."""

        def whole(db: apsw.Connection) -> T:
            changes = Changes(db)
            if self._was_damaged:
                changes.enter(Place("", ""), "damaged", f"{self.path}.damaged")
            done = work(changes)
            self._was_damaged = False
            return done

        return self._write(whole, otherwise)

    _was_damaged = False

    def _put_aside(self) -> bool:
        self._was_damaged = super()._put_aside()
        return self._was_damaged


_here = threading.local()


def opened_here() -> Journal:
    """This thread's: opened once, and anew where another file took its place."""
    fresh = Journal()
    mark = (os.getpid(), fresh.mark())
    if getattr(_here, "mark", None) != mark:
        _here.mark, _here.journal = mark, fresh
    found: Journal = _here.journal
    return found
