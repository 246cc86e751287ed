"""What hooks remember between their processes, in one small SQLite file of the user's state folder.

A receipt for each event (also what says that a second install need not act on it), what was decided on a call until it
has ended, what a session was told that holds for it alone, where it began, and what was installed. Whatever is wrong
with the file, the agent goes on: what cannot be read is empty, what cannot be written is left.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

import apsw

from toolmem.hosts.receipts_file import ReceiptsFile, drop_oldest

_LOOK_EVERY = 256  # receipts between two looks at how many there are
_LONGEST = 300  # characters of a name or key
_LONGEST_NOTE = 20_000


class Receipt(NamedTuple):
    """One event that a hook was told of."""

    session: str
    event: str  # its kind
    key: str
    host: str
    began: float  # seconds since 1970
    ended: float | None  # None: the hook did not come to its end
    action: str  # what was answered
    error: str  # of ours


class SessionNotes(NamedTuple):
    """What is remembered of a session."""

    session: str
    host: str
    cwd: str  # the first that was told
    project: str
    transcript: str
    began: float
    ended: float | None
    turns: int  # messages of the user


class SaidHere(NamedTuple):
    """A demand that holds for one session; where there is an effect, what is checked of one."""

    turn: int
    tool: str
    rule: str
    effect: str = ""  # deny, ask
    when: Any = None  # the condition of the calls that are meant


class Install(NamedTuple):
    """Hooks that stand in an agent's settings."""

    host: str
    scope: str  # project, user
    place: str  # the project's folder; "" of the user's
    command: tuple[str, ...]
    files: tuple[str, ...]  # what was written
    at: float


