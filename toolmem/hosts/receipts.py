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

from toolmem.hosts.receipts_file import bounded, insert_receipt, put_away_others, read_json
from toolmem.hosts.shown_receipts import ShownReceipts

COSTS = ("session_start", "subagent_start", "prompt")  # events at which toolmem adds to the model's context
ONCE = "once"  # the effect of what lets one call through
_LONGEST_NOTE = 20_000
_MOST_SESSIONS = 50  # of one agent's process
_LONGEST_CALL = 900.0  # seconds after which a call whose end nobody told is taken for ended
_AT_ONCE = 2.0  # seconds within which calls begin that run beside one another


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


class Answered(NamedTuple):
    """What became of an event that another process was the first to be told of."""

    began: float
    ended: float | None
    error: str
    note: Any
    is_newest: bool  # no call of its session has ended since, and its user said nothing


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
    """A demand that holds for one session; where there is an effect, what is checked of one, or lets a call through."""

    turn: int
    tool: str
    rule: str
    effect: str = ""  # deny, ask; once
    when: Any = None  # the condition of the calls that are meant


class Install(NamedTuple):
    """Hooks that stand in an agent's settings."""

    host: str
    scope: str  # project, user
    place: str  # the project's folder; "" of the user's
    command: tuple[str, ...]
    files: tuple[str, ...]  # what was written
    at: float


