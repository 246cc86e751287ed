"""What is known of one session between its hooks: one record of the store, changed by swap.

Each hook is a process of its own, and several run at once. An event that is told twice (two
installs, an agent that asks again) acts once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, TypeVar

from msgspec import Struct

from toolmem.guard.stores import WORKSPACE
from toolmem.models.decisions import Decision
from toolmem.models.protocols import Store
from toolmem.rules.store import swap

Answered = TypeVar("Answered")
NAMESPACE = ".hooks"
MAX_CALLS = 100
MAX_KEPT = 200  # of everything else
KEPT = timedelta(days=30)


class BegunCall(Struct, omit_defaults=True):
    """A call whose hook ran before it."""

    key: str  # the agent's id of it
    digest: str  # of its tool and input
    record_id: str  # under which it is kept
    decisions: list[Decision] = []  # of each store
    rules_stamp: str = ""
    began: float = 0.0  # seconds since the epoch
    ended: bool = False


class Session(Struct, omit_defaults=True):
    """The newest of what a session said and did."""

    prompts: list[str] = []  # what the user typed
    turn: int = 0
    events: list[str] = []  # prompts that were acted on
    calls: list[BegunCall] = []
    shown: list[str] = []  # ids of requests that the user was told of

    def begun(self, key: str, digest: str, *, by_input: bool = False) -> BegunCall | None:
        """The newest call that has not ended: by id and input, else by id.

        `by_input`: of an agent that gives calls no ids, by input alone.
        """
        waiting = [call for call in reversed(self.calls) if not call.ended]
        same = [call for call in waiting if call.digest == digest]
        of_id = [call for call in waiting if key and call.key == key]
        both = [call for call in same if call.key == key]
        return next(iter([*both, *of_id, *(same if by_input else [])]), None)


class Ledger:
    """The record of one session."""

    def __init__(self, store: Store, session: str) -> None:
        self.store = store
        self.key = f"session/{session}"[:500]

    def read(self) -> tuple[Session, str]:
        """The session, and the stamp of the store's rules."""
        snapshot = self.store.get_many(WORKSPACE, [(NAMESPACE, self.key)])
        (record,) = snapshot.records
        return Session() if record is None else record.read(Session), snapshot.rules_stamp

    def change(self, change: Callable[[Session], Answered]) -> Answered:
        """Apply a change, again where another hook was faster; what it answered."""

        def bounded(session: Session) -> Answered:
            answered = change(session)
            del session.calls[:-MAX_CALLS]
            for kept in (session.prompts, session.events, session.shown):
                del kept[:-MAX_KEPT]
            return answered

        return swap(self.store, WORKSPACE, (NAMESPACE, self.key), Session, bounded)


def forget_old_sessions(store: Store, now: datetime) -> None:
    """Those that nothing was heard of for a month."""
    for record in store.list_records(WORKSPACE, NAMESPACE, key_prefix="session/"):
        if now - record.time_modified > KEPT:
            store.delete(WORKSPACE, NAMESPACE, record.key)


def digest_of(tool: str, given: Any) -> str:
    """The same for the same tool and input."""
    text = json.dumps([tool, given], sort_keys=True)
    return blake2b(text.encode(), digest_size=12).hexdigest()
