"""What the user typed in each session, masked, and what became of the notes that a model made of it.

A small file of the state folder beside the receipts: a quote from any earlier prompt of the session can be verified,
and the program `toolmem note` finds what a hook decided. It is forgotten after a week.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from toolmem.hosts.receipts_file import bounded, read_json
from toolmem.store.state_file import StateFile

if TYPE_CHECKING:
    import apsw

    from toolmem.rules.evidence import UserEvidence

KEPT = 7 * 24 * 3600.0  # seconds
LONGEST_PROMPT = 20_000  # characters of a prompt that are kept: its beginning
MOST_PROMPTS = 500  # of one session; the oldest go
MOST_CHARACTERS = 8_000_000  # of all prompts
_MOST_ROWS = {"outcomes": 500, "refusals": 500}
_ANSWERED_WITHIN = 15 * 60.0  # seconds in which the program that a hook let through asks for its outcome


class KeptPrompt(NamedTuple):
    """A prompt that a person typed."""

    text: str  # masked
    at: float  # seconds since 1970
    evidence: UserEvidence | None  # that nobody but the user can have typed it, and that it is plain


class PromptsFile(StateFile):
    """As `StateFile`. Nothing here raises for what the file is or holds."""

    file = "prompts.db"
    application = 0x746D6865
    schema = """
CREATE TABLE IF NOT EXISTS prompts (
  number INTEGER PRIMARY KEY, session TEXT NOT NULL, at REAL NOT NULL, text TEXT NOT NULL, evidence TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS prompts_of ON prompts (session);
CREATE TABLE IF NOT EXISTS outcomes (
  number INTEGER PRIMARY KEY, note TEXT NOT NULL, at REAL NOT NULL, outcome TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS refusals (
  number INTEGER PRIMARY KEY, session TEXT NOT NULL, quote TEXT NOT NULL, count INTEGER NOT NULL,
  UNIQUE (session, quote));
"""

    # -- prompts

    def keep_prompt(self, session: str, prompt: str, evidence: UserEvidence | None) -> None:
        """A session without a name might be any: nothing is kept of it."""
        if not session:
            return
        told = "" if evidence is None else json.dumps({**evidence._asdict(), "words": masked(evidence.words)})
        now = time.time()
        text = masked(prompt[:LONGEST_PROMPT])

        def keep(db: apsw.Connection) -> None:
            db.execute("DELETE FROM prompts WHERE at < ?", (now - KEPT,))
            db.execute(
                "INSERT INTO prompts (session, at, text, evidence) VALUES (?, ?, ?, ?)",
                (bounded(session), now, text, told),
            )
            db.execute(
                "DELETE FROM prompts WHERE number <= (SELECT number FROM prompts WHERE session = ?1 "
                "ORDER BY number DESC LIMIT 1 OFFSET ?2) AND session = ?1",
                (bounded(session), MOST_PROMPTS),
            )
            db.execute(
                "DELETE FROM prompts WHERE number <= (SELECT number FROM (SELECT number, sum(length(text)) OVER "
                "(ORDER BY number DESC) AS held FROM prompts) WHERE held > ? ORDER BY number DESC LIMIT 1)",
                (MOST_CHARACTERS,),
            )

        self._write(keep, None)

    def prompts(self, session: str) -> list[KeptPrompt]:
        """Of this session, the oldest first."""
        from toolmem.rules.evidence import UserEvidence

        sql = "SELECT text, at, evidence FROM prompts WHERE session = ? AND at >= ? ORDER BY number"
        found = []
        for text, at, told in self._rows(sql, bounded(session), time.time() - KEPT) if session else ():
            read = read_json(told)
            found.append(KeptPrompt(text, at, UserEvidence(**read) if isinstance(read, dict) else None))
        return found

    # -- notes

    def keep_outcome(self, note: str, outcome: Mapping[str, Any]) -> None:
        """`note`: the text of the heredoc."""
        row = (_digest(note), time.time(), json.dumps(outcome, ensure_ascii=False, default=str))
        self._write(self._adding("outcomes", "note, at, outcome", row), None)

    def outcome_of(self, note: str) -> dict[str, Any] | None:
        """What a hook decided a moment ago on a note of this text; None where none did."""
        sql = "SELECT outcome FROM outcomes WHERE note = ? AND at >= ? ORDER BY number DESC LIMIT 1"
        rows = self._rows(sql, _digest(note), time.time() - _ANSWERED_WITHIN)
        found = read_json(rows[0][0]) if rows else None
        return found if isinstance(found, dict) else None

    def refused(self, session: str, quote: str) -> int:
        """How often a note with this quote was refused in the session, now included."""
        place = (bounded(session), _digest(quote))

        def count(db: apsw.Connection) -> int:
            self._adding("refusals", "session, quote, count", (*place, 0), or_else="IGNORE")(db)
            sql = "UPDATE refusals SET count = count + 1 WHERE session = ? AND quote = ? RETURNING count"
            row = db.execute(sql, place).fetchone()
            return int(str(row[0])) if row else 1

        return self._write(count, 1)

    @staticmethod
    def _adding(
        table: str, columns: str, row: tuple[Any, ...], or_else: str = "ABORT"
    ) -> Callable[[apsw.Connection], None]:
        def add(db: apsw.Connection) -> None:
            marks = ", ".join("?" * len(row))
            db.execute(f"INSERT OR {or_else} INTO {table} ({columns}) VALUES ({marks})", row)
            db.execute(
                f"DELETE FROM {table} WHERE number <= (SELECT max(number) FROM {table}) - ?", (_MOST_ROWS[table],)
            )

        return add


# Until the hook's process ends, as closing brings the log home, and as who may only read needs the log beside the file.
_left_open: list[PromptsFile] = []


def prompts_here() -> PromptsFile:
    """For one event of a hook."""
    _left_open[:] = [PromptsFile()]
    return _left_open[0]


def masked(text: str) -> str:
    """Without its secrets."""
    from toolmem.readers.masking import SecretMask

    return SecretMask(lambda _: "[masked]").text(text)


def _digest(text: str) -> str:
    return sha256(text.strip().encode("utf-8", "surrogatepass")).hexdigest()
