"""The records of rules in one workspace, read as they hold; the one place where they are written.

Where agents are held to the store, what lets a rule bind less needs evidence of its user, and without it becomes a
proposal. What was written stands in the journal too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from toolmem.errors import LiftProposed, StoreError
from toolmem.guard.call_conditions import needs_history
from toolmem.light_models import Speaker, ToolMemoryRule
from toolmem.readers.plain_text import plain_line
from toolmem.rules.evidence import UserEvidence
from toolmem.rules.identity import RULE_PREFIX, TOOL_PREFIX, namespace_of, rule_key
from toolmem.rules.kept_rules import LostRule, location_of, lost_rules, note_written, propose, with_kept
from toolmem.rules.loosening import binds_less
from toolmem.rules.stored_rules import (
    StoredRule,
    StoredRules,
    is_tombstone,
    raw_value,
    read_rule,
    read_stored,
    rule_value,
    tombstone_value,
)
from toolmem.store.holding import holds_agents
from toolmem.store.journal_changes import journal_here, store_key
from toolmem.store.keyed import encode_value

if TYPE_CHECKING:
    from toolmem.protocols import Clock, MemoryStore
    from toolmem.stored import Document, RawRecord

_PROPOSED = (
    "“{}” holds on: only its user lets it bind less, by the message `lift {}`",
    "“{}”仍然有效：只有用户可以放宽它，回复“撤销 {}”表示同意",
)
_NOT_PROPOSED = (
    "“{}” holds on: only its user lets it bind less. It is not proposed to them either: as many changes wait as may, "
    "or the journal cannot be written"
)
_SHOWN = 200  # characters of a rule in a message


class Changing(NamedTuple):
    """Who changes rules, and what the user did for it."""

    speaker: Speaker
    evidence: UserEvidence | None = None
    restores: bool = False  # what is put back held before: nothing is asked
    instead: frozenset[str] = frozenset()  # ids of rules in whose place another is put: nothing is asked, or told
    agent: str = ""  # whose note asks for it, by name

    @property
    def asks(self) -> str:
        """Who asks its user, as a proposal keeps it: `program`, `agent`, `agent:Claude Code`."""
        return f"agent:{self.agent}" if self.agent else self.speaker


class RuleRecords:
    """As the store has them, and as the journal keeps those that it lost."""

    def __init__(self, store: MemoryStore, workspace: str, clock: Clock) -> None:
        self.store = store
        self.workspace = workspace
        self.clock = clock

    # -- reading

    async def raw(self, namespaces: Sequence[str] | None) -> list[RawRecord]:
        """None: of all tools."""
        found = await self.store.list_raw(self.workspace, namespaces, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX)
        return with_kept(self.store, self.workspace, namespaces, found, self.clock.now())

    async def stored(self, namespace: str | None) -> StoredRules:
        return read_stored(await self.raw(None if namespace is None else [namespace]))

    async def value(self, namespace: str, rule_id: str) -> tuple[dict[str, Any], int] | None:
        """What stands under the id, and its version. Raises StoreError where that is damaged."""
        key = rule_key(rule_id)
        if holds_agents(self.store):
            found = next((each for each in await self.raw([namespace]) if each.key == key), None)
            return None if found is None else (raw_value(found.text), found.version)
        record = await self.store.get(self.workspace, namespace, key)
        return None if record is None else (record.value, record.version)

    async def row(self, namespace: str, rule_id: str) -> StoredRule | None:
        """Raises StoreError where the record is damaged."""
        found = await self.value(namespace, rule_id)
        if found is None or is_tombstone(found[0]):
            return None
        try:
            return StoredRule(read_rule(namespace, rule_key(rule_id), found[0]), found[1])
        except ValueError as error:
            problem = f"record {rule_key(rule_id)!r} of {namespace!r} is no rule ({error}); put or delete it"
            raise StoreError(problem) from None

    async def lost(self) -> list[LostRule]:
        """Rules that hold from the journal alone, and what the store has in their place."""
        kept = journal_here().rules(store_key(location_of(self.store)), self.workspace)
        found = await self.store.list_raw(self.workspace, None, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX)
        return lost_rules(kept, found, self.clock.now())

    # -- writing

    def require(self, before: ToolMemoryRule, after: ToolMemoryRule | None, by: Changing) -> UserEvidence | None:
        """What a rule that binds less afterwards keeps of why; None where it needs nothing. Raises LiftProposed."""
        if by.restores or before.id in by.instead or not binds_less(before, after, self.clock.now()):
            return None
        if not holds_agents(self.store):
            return None
        if by.evidence is not None:
            return by.evidence
        raise self.proposal(before, after, by.asks)

    def proposal(self, before: ToolMemoryRule, after: ToolMemoryRule | None, asks: str) -> LiftProposed:
        """Propose to its user that a rule binds less. `asks`: who wants it, as `Changing.asks`."""
        from toolmem.rules.words_after import has_chinese

        code = propose(self.store, self.workspace, before, after, asks)
        told = _PROPOSED[has_chinese(before.rule)] if code else _NOT_PROPOSED
        return LiftProposed(told.format(plain_line(before.rule, _SHOWN), code), rule_id=before.id, code=code)

    async def write(
        self, rule: ToolMemoryRule, document: Document, before: StoredRule | int, by: Changing
    ) -> ToolMemoryRule:
        """`before`: what stands in its place, or the version of what is no rule. Raises Conflict, LiftProposed."""
        row = None if isinstance(before, int) else before
        evidence = None if row is None else self.require(row.rule, rule, by)
        shown = document if rule.status == "active" else None  # what does not hold is not recalled
        version = before if isinstance(before, int) else before.version
        instead = row is not None and row.rule.id in by.instead
        await self._put(row, rule, rule_value(rule, evidence), version, shown, evidence, instead=instead)
        return rule

    async def bury(self, row: StoredRule, sentence: str, by: Changing) -> None:
        """Leave a tombstone, which nothing finds any more. Raises Conflict, LiftProposed."""
        evidence = self.require(row.rule, None, by)
        value = tombstone_value(sentence, row.rule.said, evidence)
        await self._put(row, row.rule, value, row.version, None, evidence, instead=row.rule.id in by.instead)

    async def _put(
        self,
        row: StoredRule | None,
        rule: ToolMemoryRule,
        value: dict[str, Any],
        version: int,
        shown: Document | None,
        evidence: UserEvidence | None,
        *,
        instead: bool,
    ) -> None:
        place = (namespace_of(rule.tool_name), rule_key(rule.id))
        await self.store.put(self.workspace, *place, value, document=shown, expected_version=version)
        if rule.status == "active" and needs_history(rule.when):
            from toolmem.rules.asked_tests import ask_for

            await ask_for(self.store, self.workspace, self.clock, rule.when)
        before = None if row is None else row.rule
        written = (*place, encode_value(value), evidence, self.clock.now())
        note_written(self.store, self.workspace, before, *written, instead=instead)
