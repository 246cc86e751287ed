"""Ids of the rules of one workspace: each belongs to the first tool that it was put under, for good."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from toolmem.errors import Conflict, RequestError
from toolmem.late import late_pattern
from toolmem.rules.drafts import RuleDraft, sentence_of
from toolmem.rules.identity import folded_name, namespace_of, read_id, text_id
from toolmem.rules.stored_rules import StoredRules

if TYPE_CHECKING:
    from toolmem.protocols import MemoryStore

IDS = "tool_rule_ids"
SHORTEST_ID = 4  # characters of the beginning of an id
_BEGINNING = late_pattern(r"[0-9a-f][0-9a-f-]{3,34}")
_MADE = late_pattern(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


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

    async def new(self, draft: RuleDraft, stored: StoredRules) -> str:
        """Made from the text; another one where a rule that was changed since, or another tool, has that."""
        tool = folded_name(draft.tool_name)
        taken = stored.taken(sentence_of(self._workspace, draft))
        for attempt in itertools.count():
            rule_id = text_id(self._workspace, namespace_of(tool), draft.rule, attempt)
            if rule_id not in taken and await self.owner(rule_id, tool) == tool:
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


def id_meant(ids: Iterable[str], given: str) -> str | None:
    """The id that this is, or is the beginning of. Raises RequestError where several begin so."""
    known = set(ids)
    begin = [each for each in known if len(given) >= SHORTEST_ID and each.startswith(given)]
    if given not in known and len(begin) > 1:
        raise RequestError(f"id: {len(begin)} rules have an id that begins with {given!r}; give more of it", field="id")
    return given if given in known else next(iter(begin), None)


def whole_id(given: str, known: Iterable[str]) -> str:
    """The id of `known` that begins so, where it has the form of ids that are made here; else as given.

    Callers' own ids may begin alike and be different rules. Raises RequestError where there are several.
    """
    wanted = read_id(given)
    return id_meant((each for each in known if _MADE.fullmatch(each) or each == wanted), wanted) or wanted


def is_shortened(given: str) -> bool:
    """Whether it looks like the beginning of an id that was made here, and is not a whole one."""
    return bool(_BEGINNING.fullmatch(read_id(given)))
