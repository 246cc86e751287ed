"""Receipts of calls that bear an id: one for each call, and not for each id, as some models begin again at `call_0`.

A call is its id, its tool and its input. The same once more is the same event, told by a second install, until the call
has ended; then it is another one, and the rows of the first are put away.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from toolmem.hosts.payloads import alike
from toolmem.hosts.receipts_file import ReceiptsFile, bounded, insert_receipt, read_json

if TYPE_CHECKING:
    import apsw

_LONGEST_ID = 150
_CONTENT = r"([0-9a-f]{24})( in [0-9a-f]{16})?( #\d+)?"  # behind an id: what the call is, which store, which of several
_IN_ID = 8  # characters of what a call is that stand in the id of a record


class CallKey(NamedTuple):
    """What tells a call from the others of its session."""

    call_id: str
    content: str

    @classmethod
    def of(cls, call_id: str, tool: str, arguments: Any) -> CallKey:
        return cls(call_id, alike(tool, arguments))

    @property
    def text(self) -> str:
        return f"{_short(self.call_id)} {self.content}"


class CallClaim(NamedTuple):
    """An event with its receipt. `is_first`: this process is to act on it."""

    key: str
    is_first: bool


class CallReceipts(ReceiptsFile):
    """What hooks were told of calls."""

    def claim_call(self, host: str, session: str, event: str, call: CallKey, store: str) -> CallClaim:
        """Who acts on an event of a call in this store. `event`: before_call or after_call."""

        def claim(db: apsw.Connection) -> CallClaim:
            rows = _live(db, session, call.text)
            if event == "before_call" and any(kind == "after_call" for kind, _, _ in rows):
                _put_away(db, session, call.text)
                rows = []
            begun = {key: of for kind, key, of in rows if kind == "before_call"}
            own = next((key for key, of in begun.items() if of == bounded(store)), "")
            if not own and event == "after_call" and not begun:  # another hook changed what the call is given
                own = _under_way(db, session, call, store)
            key = own or (f"{call.text} in {_hashed(store)[:16]}" if begun else call.text)
            is_new = insert_receipt(db, host, session, event, key, store)
            return CallClaim(key, is_new)

        return self._write(claim, CallClaim(call.text, True))

    def record_id(self, session: str, call: CallKey, key: str) -> str:
        """Under which a call that ended is kept: its own id, unless another call of the session had that."""
        where = "session = ? AND event = 'after_call' AND key >= ? AND key < ?"
        before = self._rows(
            f"SELECT count(*) FROM receipts WHERE {where}", bounded(session), f"{bounded(key)} #", f"{bounded(key)} #:"
        )
        others = self._rows(
            f"SELECT 1 FROM receipts WHERE {where} AND substr(key, 1, ?) <> ? LIMIT 1",
            *(bounded(session), *_range(call.call_id), len(call.text), call.text),
        )
        again = before[0][0] if before else 0
        return numbered(call, again, bool(others) or again > 0)

    def decided(self, session: str, call_id: str) -> Any:
        """What was noted of the newest call under an id before it ran; None where there is nothing."""
        sql = (
            "SELECT note FROM receipts WHERE session = ? AND event = 'before_call' "
            "AND (key = ? OR (key >= ? AND key < ?)) ORDER BY number DESC LIMIT 1"
        )
        rows = self._rows(sql, bounded(session), _short(call_id), *_range(call_id))
        return read_json(rows[0][0]) if rows else None


def numbered(call: CallKey, again: int, is_shared: bool) -> str:
    """The id of a record. `again`: how often the same call ended before it; `is_shared`: its id is another call's."""
    if not is_shared:
        return call.call_id
    return f"{call.call_id} {call.content[:_IN_ID]}{f' {again + 1}' if again else ''}"


def call_in(key: str) -> tuple[str, str] | None:
    """The id and the content of a call, by the key of its receipt; None for that of a second store, or of no call."""
    found = re.fullmatch(rf"(.*) {_CONTENT}", key, re.DOTALL)
    return (found[1], found[2]) if found and not found[3] else None


def _short(call_id: str) -> str:
    if len(call_id) <= _LONGEST_ID and call_id.isprintable():
        return call_id
    return _hashed(call_id)


def _range(call_id: str) -> tuple[str, str]:
    """Between which the keys of calls with this id lie."""
    return f"{_short(call_id)} ", f"{_short(call_id)}!"


def _hashed(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _live(db: apsw.Connection, session: str, call: str) -> list[tuple[str, str, str]]:
    """Kind, key and store of what was told of a call since it last ended and began again."""
    sql = (
        "SELECT event, key, store FROM receipts WHERE session = ? AND event IN ('before_call', 'after_call') "
        "AND (key = ? OR (key >= ? || ' in ' AND key < ? || ' in!')) AND key NOT GLOB '* #[0-9]*'"
    )
    return [(str(kind), str(key), str(of)) for kind, key, of in db.execute(sql, (bounded(session), call, call, call))]


def _put_away(db: apsw.Connection, session: str, call: str) -> None:
    db.execute(
        "UPDATE receipts SET key = key || ' #' || number WHERE session = ? AND event IN ('before_call', 'after_call') "
        "AND (key = ? OR (key >= ? || ' in ' AND key < ? || ' in!')) AND key NOT GLOB '* #[0-9]*'",
        (bounded(session), call, call, call),
    )


def _under_way(db: apsw.Connection, session: str, call: CallKey, store: str) -> str:
    """The key of the newest call with this id that has not ended; "" where there is none."""
    sql = (
        "SELECT key FROM receipts AS one WHERE session = ?1 AND event = 'before_call' AND key >= ?2 "
        "AND key < ?3 AND store = ?4 AND key NOT GLOB '* #[0-9]*' AND NOT EXISTS (SELECT 1 FROM receipts "
        "WHERE session = ?1 AND event = 'after_call' AND key = one.key) ORDER BY number DESC LIMIT 1"
    )
    row = db.execute(sql, (bounded(session), *_range(call.call_id), bounded(store))).fetchone()
    return str(row[0]) if row else ""
