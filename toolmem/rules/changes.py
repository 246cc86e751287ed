"""Decide who may change a rule: loosening a user's rule needs evidence, restricting does not.

Evidence is what the user typed, or a command in an interactive terminal. An agent's change is
always a request; a program's is one where it loosens a user's rule in a store that an installed
hook or proxy marked guarded. `swap` changes a record by compare-and-swap.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from time import sleep
from typing import TypeVar

from msgspec import Struct

from toolmem.errors import Conflict
from toolmem.models.protocols import Store
from toolmem.models.records import Record
from toolmem.models.rules import RANK, Change, Evidence, Speaker, ToolMemoryRule
from toolmem.rules.identity import text_key

Written = TypeVar("Written")
Content = TypeVar("Content")

MAX_CHANGES = 20
ATTEMPTS = 50  # of a write that meets a conflict
ONLY_ASKS = "only-asks"  # the tag of a ban that asks, as its condition is far wider than the words
MAX_WORDS = 500  # of the user or the agent, kept with a change
_STRICTNESS = {"remind": 0, "ask": 1, "deny": 2}
_COMPARED = ("rule", "priority", "effect", "when", "unless", "expires_at", "tags", "status")


class Actor(Struct, frozen=True):
    """Who changes a rule, and the evidence that the user wants it."""

    kind: Speaker = "program"
    evidence: Evidence = ""
    words: str = ""
    session: str = ""
    name: str = ""  # of the agent or model


PROGRAM = Actor()


def loosens(before: ToolMemoryRule, after: ToolMemoryRule, now: datetime) -> bool:
    """Decide whether a change loosens a rule. One that does not hold cannot be loosened."""
    if not before.holds_at(now):
        return False
    if not after.holds_at(now):
        return True
    ends = after.expires_at
    return (
        text_key(before.rule) != text_key(after.rule)
        or RANK[after.priority] > RANK[before.priority]
        or _STRICTNESS[after.effect] < _STRICTNESS[before.effect]
        or (before.is_checked and any(each not in after.when for each in before.when))
        or (before.is_checked and any(each not in before.unless for each in after.unless))
        or (before.is_users and not after.is_users)
        or (ends is not None and (before.expires_at is None or ends < before.expires_at))
    )


def is_allowed(
    before: ToolMemoryRule, after: ToolMemoryRule, actor: Actor, now: datetime, *, guarded: bool
) -> bool:
    """Decide whether a change is made; otherwise it is stored as a request."""
    if actor.kind == "agent":  # evidence of what it asks for: the user typed the words
        return False
    if actor.evidence and actor.kind == "user":
        return True
    return not (guarded and before.is_users and loosens(before, after, now))


def change_of(
    before: ToolMemoryRule, after: ToolMemoryRule, actor: Actor, now: datetime, what: str
) -> Change:
    """Record a change, with the fields that differ, before and after."""
    names = [name for name in _COMPARED if getattr(before, name) != getattr(after, name)]
    return Change(
        now,
        actor.kind,
        what,
        actor.evidence,
        actor.words[:MAX_WORDS],
        actor.session,
        before={name: getattr(before, name) for name in names},
        after={name: getattr(after, name) for name in names},
    )


def retry_on_conflict(write: Callable[[], Written]) -> Written:
    """Call `write` again while others change the same record. Raises Conflict after 50 times."""
    for attempt in range(ATTEMPTS):
        try:
            return write()
        except Conflict:
            import random

            sleep(random.random() * 0.002 * min(attempt + 1, 20))
    return write()


def swap(
    store: Store,
    workspace: str,
    place: tuple[str, str],
    kind: type[Content],
    change: Callable[[Content], Written],
) -> Written:
    """Let `change` edit the record at `place` (namespace, key), and return what it returns."""

    def write() -> Written:
        record = store.get(workspace, *place)
        content = read_or_new(record, kind)
        result = change(content)
        version = 0 if record is None else record.version
        store.put(workspace, *place, content, expected_version=version)
        return result

    return retry_on_conflict(write)


def read_or_new(record: Record | None, kind: type[Content]) -> Content:
    """A missing or damaged record counts as an empty one."""
    try:
        return kind() if record is None else record.read(kind)
    except ValueError:
        return kind()
