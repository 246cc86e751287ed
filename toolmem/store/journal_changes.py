"""What the journal holds, and how it is changed inside one transaction."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import apsw

    from toolmem.store.journal import Journal

MAX_BYTES = 8_000_000  # of the rules of one store; those that only remind are left out first
MOST_ENTRIES = 10_000  # the oldest go
MOST_OPEN = 3  # proposals to lift of one store
SECONDS_OPEN = 7 * 86_400.0
CODE_LENGTH = 4
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"  # without those that are read as another
SCHEMA = """
CREATE TABLE stores (
  store TEXT NOT NULL, workspace TEXT NOT NULL, path TEXT NOT NULL, id TEXT NOT NULL, stamp TEXT NOT NULL,
  at REAL NOT NULL, left_out INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (store, workspace));
CREATE TABLE rules (
  store TEXT NOT NULL, workspace TEXT NOT NULL, namespace TEXT NOT NULL, key TEXT NOT NULL, checked INTEGER NOT NULL,
  size INTEGER NOT NULL, text TEXT NOT NULL, told INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX rules_of ON rules (store, workspace, namespace, key);
CREATE TABLE entries (
  number INTEGER PRIMARY KEY, at REAL NOT NULL, store TEXT NOT NULL, workspace TEXT NOT NULL, namespace TEXT NOT NULL,
  key TEXT NOT NULL, what TEXT NOT NULL, text TEXT NOT NULL, evidence TEXT NOT NULL, code TEXT NOT NULL,
  digest TEXT NOT NULL, told INTEGER NOT NULL);
CREATE INDEX entries_of ON entries (store, workspace, namespace, key);
CREATE INDEX entries_untold ON entries (store) WHERE told = 0;
CREATE TABLE proposals (
  store TEXT NOT NULL, workspace TEXT NOT NULL, namespace TEXT NOT NULL, key TEXT NOT NULL, code TEXT NOT NULL,
  at REAL NOT NULL, speaker TEXT NOT NULL, before TEXT NOT NULL, after TEXT, told INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (store, workspace, namespace, key));
"""

What = Literal["held", "lifted", "gone", "let go", "moved", "ended", "damaged"]


class Place(NamedTuple):
    """Where a rule stands: a store by `store_key`, a workspace, a namespace and a key in it."""

    store: str
    workspace: str
    namespace: str = ""
    key: str = ""


class KeptRule(NamedTuple):
    """A rule that holds, as its store had it."""

    namespace: str
    key: str
    text: str


class KeptStore(NamedTuple):
    """What is known of a store."""

    path: str
    id: str
    stamp: str  # of its rules when they were last compared
    at: float  # seconds since 1970
    left_out: int  # rules that found no room
    rules: int


class JournalEntry(NamedTuple):
    """Something that befell a rule, or a store."""

    number: int
    at: float
    place: Place
    what: What
    text: str  # the record of the rule as it held before; of a store: its path
    evidence: str  # JSON; "": none
    code: str  # by which the user names the rule


class Proposal(NamedTuple):
    """To let a rule bind less: its user accepts it by its code, or it ends."""

    place: Place
    code: str
    at: float
    speaker: str
    before: str  # the record of the rule
    after: str | None  # what it would be; None: deleted
    told: bool  # whether the user was shown it


def store_key(location: str) -> str:
    """Of the file at a path, in few characters."""
    return hashlib.blake2s(os.fsencode(os.path.realpath(location)), digest_size=16).hexdigest()


COLUMNS = "number, at, store, workspace, namespace, key, what, text, evidence, code"
_AT = "store = ? AND workspace = ? AND namespace = ? AND key = ?"


class Changes:
    """What is written in one transaction of the journal."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def rules(self, store: str, workspace: str) -> list[KeptRule]:
        """Those that hold."""
        sql = "SELECT namespace, key, text FROM rules WHERE store = ? AND workspace = ?"
        return [KeptRule(*row) for row in self._db.execute(sql, (store, workspace))]

    def hold(self, place: Place, text: str, *, checked: bool) -> None:
        """A rule holds from now on, as its record says; where there is no room, it is counted as left out."""
        known = self._db.execute(f"SELECT text FROM rules WHERE {_AT}", place).fetchone()
        if known is not None and known[0] == text:
            return
        self._db.execute(f"DELETE FROM rules WHERE {_AT}", place)
        self._db.execute(f"DELETE FROM proposals WHERE {_AT}", place)
        size = len(text.encode("utf-8", "surrogatepass"))
        if self._makes_room(place, size, checked=checked):
            row = (*place, checked, size, text)
            self._db.execute(
                "INSERT INTO rules (store, workspace, namespace, key, checked, size, text) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                row,
            )
        if known is None:
            self.enter(place, "held", told=True)

    def _makes_room(self, place: Place, size: int, *, checked: bool) -> bool:
        of_store = place[:1]
        (used,) = self._db.execute("SELECT total(size) FROM rules WHERE store = ?", of_store).fetchone()  # type: ignore[misc]
        if used + size <= MAX_BYTES:
            return True
        if checked:  # reminders go first
            self._db.execute("DELETE FROM rules WHERE store = ? AND NOT checked", of_store)
            gone = self._db.changes()
            (used,) = self._db.execute("SELECT total(size) FROM rules WHERE store = ?", of_store).fetchone()  # type: ignore[misc]
            self._leave_out(place, gone)
        if used + size <= MAX_BYTES:
            return True
        self._leave_out(place, 1)
        return False

    def _leave_out(self, place: Place, count: int) -> None:
        sql = "UPDATE stores SET left_out = left_out + ? WHERE store = ? AND workspace = ?"
        self._db.execute(sql, (count, *place[:2]))

    def lift(self, place: Place, before: str, evidence: str, *, what: What = "lifted") -> None:
        """A rule holds no longer, or less: `before` is what held. Two who tell the same are one."""
        known = self._db.execute(f"DELETE FROM rules WHERE {_AT} RETURNING text", place).fetchall()
        self.settle(place)
        sql = f"SELECT what FROM entries WHERE {_AT} ORDER BY number DESC LIMIT 1"
        newest = self._db.execute(sql, place).fetchone()
        if known or newest is None or newest[0] not in ("lifted", "let go"):
            self.enter(place, what, str(known[0][0]) if known else before, evidence)

    def drop(self, place: Place) -> None:
        """A rule that ended by itself."""
        self._db.execute(f"DELETE FROM rules WHERE {_AT}", place)

    def lose(self, place: Place, text: str) -> None:
        """A rule is gone from its store and goes on holding; entered once."""
        sql = f"UPDATE rules SET told = 1 WHERE {_AT} AND told = 0"
        self._db.execute(sql, place)
        if self._db.changes():
            self.enter(place, "gone", text)

    def is_back(self, place: Place) -> None:
        self._db.execute(f"UPDATE rules SET told = 0 WHERE {_AT} AND told = 1", place)

    def compared(self, place: Place, path: str, store_id: str, stamp: str) -> None:
        """The rules of a store are known as they are at this stamp."""
        sql = (
            "INSERT INTO stores (store, workspace, path, id, stamp, at) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (store, workspace) DO UPDATE SET id = excluded.id, stamp = excluded.stamp, at = excluded.at"
        )
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        self._db.execute(sql, (*place[:2], shown, store_id, stamp, time.time()))

    def take_over(self, store: str, store_id: str, path: str) -> None:
        """A store that lies at another path now keeps what is known of it, where nothing is left at the old one."""
        if self._db.execute("SELECT 1 FROM stores WHERE store = ?", (store,)).fetchone() or not store_id:
            return
        found = self._db.execute("SELECT DISTINCT store, path FROM stores WHERE id = ?", (store_id,)).fetchall()
        moved = [each for each in found if not os.path.lexists(str(each[1]))]
        if len(moved) != 1:
            return
        old, was = moved[0]
        for table in ("stores", "rules", "proposals", "entries"):
            self._db.execute(f"UPDATE {table} SET store = ? WHERE store = ?", (store, old))
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        self._db.execute("UPDATE stores SET path = ? WHERE store = ?", (shown, store))
        self.enter(Place(store, ""), "moved", str(was))

    def end(self, store: str, workspace: str, evidence: str) -> None:
        """Nothing holds any more of what is known of a store."""
        for table in ("rules", "proposals", "stores"):
            self._db.execute(f"DELETE FROM {table} WHERE store = ? AND workspace = ?", (store, workspace))
        self.enter(Place(store, workspace), "ended", "", evidence)

    def propose(self, place: Place, speaker: str, before: str, after: str | None) -> str:
        """The code that accepts it; "" where as many wait already as may."""
        self._db.execute("DELETE FROM proposals WHERE at <= ?", (time.time() - SECONDS_OPEN,))
        known = self._db.execute(f"SELECT code, before, after FROM proposals WHERE {_AT}", place).fetchone()
        if known is None:
            (waiting,) = self._db.execute("SELECT count(*) FROM proposals WHERE store = ?", place[:1]).fetchone()  # type: ignore[misc]
            if waiting >= MOST_OPEN:
                return ""
        elif known[1:] == (before, after):
            return str(known[0])
        code = self.code(place)
        sql = (
            "INSERT OR REPLACE INTO proposals (store, workspace, namespace, key, code, at, speaker, before, after) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        self._db.execute(sql, (*place, code, time.time(), speaker, before, after))
        return code

    def settle(self, place: Place) -> None:
        """A proposal is no longer one."""
        self._db.execute(f"DELETE FROM proposals WHERE {_AT}", place)

    def told(self, entries: Iterable[JournalEntry], proposals: Iterable[Proposal]) -> None:
        """Their user was."""
        self._db.executemany("UPDATE entries SET told = 1 WHERE number = ?", [(each.number,) for each in entries])
        self._db.executemany(f"UPDATE proposals SET told = 1 WHERE {_AT}", [each.place for each in proposals])

    def code(self, place: Place) -> str:
        """Of a rule: the same again, and no other rule's of this store."""
        sql = "SELECT 1 FROM {} WHERE code = ? AND store = ? AND (workspace, namespace, key) != (?, ?, ?)"
        for attempt in range(100):
            code = code_of(place.key, attempt)
            given = (code, *place)
            if not any(self._db.execute(sql.format(table), given).fetchone() for table in ("entries", "proposals")):
                return code
        return code_of(place.key, 100)

    def enter(self, place: Place, what: What, text: str = "", evidence: str = "", *, told: bool = False) -> None:
        """At the end of the journal; the oldest go."""
        code = self.code(place) if what in ("lifted", "let go") else ""
        row = (time.time(), *place, what, text, evidence, code)
        newest = self._db.execute("SELECT digest FROM entries ORDER BY number DESC LIMIT 1").fetchone()
        digest = digest_of(str(newest[0]) if newest else "", (row[0], *row[2:]))
        sql = (
            "INSERT INTO entries (at, store, workspace, namespace, key, what, text, evidence, code, digest, told) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        self._db.execute(sql, (*row, digest, told))
        if self._db.last_insert_rowid() % 256 == 0:
            last = "(SELECT max(number) FROM entries)"
            self._db.execute(f"DELETE FROM entries WHERE number <= {last} - ? AND told = 1", (MOST_ENTRIES,))


def code_of(key: str, attempt: int = 0) -> str:
    """Four characters that stand for a rule. `attempt`: where another rule has the former."""
    number = int.from_bytes(hashlib.sha256(f"{key} {attempt}".encode("utf-8", "surrogatepass")).digest()[:8])
    letters = []
    for _ in range(CODE_LENGTH):
        number, at = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[at])
    if not any(map(str.isdigit, letters)):  # so that no word is one
        letters[number % CODE_LENGTH] = _LETTERS[number % 8]
    return "".join(letters)


def digest_of(before: str, row: Sequence[Any]) -> str:
    """`row`: without the store, which may be moved."""
    return hashlib.sha256(f"{before}\n{dump(list(row))}".encode()).hexdigest()


def dump(value: Any) -> str:
    """As JSON of plain characters."""
    return json.dumps(value, ensure_ascii=True)


def journal_here() -> Journal:
    """This thread's journal; SQLite is loaded with it."""
    from toolmem.store.journal import opened_here

    return opened_here()