class Receipts(ShownReceipts):
    """Opened when it is first needed. Nothing here raises for what the file is or holds."""

    # -- receipts

    def begin(
        self, host: str, session: str, event: str, key: str, *, within: float | None = None, store: str = ""
    ) -> bool:
        """Is this process the first that is told of the event? Then it is the one that acts on it.

        `event`: its kind. `within`: seconds after which an event with the same key is another one, None: never; a
        prompt is, too, where anything else was told of since, which an agent does not do before all have heard it.
        `store`: what the process acts on. A file that cannot be asked answers yes.
        """
        now = time.time()

        def claim(db: apsw.Connection) -> bool:
            place = _place(session, event, key)
            if within is not None:
                put_away_others(db, *place, now - within)
            return insert_receipt(db, host, session, event, key, store)

        return self._write(claim, True)

    def end(self, session: str, event: str, key: str, *, action: str = "", error: str = "", note: Any = None) -> None:
        """How it was answered. `note`: JSON for `note_of`, such as the decision on a call that has yet to end."""
        text = None if note is None else json.dumps(note, ensure_ascii=False, default=str)
        if text is not None and len(text) > _LONGEST_NOTE:
            text = None
        self._do(
            "UPDATE receipts SET ended = ?, action = ?, error = ?, note = ? "
            "WHERE session = ? AND event = ? AND key = ?",
            *(time.time(), bounded(action), bounded(error), text),
            *_place(session, event, key),
        )

    def is_of_other_store(self, session: str, event: str, key: str, store: str) -> bool:
        """Did the first that was told of the event act on another store?"""
        sql = "SELECT store FROM receipts WHERE session = ? AND event = ? AND key = ?"
        rows = self._rows(sql, *_place(session, event, key))
        return bool(rows) and rows[0][0] != bounded(store)

    def answered(self, session: str, event: str, key: str) -> Answered | None:
        sql = (
            "SELECT began, ended, error, note, NOT EXISTS (SELECT 1 FROM receipts WHERE session = one.session AND "
            "event IN ('after_call', 'prompt') AND number > one.number) FROM receipts AS one "
            "WHERE session = ? AND event = ? AND key = ?"
        )
        rows = self._rows(sql, *_place(session, event, key))
        if not rows:
            return None
        began, ended, error, note, is_newest = rows[0]
        return Answered(began, ended, error, read_json(note), bool(is_newest))

    def note_of(self, session: str, event: str, key: str) -> Any:
        """What `end` noted; None where there is nothing."""
        sql = "SELECT note FROM receipts WHERE session = ? AND event = ? AND key = ?"
        rows = self._rows(sql, *_place(session, event, key))
        return read_json(rows[0][0]) if rows else None

    def newest_note(self, session: str, event: str, beginning: str) -> Any:
        """What `end` noted of the newest event of this kind whose key begins so, a space after it."""
        sql = (
            "SELECT note FROM receipts WHERE session = ? AND event = ? AND key >= ? || ' ' AND key < ? || '!' "
            "ORDER BY number DESC LIMIT 1"
        )
        rows = self._rows(sql, bounded(session), event, beginning, beginning)
        return read_json(rows[0][0]) if rows else None

    def last_prompt(self, session: str) -> tuple[float, Any]:
        """When the newest message of the user's came that was answered, and what was noted of it; (0, None): none."""
        sql = (
            "SELECT began, note FROM receipts WHERE session = ? AND event = 'prompt' AND note NOTNULL "
            "ORDER BY number DESC LIMIT 1"
        )
        rows = self._rows(sql, bounded(session))
        return (rows[0][0], read_json(rows[0][1])) if rows else (0.0, None)

    def stopped_last(self, session: str) -> Any:
        """What was noted of the newest call of the session that was stopped; None where none was."""
        sql = (
            "SELECT note FROM receipts WHERE session = ? AND event = 'before_call' AND action IN ('deny', 'ask') "
            "ORDER BY number DESC LIMIT 1"
        )
        rows = self._rows(sql, bounded(session))
        return read_json(rows[0][0]) if rows else None

    def asked_since(self, session: str, began: float) -> bool:
        """Was the model asked anything at a turn's end since then?"""
        sql = "SELECT 1 FROM receipts WHERE session = ? AND event = 'turn_end' AND action = 'ask' AND began > ? LIMIT 1"
        return bool(self._rows(sql, bounded(session), began))

    def call_before(self, session: str, calls: int) -> float:
        """When the call began that so many others have followed; 0: there is none."""
        sql = (
            "SELECT began FROM receipts WHERE session = ? AND event = 'before_call' ORDER BY number DESC "
            "LIMIT 1 OFFSET ?"
        )
        rows = self._rows(sql, bounded(session), calls)
        return float(rows[0][0]) if rows else 0.0

    def of_session(self, session: str) -> list[Receipt]:
        """In the order in which they came."""
        sql = (
            "SELECT session, event, key, host, began, ended, action, error FROM receipts WHERE session = ? "
            "ORDER BY number"
        )
        return [Receipt(*row) for row in self._rows(sql, bounded(session))]

    def counts(self, *, session: str = "", host: str = "", since: float = 0.0) -> dict[tuple[str, str], int]:
        """(kind of event, what was answered) -> how many. "" and 0: of all."""
        sql = (
            "SELECT event, action, count(*) FROM receipts WHERE (?1 = '' OR session = ?1) AND (?2 = '' OR host = ?2) "
            "AND began >= ?3 GROUP BY event, action"
        )
        return {(event, action): count for event, action, count in self._rows(sql, bounded(session), host, since)}

    def tokens(self, *, host: str = "") -> dict[str, tuple[int, int]]:
        """Kind of event -> how many put something before the model, and how many tokens. "": of all agents."""
        sql = (
            "SELECT event, count(*), total(json_extract(note, '$.tokens')) FROM receipts WHERE event IN (?, ?, ?) "
            "AND (? = '' OR host = ?) AND json_valid(note) AND json_type(note, '$.tokens') = 'integer' GROUP BY event"
        )
        return {event: (times, int(count)) for event, times, count in self._rows(sql, *COSTS, host, host)}

    # -- sessions

    def note_session(
        self, session: str, *, host: str = "", cwd: str = "", project: str = "", transcript: str = ""
    ) -> SessionNotes:
        """What is remembered of the session; what is told first stays, what is not told is taken later."""
        told = (bounded(session), bounded(host), cwd, project, transcript)
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
        return self._looked(lambda db: _session(db, session), None)

    def sessions(self, *, host: str = "", most: int = 100) -> list[SessionNotes]:
        """The newest first."""
        sql = f"{_SESSION} WHERE (?1 = '' OR host = ?1) ORDER BY number DESC LIMIT ?2"
        return [SessionNotes(*row) for row in self._rows(sql, host, most)]

    def new_turn(self, session: str) -> int | None:
        """The number of the user's message that came now, from 1; None where nobody can count."""
        sql = "UPDATE sessions SET turns = turns + 1, ended = NULL WHERE session = ? RETURNING turns"

        def count(db: apsw.Connection) -> int | None:
            row = db.execute(sql, (bounded(session),)).fetchone()
            return cast("int", row[0]) if row else None

        return self._write(count, None)

    def session_ended(self, session: str) -> None:
        """One row, at once: some agents wait a second and a half for it."""
        self._do("UPDATE sessions SET ended = ? WHERE session = ?", time.time(), bounded(session))

    def forget(self, session: str) -> None:
        """A session that was made up to try the hooks."""
        name = bounded(session)
        self._do("DELETE FROM receipts WHERE session = ?", name)
        self._do("DELETE FROM sessions WHERE session = ?", name)
        self._do("DELETE FROM agents WHERE session = ?", name)

    # -- the agents' processes

    def note_agent(self, session: str, pid: int, began: str) -> None:
        """A process whose hooks told of a session. `began`: what tells it from others with its id."""
        row = (pid, bounded(began), bounded(session))
        if not self._rows("SELECT 1 FROM agents WHERE pid = ? AND process = ? AND session = ?", *row):
            self._do("INSERT OR IGNORE INTO agents (pid, process, session) VALUES (?, ?, ?)", *row)

    def knows_agent(self, session: str) -> bool:
        """Is a process of this session's agent noted?"""
        return bool(self._rows("SELECT 1 FROM agents WHERE session = ? LIMIT 1", bounded(session)))

    def is_agent(self, pid: int, began: str) -> bool:
        """Did hooks of this process tell of a session?"""
        return bool(self._rows("SELECT 1 FROM agents WHERE pid = ? AND process = ? LIMIT 1", pid, bounded(began)))

    def sessions_of(self, pid: int, began: str) -> list[str]:
        """Those that an agent's process runs, the newest first."""
        sql = "SELECT session FROM agents WHERE pid = ? AND process = ? ORDER BY number DESC LIMIT ?"
        return [row[0] for row in self._rows(sql, pid, bounded(began), _MOST_SESSIONS)]

    def call_under_way(self, session: str, pid: int = 0, began: str = "", *, named: bool = True) -> bool:
        """Is a call of this session, or of another one of the same agent's process, let through and not at its end?

        Only the newest calls of a session are looked at, of the last minutes, and those since its last message: of some
        calls nobody tells the end. `named`: calls bear ids; else any end that comes later is theirs.
        """
        oldest, of_agent = time.time() - _LONGEST_CALL, self.sessions_of(pid, began)
        return any(self._rows(_UNDER_WAY, each, oldest, named) for each in {bounded(session), *of_agent})

    # -- what was said for a session alone

    def demands(self, session: str) -> list[SaidHere]:
        """Those that hold in it; a session without a name has none, as it might be any."""
        sql = "SELECT turn, tool, rule, effect, condition FROM demands WHERE session = ? ORDER BY number"
        rows = self._rows(sql, bounded(session))
        return [SaidHere(turn, tool, rule, effect, read_json(when)) for turn, tool, rule, effect, when in rows]

    def set_demands(self, session: str, demands: Iterable[SaidHere]) -> None:
        """Those that hold from now on, in place of all before."""
        rows = [(bounded(session), *each[:4], json.dumps(each.when)) for each in demands if session]

        def keep(db: apsw.Connection) -> None:
            db.execute("DELETE FROM demands WHERE session = ?", (bounded(session),))
            db.executemany(
                "INSERT INTO demands (session, turn, tool, rule, effect, condition) VALUES (?, ?, ?, ?, ?, ?)", rows
            )

        self._write(keep, None)

    def take_demand(self, session: str, demand: SaidHere) -> bool:
        """Take one away, in one transaction; False where it is gone already."""
        sql = "DELETE FROM demands WHERE session = ? AND tool = ? AND effect = ? AND condition = ?"
        row = (bounded(session), demand.tool, demand.effect, json.dumps(demand.when))

        def take(db: apsw.Connection) -> bool:
            db.execute(sql, row)
            return db.changes() > 0

        return self._write(take, False)

    def add_demand(self, session: str, demand: SaidHere) -> None:
        sql = "INSERT INTO demands (session, turn, tool, rule, effect, condition) VALUES (?, ?, ?, ?, ?, ?)"
        self._do(sql, bounded(session), *demand[:4], json.dumps(demand.when))

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