class Receipts(ReceiptsFile):
    """Opened when it is first needed. Nothing here raises for what the file is or holds."""

    # -- receipts

    def begin(
        self, host: str, session: str, event: str, key: str, *, within: float | None = None, store: str = ""
    ) -> bool:
        """Is this process the first that is told of the event? Then it is the one that acts on it.

        `event`: its kind. `within`: seconds after which an event with the same key is another one; None: never.
        `store`: what the process acts on. A file that cannot be asked answers yes.
        """
        now = time.time()

        def claim(db: apsw.Connection) -> bool:
            place = _place(session, event, key)
            if within is not None:
                db.execute(
                    "UPDATE receipts SET key = key || ' ' || number "
                    "WHERE session = ? AND event = ? AND key = ? AND began < ?",
                    (*place, now - within),
                )
            db.execute(
                "INSERT OR IGNORE INTO receipts (session, event, key, host, store, began) VALUES (?, ?, ?, ?, ?, ?)",
                (*place, _bounded(host), _bounded(store), now),
            )
            first = db.changes() > 0
            if first and db.last_insert_rowid() % _LOOK_EVERY == 0:
                drop_oldest(db)
            return first

        return self._write(claim, True)

    def end(self, session: str, event: str, key: str, *, action: str = "", error: str = "", note: Any = None) -> None:
        """How it was answered. `note`: JSON for `note_of`, such as the decision on a call that has yet to end."""
        text = None if note is None else json.dumps(note, ensure_ascii=False, default=str)
        if text is not None and len(text) > _LONGEST_NOTE:
            text = None
        self._do(
            "UPDATE receipts SET ended = ?, action = ?, error = ?, note = ? "
            "WHERE session = ? AND event = ? AND key = ?",
            *(time.time(), _bounded(action), _bounded(error), text),
            *_place(session, event, key),
        )

    def is_of_other_store(self, session: str, event: str, key: str, store: str) -> bool:
        """Did the first that was told of the event act on another store?"""
        sql = "SELECT store FROM receipts WHERE session = ? AND event = ? AND key = ?"
        rows = self._rows(sql, *_place(session, event, key))
        return bool(rows) and rows[0][0] != _bounded(store)

    def note_of(self, session: str, event: str, key: str) -> Any:
        """What `end` noted; None where there is nothing."""
        sql = "SELECT note FROM receipts WHERE session = ? AND event = ? AND key = ?"
        rows = self._rows(sql, *_place(session, event, key))
        return _json(rows[0][0]) if rows else None

    def newest_note(self, session: str, event: str, beginning: str) -> Any:
        """What `end` noted of the newest event of this kind whose key begins so, a space after it."""
        sql = (
            "SELECT note FROM receipts WHERE session = ? AND event = ? AND key >= ? || ' ' AND key < ? || '!' "
            "ORDER BY number DESC LIMIT 1"
        )
        rows = self._rows(sql, _bounded(session), event, beginning, beginning)
        return _json(rows[0][0]) if rows else None

    def of_session(self, session: str) -> list[Receipt]:
        """In the order in which they came."""
        sql = (
            "SELECT session, event, key, host, began, ended, action, error FROM receipts WHERE session = ? "
            "ORDER BY number"
        )
        return [Receipt(*row) for row in self._rows(sql, _bounded(session))]

    def counts(self, *, session: str = "", host: str = "", since: float = 0.0) -> dict[tuple[str, str], int]:
        """(kind of event, what was answered) -> how many. "" and 0: of all."""
        sql = (
            "SELECT event, action, count(*) FROM receipts WHERE (?1 = '' OR session = ?1) AND (?2 = '' OR host = ?2) "
            "AND began >= ?3 GROUP BY event, action"
        )
        return {(event, action): count for event, action, count in self._rows(sql, _bounded(session), host, since)}

    # -- sessions

    def note_session(
        self, session: str, *, host: str = "", cwd: str = "", project: str = "", transcript: str = ""
    ) -> SessionNotes:
        """What is remembered of the session; what is told first stays, what is not told is taken later."""
        told = (_bounded(session), _bounded(host), cwd, project, transcript)
        fresh = SessionNotes(*told, began=time.time(), ended=None, turns=0)
        known = self.session(session)
        if known is not None and all(have or not new for have, new in zip(known[1:5], told[1:], strict=True)):
            return known

        def keep(db: apsw.Connection) -> SessionNotes:
            db.execute(
                "INSERT INTO sessions (session, host, cwd, project, transcript, began) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (session) DO UPDATE SET host = iif(host = '', excluded.host, host), "
                "cwd = iif(cwd = '', excluded.cwd, cwd), project = iif(project = '', excluded.project, project), "
                "transcript = iif(transcript = '', excluded.transcript, transcript)",
                (*told, fresh.began),
            )
            return _session(db, session) or fresh

        return self._write(keep, known or fresh)

    def session(self, session: str) -> SessionNotes | None:
        return self._asked(lambda db: _session(db, session), None)

    def sessions(self, *, host: str = "", most: int = 100) -> list[SessionNotes]:
        """The newest first."""
        sql = f"{_SESSION} WHERE (?1 = '' OR host = ?1) ORDER BY number DESC LIMIT ?2"
        return [SessionNotes(*row) for row in self._rows(sql, host, most)]

    def new_turn(self, session: str) -> int | None:
        """The number of the user's message that came now, from 1; None where nobody can count."""
        sql = "UPDATE sessions SET turns = turns + 1, ended = NULL WHERE session = ? RETURNING turns"

        def count(db: apsw.Connection) -> int | None:
            row = db.execute(sql, (_bounded(session),)).fetchone()
            return cast("int", row[0]) if row else None

        return self._write(count, None)

    def session_ended(self, session: str) -> None:
        """One row, at once: some agents wait a second and a half for it."""
        self._do("UPDATE sessions SET ended = ? WHERE session = ?", time.time(), _bounded(session))

    def forget(self, session: str) -> None:
        """A session that was made up to try the hooks."""
        name = _bounded(session)
        self._do("DELETE FROM receipts WHERE session = ?", name)
        self._do("DELETE FROM sessions WHERE session = ?", name)

    # -- what was said for a session alone

    def demands(self, session: str) -> list[SaidHere]:
        """Those that hold in it; a session without a name has none, as it might be any."""
        sql = "SELECT turn, tool, rule, effect, condition FROM demands WHERE session = ? ORDER BY number"
        rows = self._rows(sql, _bounded(session))
        return [SaidHere(turn, tool, rule, effect, _json(condition)) for turn, tool, rule, effect, condition in rows]

    def set_demands(self, session: str, demands: Iterable[SaidHere]) -> None:
        """Those that hold from now on, in place of all before."""
        rows = [(_bounded(session), *each[:4], json.dumps(each.when)) for each in demands if session]

        def keep(db: apsw.Connection) -> None:
            db.execute("DELETE FROM demands WHERE session = ?", (_bounded(session),))
            db.executemany(
                "INSERT INTO demands (session, turn, tool, rule, effect, condition) VALUES (?, ?, ?, ?, ?, ?)", rows
            )

        self._write(keep, None)

    # -- installs

    def install_added(
        self, host: str, scope: str, place: str, *, command: Sequence[str], files: Iterable[str] = ()
    ) -> None:
        """`place`: the project's folder, "" for the user's. In the place of what stood there."""
        row = (host, scope, place, json.dumps(list(command)), json.dumps(list(files)), time.time())
        sql = "INSERT OR REPLACE INTO installs (host, scope, place, command, files, at) VALUES (?, ?, ?, ?, ?, ?)"
        self._do(sql, *row)

    def install_removed(self, host: str, scope: str, place: str) -> None:
        sql = "DELETE FROM installs WHERE host = ? AND scope = ? AND place = ?"
        self._do(sql, host, scope, place)

    def installs(self, host: str = "") -> list[Install]:
        sql = "SELECT host, scope, place, command, files, at FROM installs WHERE (?1 = '' OR host = ?1) ORDER BY at"
        return [
            Install(of, scope, place, _texts(command), _texts(files), at)
            for of, scope, place, command, files, at in self._rows(sql, host)
        ]


_SESSION = "SELECT session, host, cwd, project, transcript, began, ended, turns FROM sessions"


def _session(db: apsw.Connection, session: str) -> SessionNotes | None:
    row = db.execute(f"{_SESSION} WHERE session = ?", (_bounded(session),)).fetchone()
    return SessionNotes(*cast("tuple[Any, ...]", row)) if row else None


def _place(session: str, event: str, key: str) -> tuple[str, str, str]:
    return _bounded(session), event, _bounded(key)


def _bounded(text: str) -> str:
    """A name of any length, and of any characters, in few; two that differ stay different."""
    if len(text) <= _LONGEST and text.isprintable():
        return text
    from hashlib import sha256

    whole = text.encode("utf-8", "surrogatepass")
    return f"{whole[:_LONGEST].decode('utf-8', 'replace')} {sha256(whole).hexdigest()}"


def _json(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None


def _texts(text: str) -> tuple[str, ...]:
    with suppress(ValueError):
        read = json.loads(text)
        if isinstance(read, list):
            return tuple(map(str, read))
    return ()
