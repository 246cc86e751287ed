"""The rules that the guard holds calls against, as they stand in the store, read when they changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolmem.guard.decision import CheckedRule
from toolmem.rules.checked_rules import checked_rules
from toolmem.rules.identity import RULE_PREFIX, TOOL_PREFIX, UNSCOPED, folded_name, namespace_of
from toolmem.rules.kept_rules import with_kept
from toolmem.rules.stored_rules import read_stored

if TYPE_CHECKING:
    from toolmem.protocols import Clock, MemoryStore


class GuardedRules:
    """The active rules of a workspace that can be checked, and the user's reminders, by tool.

    `of_called`: only those of the tools that are called are read, as a hook wants it, whose process lives for one call.
    Else all are, so that whatever is called next is held against its rules when the store is away.
    """

    def __init__(self, store: MemoryStore, workspace: str, clock: Clock, *, of_called: bool = False) -> None:
        self._store = store
        self._workspace = workspace
        self._clock = clock
        self._of_called = of_called
        self._stamp: str | None = None
        self._read: frozenset[str] = frozenset()  # tools
        self._by_tool: dict[str, list[CheckedRule]] = {}

    def known(self, tool_name: str, scopes: Sequence[str] = ()) -> bool:
        """Were those that bind a call of this tool ever read?"""
        return self._places(tool_name, scopes) <= self._read

    async def read_at(self, stamp: str, tool_name: str, scopes: Sequence[str] = ()) -> None:
        """Read what binds a call of this tool where it changed since. Raises StoreError."""
        places = self._places(tool_name, scopes)
        read = self._read if stamp == self._stamp else frozenset()
        if places <= read:
            return
        namespaces = [namespace_of(place) for place in (*sorted(places), UNSCOPED)] if self._of_called else None
        records = await self._store.list_raw(self._workspace, namespaces, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX)
        now = self._clock.now()
        records = with_kept(self._store, self._workspace, namespaces, records, now)
        rules = checked_rules(read_stored(records).active(now), now)
        found = {tool: [rule for rule in of if rule.checkable or rule.reminds] for tool, of in rules.items()}
        self._by_tool = {**self._by_tool, **found} if read else found
        self._stamp, self._read = stamp, read | places

    def _places(self, tool_name: str, scopes: Sequence[str]) -> frozenset[str]:
        """Where rules of a tool and of its classes stand; "": where those of all tools do, which are read at once."""
        return frozenset((folded_name(tool_name), *scopes)) if self._of_called else frozenset(("",))

    def of(self, tool_name: str, scopes: Sequence[str] = ()) -> Sequence[CheckedRule]:
        """Those that bind a call of this tool now: its own in any casing, those of its classes, and of every tool."""
        places = dict.fromkeys((folded_name(tool_name), *scopes, ""))
        bound = [rule for place in places for rule in self._by_tool.get(place, ())]
        if not any(rule.expires_at for rule in bound):
            return bound
        now = self._clock.now()
        return [rule for rule in bound if rule.expires_at is None or rule.expires_at > now]
