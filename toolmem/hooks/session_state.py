"""The state of one session between its hooks: one record of the store, changed by swap.

Each hook is a process of its own, and several run at once. An event that comes twice (from two
installs, or from an agent that repeats it) acts once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from msgspec import Struct

from toolmem.config.sections import WORKSPACE
from toolmem.models.decisions import Decision
from toolmem.models.protocols import Store
from toolmem.rules.identity import SESSION_PREFIX, session_key
from toolmem.store.storable import read_or_new, swap

Result = TypeVar("Result")
NAMESPACE = ".hooks"
MAX_CALLS = 100
MAX_OTHERS = 200  # prompts, events, ids of requests
MAX_AGE = timedelta(days=30)


class SessionCall(Struct, omit_defaults=True):
    """A call of the session: the decisions on it, and whether it ended."""

    key: str  # the agent's id of the call
    digest: str  # of its tool and input
    record_id: str  # of the stored call
    decisions: list[Decision] = []  # one for each store
    rules_stamp: str = ""  # of the rules that decided
    began: float = 0.0  # seconds since the epoch
    ended: bool = False
    closed: bool = False  # another event came before it ran: its question was answered no

    @property
    def is_question(self) -> bool:
        """Whether the user may still answer the question about this call, and so lift a rule."""
        asks = (s.asks for each in self.decisions if each.action == "ask" for s in each.sources)
        return not self.ended and not self.closed and any(asks)


class Session(Struct, omit_defaults=True):
    """The newest prompts, events and calls of a session."""

    prompts: list[str] = []  # what the user typed
    said_at: list[datetime] = []  # when they typed each
    rejections: list[str] = []  # what a transcript says that they typed on rejecting calls
    turn: int = 0
    events: list[str] = []  # ids of prompts that were acted on
    calls: list[SessionCall] = []
    shown: list[str] = []  # digests of the requests that the user has seen
    notices: list[str] = []  # for the user, at the next prompt
    told: list[str] = []  # `Stores.warnings` that the user has been told

    def open_call(self, key: str, digest: str, *, by_input: bool = False) -> SessionCall | None:
        """Find the newest unended call with the id `key` and the input `digest`, else with this id.

        If `by_input`, else with this input, for agents that give no ids. Returns None if none fits.
        """
        open_calls = [call for call in reversed(self.calls) if not call.ended]
        same_input = [call for call in open_calls if call.digest == digest]
        same_id = [call for call in open_calls if key and call.key == key]
        both = [call for call in same_input if call.key == key]
        return next(iter([*both, *same_id, *(same_input if by_input else [])]), None)


class SessionState:
    """Reads and changes the stored `Session` of one session of an agent."""

    def __init__(self, store: Store, session: str) -> None:
        self.store = store
        self.key = session_key(session)

    def read(self) -> tuple[Session, str]:
        """The session, and the stamp (the version) of the store's rules."""
        snapshot = self.store.get_many(WORKSPACE, [(NAMESPACE, self.key)])
        (record,) = snapshot.records
        return read_or_new(record, Session), snapshot.rules_stamp

    def change(self, change: Callable[[Session], Result]) -> Result:
        """Let `change` edit the stored session; return its result. It may run more than once."""

        def bounded(session: Session) -> Result:
            result = change(session)
            del session.calls[:-MAX_CALLS]
            del session.said_at[:-MAX_OTHERS]
            for entries in (session.prompts, session.events, session.shown, session.rejections):
                del entries[:-MAX_OTHERS]
            return result

        return swap(self.store, WORKSPACE, (NAMESPACE, self.key), Session, bounded)

    def notify(self, messages: Sequence[str]) -> None:
        """Keep messages for the user, who sees them at the next prompt."""
        self.change(lambda session: session.notices.extend(messages))

    def set_told(self, warnings: list[str]) -> None:
        """Store the warnings of which the user has been told already."""
        self.change(lambda session: setattr(session, "told", warnings))


def forget_old_sessions(store: Store, now: datetime) -> None:
    """Delete the state of sessions without an event for 30 days."""
    for record in store.list_records(WORKSPACE, NAMESPACE, key_prefix=SESSION_PREFIX):
        if now - record.time_modified > MAX_AGE:
            store.delete(WORKSPACE, NAMESPACE, record.key)
