"""ToolMemoryStore: the rules of one workspace, as keyed records that every backend of the store protocol keeps.

    tool-{name in lower case}   rule/{id}   the rule; after its deletion its grave (`rows.Grave`)
    tool_rule_ids               {id}        which tool the id belongs to; written before the rule, and never changed

A change is decided on what was read and written by compare-and-swap, so that writers in several processes lose nothing.
An id belongs to the first tool that it was put under, for good: that is what makes ids unique without a transaction
over several records.
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from toolmem.errors import Conflict, RequestError, StoreClosed, StoreError, StoreUnavailable, StoreUntrusted
from toolmem.light_models import Priority, RuleStatus, Said, Source, Speaker, ToolMemoryRule, ToolSchema
from toolmem.rules.drafts import (
    RuleDraft,
    holds_again,
    is_agents_to_change,
    read_said,
    require_own,
    sentence_of,
)
from toolmem.rules.identity import (
    RULE_PREFIX,
    TOOL_PREFIX,
    folded_name,
    namespace_of,
    read_id,
    read_time,
    read_tool_name,
    rule_key,
)
from toolmem.rules.prompt_choice import Caps, chosen_for_prompt, names_of, spaces_of, tell_left_out
from toolmem.rules.rows import (
    STATUSES,
    DamagedRule,
    StoredRule,
    active,
    by_priority,
    grave_value,
    is_grave,
    read_choice,
    read_rows,
    read_rule,
    value_of,
)
from toolmem.rules.rule_ids import RuleIds, Shelf, is_shortened, whole_id
from toolmem.rules.searchable import document_of
from toolmem.rules.section import MAX_CHARACTERS, MAX_CRITICAL_CHARACTERS, MAX_IN_PROMPT, PinnedRules
from toolmem.rules.speakers import as_heard
from toolmem.stored import Document, RawRecord, Record

if TYPE_CHECKING:
    from toolmem.protocols import Clock, Embedder, MemoryStore

logger = logging.getLogger("toolmem.rules")

_ATTEMPTS = 100  # of one write that others keep overtaking
_LONGEST_PAUSE = 0.02  # seconds between two of them


class ToolMemoryStore:
    """Rules of one workspace. `embedder`: the one of the store, so that rules are found by `memory_recall`.

    `max_in_prompt` and `max_characters` cap what `rules_for_prompt` pins beside critical rules, whose own cap is
    `max_critical_characters`. `speaker`: who puts rules here; what an agent puts never touches a rule of anybody else.
    `untrusted`: why none of these rules may reach a prompt; then `rules_for_prompt` raises StoreUntrusted.
    """

    def __init__(
        self,
        store: MemoryStore,
        workspace: str = "default",
        *,
        clock: Clock,
        embedder: Embedder | None = None,
        max_in_prompt: int = MAX_IN_PROMPT,
        max_characters: int = MAX_CHARACTERS,
        max_critical_characters: int = MAX_CRITICAL_CHARACTERS,
        speaker: Speaker = "program",
        untrusted: str = "",
    ) -> None:
        self.store = store
        self.workspace = workspace
        self.clock = clock
        self.embedder = embedder
        self._untrusted = untrusted
        self.speaker = as_heard(speaker)
        self._ids = RuleIds(store, workspace)
        self._tells = True
        self._caps: Caps = (max_in_prompt, max_characters, max_critical_characters)

    def for_agent(self) -> ToolMemoryStore:
        """The same rules, as an agent may change them."""
        own = copy(self)
        own.speaker = "agent"
        return own

    def quiet(self) -> ToolMemoryStore:
        """The same rules, for one who asks again and again: what is left out of the prompt is not logged each time."""
        own = copy(self)
        own._tells = False
        return own

    # ------------------------------------------------------------ reading

    async def get_rule(self, tool_name: str, rule_id: str) -> ToolMemoryRule | None:
        """None where no active rule is. Raises StoreError where its record is damaged."""
        row = await self._row(namespace_of(read_tool_name(tool_name)), await self.full_id(rule_id))
        return row.rule if row is not None and row.rule.status == "active" else None

    async def list_rules(self, tool_name: str) -> list[ToolMemoryRule]:
        """Active ones of one tool: priority, then the freshest. Damaged records are logged and left out."""
        rows = read_rows(await self._records([namespace_of(read_tool_name(tool_name))]))
        return by_priority(active(row.rule for row in rows.rules))

    async def all_rules(self, *, inactive: bool = False) -> tuple[list[ToolMemoryRule], list[DamagedRule]]:
        """Of all tools, by tool, priority and freshness; and the records that hold no rule.

        `inactive`: also those that wait for a person, were withdrawn or superseded.
        """
        rows = read_rows(await self._records(None))
        rules = [row.rule for row in rows.rules]
        ordered = by_priority(rules if inactive else active(rules))
        return sorted(ordered, key=lambda rule: folded_name(rule.tool_name)), rows.damaged

    async def list_tool_names(self) -> list[str]:
        """Tools that have active rules, as the first put wrote them, in the order of their lower-case names.

        `__unscoped__` among them where a rule has no tool.
        """
        shelves: dict[str, list[StoredRule]] = {}
        for row in read_rows(await self._records(None)).rules:
            if row.rule.status == "active":
                shelves.setdefault(namespace_of(row.rule.tool_name), []).append(row)
        return [Shelf(shelves[namespace], [], []).spelling("") for namespace in sorted(shelves)]

    async def rules_json(self, tool_name: str) -> list[dict[str, Any]]:
        """The records of a tool's active rules as they are stored, by id; damaged ones as `{"damaged": their text}`."""
        records = await self._records([namespace_of(read_tool_name(tool_name))])
        values = [_raw_value(record.text) for record in records]
        return [value for value in values if not is_grave(value) and value.get("status", "active") == "active"]

    async def rules_for_prompt(
        self, tools: Iterable[str | ToolSchema | Mapping[str, Any]] | None = None
    ) -> PinnedRules:
        """The critical and high rules of these tools (none given: of all), as the prompt orders them, then notes.

        Tools are names or schemas; names are told apart without regard to case, and rules bear the name as it is given
        here. Rules without a tool are always among them. What the caps leave no room for is reported and logged;
        critical rules come first, the user's before a program's.
        """
        if self._untrusted:
            raise StoreUntrusted(self._untrusted)
        names = names_of(tools)
        records = await self._records(spaces_of(names))
        chosen = chosen_for_prompt(records, names, self._caps)
        if self._tells:
            tell_left_out(chosen, self._caps)
        return chosen

    async def full_id(self, given: str) -> str:
        """The id of the rule, of whatever tool and status, that begins so; as given where there is none.

        Raises RequestError where there are several.
        """
        if not is_shortened(given):
            return read_id(given)
        records = [each for each in await self._records(None) if not is_grave(_raw_value(each.text))]
        return whole_id(given, [each.key.removeprefix(RULE_PREFIX) for each in records])

    async def _row(self, namespace: str, rule_id: str) -> StoredRule | None:
        """Raises StoreError where the record is damaged."""
        record = await self.store.get(self.workspace, namespace, rule_key(rule_id))
        if record is None or is_grave(record.value):
            return None
        try:
            return StoredRule(read_rule(namespace, record.key, record.value), record.version)
        except ValueError as error:
            raise StoreError(f"record {record.key!r} of {namespace!r} is no rule ({error}); put or delete it") from None

    async def _records(self, namespaces: Sequence[str] | None) -> list[RawRecord]:
        return await self.store.list_raw(self.workspace, namespaces, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX)

    async def _shelf(self, namespace: str) -> Shelf:
        return Shelf(*read_rows(await self._records([namespace])))

    # ------------------------------------------------------------ writing

    async def put_rule(
        self,
        tool_name: str,
        rule: str,
        *,
        id: str = "",
        priority: Priority | None = None,
        source: Source | None = None,
        tags: Iterable[str] | None = None,
        status: RuleStatus | None = None,
        said: Said | Mapping[str, Any] | None = None,
        created_at: datetime | str | None = None,
        updated_at: datetime | str | None = None,
    ) -> ToolMemoryRule:
        """Insert, or change the rule of that id; answers it as it is stored.

        What is left out keeps its stored value, `created_at` always does. A text that the tool has already (case,
        space and final punctuation aside) is the rule that has it: its id stays. New rules are `normal` and
        `programmatic` where nothing else is said. A tombstone of this rule is cleared. Raises RequestError that names
        the field: a blank tool name or text, one over its limit, an unknown priority or source, an id of another tool.

        `status`, `said` and times: of a rule that is put back as it was; `said` never gives more authority than the
        speaker of this store has.
        """
        draft = RuleDraft(
            tool_name,
            rule,
            priority=priority,
            source=source,
            tags=tags,
            id=id,
            said=read_said(said),
            status=status,
            created_at=read_time(created_at, "created_at"),
            updated_at=read_time(updated_at, "updated_at"),
        )
        put = await self._settled(draft.from_road(self.speaker).checked(), captured=False)
        assert put is not None
        return put

    async def put_whole(self, rule: ToolMemoryRule) -> ToolMemoryRule:
        """Put a rule as it stands; where it is new here, with its times."""
        return await self.put_rule(**rule.model_dump())

    async def capture_rule(self, draft: RuleDraft) -> ToolMemoryRule | None:
        """Keep a rule that was heard, not put: raises the priority of one that is there, never lowers it.

        None where the user deleted it. Raises as `put_rule`.
        """
        return await self._settled(draft.from_road(self._heard(draft)).checked(), captured=True)

    def _heard(self, draft: RuleDraft) -> Speaker:
        """Capture hears the user as far as its own road goes."""
        return "agent" if self.speaker == "agent" else as_heard(draft.said.by)

    async def set_status(self, rule_id: str, status: RuleStatus, tool_name: str | None = None) -> ToolMemoryRule | None:
        """A person's decision on a rule of whatever status; None where there is none. Raises RequestError."""
        if self.speaker == "agent":
            raise RequestError("status: an agent cannot approve or reject a rule; the user can", field="status")
        wanted: RuleStatus | None = read_choice(status, "status", STATUSES)
        if wanted is None:
            raise RequestError(f"status: expected one of {', '.join(STATUSES)}", field="status")
        full = await self.full_id(rule_id)
        tool = await self._ids.owner(full) if tool_name is None else read_tool_name(tool_name)
        for attempt in range(_ATTEMPTS if tool is not None else 0):
            await self._pause(attempt)
            row = await self._row(namespace_of(str(tool)), full)
            if row is None:
                return None
            changed = row.rule.model_copy(update={"status": wanted, "updated_at": self.clock.now()})
            try:
                await self._write(changed, await document_of(changed.rule, self.embedder), row.version)
                return changed
            except Conflict:
                continue
        if tool is None:
            return None
        raise Conflict(_overtaken(tool))

    async def delete_rule(self, tool_name: str, rule_id: str) -> bool:
        """True if it was there. Capture will not bring it back from the same sentence; an explicit put does."""
        namespace, key = namespace_of(read_tool_name(tool_name)), rule_key(await self.full_id(rule_id))
        for attempt in range(_ATTEMPTS):
            await self._pause(attempt)
            try:
                record = await self.store.get(self.workspace, namespace, key)
                if record is None or is_grave(record.value):
                    return False
                rule = read_rule(namespace, key, record.value)
            except (StoreClosed, StoreUnavailable):
                raise
            except (StoreError, ValueError) as error:
                logger.warning("record %r of %r is damaged and is deleted without a trace: %s", key, namespace, error)
                return await self.store.delete(self.workspace, namespace, key)
            if self.speaker == "agent" and not is_agents_to_change(rule):
                raise RequestError(f"id: {rule.id!r} is no rule of an agent's; only a person deletes it", field="id")
            try:
                await self._bury(namespace, key, sentence_of(self.workspace, rule), record.version)
                return True
            except Conflict:
                continue
        raise Conflict(_overtaken(tool_name))

    async def _bury(self, namespace: str, key: str, sentence: str, version: int) -> None:
        """Raises Conflict where the record is at another version. Without a document, nothing finds it any more."""
        await self.store.put(self.workspace, namespace, key, grave_value(sentence), expected_version=version)

    async def _settled(self, draft: RuleDraft, *, captured: bool) -> ToolMemoryRule | None:
        """Decide and write until nobody overtakes: the loop of every compare-and-swap here."""
        document = await document_of(draft.rule, self.embedder)
        draft = replace(draft, id=await self.full_id(draft.id))
        for attempt in range(_ATTEMPTS):
            await self._pause(attempt)
            shelf = await self._shelf(namespace_of(draft.tool_name))
            try:
                return await self._decided(draft, document, shelf, captured=captured)
            except Conflict:
                continue
        raise Conflict(_overtaken(draft.tool_name))

    async def _decided(
        self, draft: RuleDraft, document: Document, shelf: Shelf, *, captured: bool
    ) -> ToolMemoryRule | None:
        """None: captured, but the user deleted it. Raises Conflict where somebody else wrote first."""
        own = shelf.with_id(draft.id) if draft.id else None
        target = shelf.with_text(draft.rule) or own
        if captured and target is None and shelf.is_buried(sentence_of(self.workspace, draft)):
            return None
        if draft.said.by == "agent":
            for row in (own, target):
                if row is not None and not is_agents_to_change(row.rule):
                    return self._left_alone(row.rule, draft, captured=captured)
        elif captured and target is not None and not holds_again(target.rule, draft):
            return None
        if draft.id and own is None:
            await self._ids.require(draft, claim=target is None)
        if target is None:
            return await self._created(draft, document, shelf)
        changed = draft.over(target.rule, self.clock.now(), captured=captured)
        await self._write(changed, document, target.version)
        if own is not None and own is not target:  # its text became that of another rule: one of them stays
            await self._bury(namespace_of(draft.tool_name), rule_key(own.rule.id), "", own.version)
        return changed

    @staticmethod
    def _left_alone(rule: ToolMemoryRule, draft: RuleDraft, *, captured: bool) -> ToolMemoryRule | None:
        """What becomes of an agent's draft that meets a rule of somebody else."""
        if captured:
            return rule if rule.status == "active" else None
        require_own(rule, draft)
        return rule

    async def _created(self, draft: RuleDraft, document: Document, shelf: Shelf) -> ToolMemoryRule:
        rule_id = draft.id or await self._ids.new(draft, shelf)
        rule = draft.as_new(rule_id, shelf.spelling(draft.tool_name), self.clock.now())
        await self._write(rule, document, shelf.free_version(rule_id))
        return rule

    async def _pause(self, attempt: int) -> None:
        if attempt:
            await self.clock.sleep(random.uniform(0, _LONGEST_PAUSE))

    async def _write(self, rule: ToolMemoryRule, document: Document, version: int | None) -> Record:
        return await self.store.put(
            self.workspace,
            namespace_of(rule.tool_name),
            rule_key(rule.id),
            value_of(rule),
            document=document if rule.status == "active" else None,  # what does not hold is not recalled
            expected_version=version,
        )


def _overtaken(tool_name: str) -> str:
    return f"the rules of {tool_name!r} changed {_ATTEMPTS} times while one was written; try again"


def _raw_value(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"damaged": text}
