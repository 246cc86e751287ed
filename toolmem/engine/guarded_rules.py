"""The rules that the guard holds calls against, as they stand in the store, read when they changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolmem.guard.decision import CheckedRule
from toolmem.rules.checked_rules import checked_rules
from toolmem.rules.identity import RULE_PREFIX, TOOL_PREFIX, folded_name
from toolmem.rules.stored_rules import read_stored

if TYPE_CHECKING:
    from toolmem.protocols import Clock, MemoryStore


class GuardedRules:
    """The active rules of a workspace that can be checked, by tool."""

    def __init__(self, store: MemoryStore, workspace: str, clock: Clock) -> None:
        self._store = store
        self._workspace = workspace
        self._clock = clock
        self._stamp: str | None = None
        self._by_tool: dict[str, list[CheckedRule]] = {}

    @property
    def known(self) -> bool:
        """Were they ever read?"""
        return self._stamp is not None

    async def read_at(self, stamp: str) -> None:
        """Read them where they changed since. Raises StoreError."""
        if stamp == self._stamp:
            return
        records = await self._store.list_raw(self._workspace, None, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX)
        now = self._clock.now()
        rules = checked_rules(read_stored(records).active(now), now)
        self._by_tool = {tool: [rule for rule in of if rule.checkable] for tool, of in rules.items()}
        self._stamp = stamp

    def of(self, tool_name: str) -> Sequence[CheckedRule]:
        """Those that bind a call of this tool now: its own in any casing, and those of every tool."""
        bound = [*self._by_tool.get(folded_name(tool_name), ()), *self._by_tool.get("", ())]
        if not any(rule.expires_at for rule in bound):
            return bound
        now = self._clock.now()
        return [rule for rule in bound if rule.expires_at is None or rule.expires_at > now]