# `since`: when the session's last message was read, whose own receipt has its end.
_UNDER_WAY = f"""
WITH since AS (
  SELECT max(?2, coalesce(max(began), 0)) AS at FROM receipts WHERE session = ?1 AND event = 'prompt' AND ended NOTNULL
), calls AS (
  SELECT key, number, receipts.began FROM receipts, since WHERE session = ?1 AND event = 'before_call'
  AND receipts.began > since.at AND ended NOTNULL AND action NOT IN ('deny', 'ask', 'noted')
  AND key NOT GLOB '* #[0-9]*'
)
SELECT 1 FROM calls WHERE began >= (SELECT max(began) FROM calls) - {_AT_ONCE} AND NOT EXISTS (
  SELECT 1 FROM receipts AS past WHERE past.session = ?1 AND past.event = 'after_call'
  AND (past.key = calls.key OR (NOT ?3 AND past.number > calls.number))
) LIMIT 1"""

_SESSION = "SELECT session, host, cwd, project, transcript, began, ended, turns FROM sessions"


def _session(db: apsw.Connection, session: str) -> SessionNotes | None:
    row = db.execute(f"{_SESSION} WHERE session = ?", (bounded(session),)).fetchone()
    return SessionNotes(*cast("tuple[Any, ...]", row)) if row else None


def _place(session: str, event: str, key: str) -> tuple[str, str, str]:
    return bounded(session), event, bounded(key)


def _texts(text: str) -> tuple[str, ...]:
    with suppress(ValueError):
        read = json.loads(text)
        if isinstance(read, list):
            return tuple(map(str, read))
    return ()
