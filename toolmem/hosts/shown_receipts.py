"""Receipts of what was put before a model, or is still to be told to its user."""

from __future__ import annotations

import time
from collections.abc import Iterable

from toolmem.hosts.call_receipts import CallReceipts
from toolmem.hosts.receipts_file import bounded

_UNTOLD = "untold"  # in the place of a session, as they are asked for from any; the session stands as the host


class ShownReceipts(CallReceipts):
    """Reminders that came, and notes that were kept where nothing is shown to the user."""

    def shown(self, session: str) -> dict[tuple[str, str], float]:
        """When the session last began and was compacted, and when each reminder last came: (kind, its rule's id)."""
        sql = (
            "SELECT event, iif(event = 'reminded', key, '') AS rule, max(began) FROM receipts WHERE session = ? "
            "AND event IN ('session_start', 'compaction', 'reminded') GROUP BY event, rule"
        )
        return {(event, rule): began for event, rule, began in self._rows(sql, bounded(session))}

    def note_shown(self, session: str, rules: Iterable[str]) -> None:
        """Reminders came just now."""
        self._note("reminded", session, rules)

    def note_untold(self, session: str, rules: Iterable[str]) -> None:
        """These were kept, and the user was shown nothing."""
        self._note(_UNTOLD, _UNTOLD, rules, bounded(session))

    def untold(self, session: str) -> list[str]:
        """Ids of rules that were kept so in other sessions, the oldest first."""
        sql = "SELECT key FROM receipts WHERE session = ?1 AND event = ?1 AND host <> ?2 ORDER BY number"
        return [str(key) for (key,) in self._rows(sql, _UNTOLD, bounded(session))]

    def told(self, rules: Iterable[str]) -> None:
        """The user is told of these now."""
        rows = [(_UNTOLD, bounded(each)) for each in rules]
        sql = "DELETE FROM receipts WHERE session = ?1 AND event = ?1 AND key = ?2"
        self._write(lambda db: db.executemany(sql, rows), None)

    def _note(self, event: str, session: str, keys: Iterable[str], of: str = "") -> None:
        sql = "INSERT OR REPLACE INTO receipts (session, event, key, host, began, ended) VALUES (?, ?, ?, ?, ?, ?)"
        now = time.time()
        rows = [(bounded(session), event, bounded(each), of, now, now) for each in keys]
        self._write(lambda db: db.executemany(sql, rows), None)
