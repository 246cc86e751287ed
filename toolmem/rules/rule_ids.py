"""Ids of the rules of one workspace: each belongs to the first tool that it was put under, for good."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from toolmem.errors import Conflict, RequestError
from toolmem.rules.drafts import RuleDraft, sentence_of
from toolmem.rules.identity import (
    RULE_PREFIX,
    folded_name,
    id_meant,
    is_made_id,
    may_begin_an_id,
    namespace_of,
    read_id,
    same_text,
    text_id,
    tool_of,
)
from toolmem.rules.rows import Rows, StoredRule

if TYPE_CHECKING:
    from toolmem.protocols import MemoryStore


class Shelf(Rows):
    """What one tool has when a write is decided."""

    def with_id(self, rule_id: str) -> StoredRule | None:
        return next((row for row in self.rules if row.rule.id == rule_id), None)

    def with_text(self, text: str) -> StoredRule | None:
        wanted = same_text(text)
        same = [row for row in self.rules if same_text(row.rule.rule) == wanted]
        return min(same, key=lambda row: (row.rule.created_at, row.rule.id), default=None)

    def spelling(self, tool_name: str) -> str:
        """As the first put wrote the tool's name."""
        first = min(self.rules, key=lambda row: (row.rule.created_at, row.rule.id), default=None)
        return tool_name if first is None else first.rule.tool_name

    def is_buried(self, sentence: str) -> bool:
        return any(grave.sentence == sentence for grave in self.graves)

    def free_version(self, rule_id: str) -> int:
        """At which a new rule of this id is written: over its grave, over a damaged record, or as the first."""
        versions = {grave.rule_id: grave.version for grave in self.graves}
        versions |= {each.key.removeprefix(RULE_PREFIX): each.version for each in self.damaged}
        return versions.get(rule_id, 0)

    def taken(self, sentence: str) -> set[str]:
        """Ids that a new rule of this sentence cannot get: of rules, of what is damaged, of other sentences' graves."""
        return {
            *(row.rule.id for row in self.rules),
            *(each.key.removeprefix(RULE_PREFIX) for each in self.damaged),
            *(grave.rule_id for grave in self.graves if grave.sentence not in ("", sentence)),
        }


IDS = "tool_rule_ids"


class RuleIds:
    """Who has which id."""

    def __init__(self, store: MemoryStore, workspace: str) -> None:
        self._store = store
        self._workspace = workspace

    async def require(self, draft: RuleDraft, *, claim: bool) -> None:
        """Raises RequestError where the id belongs to another tool."""
        tool = folded_name(draft.tool_name)
        owner = await self.owner(draft.id, tool if claim else None)
        if owner not in (None, tool):
            raise RequestError(
                f"id: {draft.id!r} belongs to tool {owner!r}; leave the id out, and a rule of {draft.tool_name!r} "
                "gets one of its own",
                field="id",
            )

    async def new(self, draft: RuleDraft, shelf: Shelf) -> str:
        """Made from the text; another one where a rule that was changed since, or another tool, has that."""
        namespace = namespace_of(draft.tool_name)
        taken = shelf.taken(sentence_of(self._workspace, draft))
        for attempt in itertools.count():
            rule_id = text_id(self._workspace, namespace, draft.rule, attempt)
            if rule_id not in taken and await self.owner(rule_id, tool_of(namespace)) == tool_of(namespace):
                return rule_id
        raise AssertionError("unreachable")

    async def owner(self, rule_id: str, claim_for: str | None = None) -> str | None:
        """The tool that the id belongs to; `claim_for` takes it where it belongs to none."""
        if claim_for is not None:
            try:
                await self._store.put(self._workspace, IDS, rule_id, {"tool": claim_for}, expected_version=0)
                return claim_for
            except Conflict:
                pass
        record = await self._store.get(self._workspace, IDS, rule_id)
        if record is None and claim_for is not None:
            raise Conflict(f"the workspace {self._workspace!r} was deleted meanwhile")
        return None if record is None else str(record.value.get("tool"))


def whole_id(given: str, known: Iterable[str]) -> str:
    """The id of `known` that begins so, where it has the form of ids that are made here; else as given.

    Raises RequestError where there are several.
    """
    wanted = read_id(given)
    return id_meant((each for each in known if is_made_id(each) or each == wanted), wanted) or wanted


def is_shortened(given: str) -> bool:
    return may_begin_an_id(read_id(given))
