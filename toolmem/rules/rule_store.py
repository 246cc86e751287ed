"""ToolMemoryStore: the rules of one workspace, as keyed records that every backend of the store protocol keeps.

    tool-{name in lower case}   rule/{id}   the rule
    tool_rule_ids               {id}        which tool the id belongs to; written before the rule, and never changed
    tool_rule_tombstones        ...         what the user deleted (`tombstones`)

A change is decided on what was read and written by compare-and-swap, so that writers in several processes lose
nothing. An id belongs to the first tool that it was put under, for good: that is what makes ids unique without a
transaction over several records.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from toolmem.errors import Conflict, RequestError, StoreClosed, StoreError, StoreUnavailable
from toolmem.ports import Clock, Embedder, MemoryStore, RawRecord, Record
from toolmem.rules import tombstones
from toolmem.rules.drafts import RuleDraft
from toolmem.rules.identity import (
    RULE_PREFIX,
    TOOL_PREFIX,
    UNSCOPED,
    is_blank,
    namespace_of,
    read_id,
    read_tool_name,
    rule_key,
    same_text,
    text_id,
    tool_of,
)
from toolmem.rules.rows import (
    DamagedRule,
    Priority,
    Source,
    StoredRule,
    at_a_glance,
    by_priority,
    read_rows,
    read_rule,
    value_of,
)
from toolmem.rules.searchable import document_of
from toolmem.rules.section import MAX_CHARACTERS, MAX_IN_PROMPT, LeftOut, PinnedRules, Pinning
from toolmem.schema import ToolMemoryRule, ToolSchema

logger = logging.getLogger("toolmem.rules")

IDS = "tool_rule_ids"
_ATTEMPTS = 100  # of one write that others keep overtaking
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_PAUSE = 0.02  # seconds between two of them


@dataclass(frozen=True, slots=True)
class _Shelf:
    """What one tool has when a write is decided."""

    rows: Sequence[StoredRule]
    damaged: Sequence[DamagedRule]

    def with_id(self, rule_id: str) -> StoredRule | None:
        return next((row for row in self.rows if row.rule.id == rule_id), None)

    def with_text(self, text: str) -> StoredRule | None:
        wanted = same_text(text)
        same = [row for row in self.rows if same_text(row.rule.rule) == wanted]
        return min(same, key=lambda row: (row.rule.created_at, row.rule.id), default=None)

    def spelling(self, tool_name: str) -> str:
        """As the first put wrote the tool's name."""
        first = min(self.rows, key=lambda row: (row.rule.created_at, row.rule.id), default=None)
        return tool_name if first is None else first.rule.tool_name


class ToolMemoryStore:
    """Rules of one workspace. `embedder`: the one of the store, so that rules are found by `memory_recall`.

    `max_in_prompt` and `max_characters` cap what `rules_for_prompt` pins; critical rules are pinned whatever they say.
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
    ) -> None:
        self.store = store
        self.workspace = workspace
        self.clock = clock
        self.embedder = embedder
        self._max_in_prompt = max_in_prompt
        self._max_characters = max_characters

    # ------------------------------------------------------------ reading

    async def get_rule(self, tool_name: str, rule_id: str) -> ToolMemoryRule | None:
        """None where there is none. Raises StoreError where its record is damaged."""
        namespace = namespace_of(read_tool_name(tool_name))
        record = await self.store.get(self.workspace, namespace, rule_key(read_id(rule_id)))
        if record is None:
            return None
        try:
            return read_rule(namespace, record.key, record.value)
        except ValueError as error:
            raise StoreError(f"record {record.key!r} of {namespace!r} is no rule ({error}); put or delete it") from None

    async def list_rules(self, tool_name: str) -> list[ToolMemoryRule]:
        """Of one tool: priority, then the freshest. Damaged records are logged and left out."""
        rows, _ = read_rows(await self._records([namespace_of(read_tool_name(tool_name))]))
        return by_priority(row.rule for row in rows)

    async def all_rules(self) -> tuple[list[ToolMemoryRule], list[DamagedRule]]:
        """Of all tools, by tool, priority and freshness; and the records that hold no rule."""
        rows, damaged = read_rows(await self._records(None))
        rules = by_priority(row.rule for row in rows)
        return sorted(rules, key=lambda rule: rule.tool_name.strip().lower()), damaged

    async def list_tool_names(self) -> list[str]:
        """Tools that have rules, as the first put wrote them, in the order of their lower-case names.

        `__unscoped__` among them where a rule has no tool.
        """
        shelves: dict[str, list[StoredRule]] = {}
        for row in read_rows(await self._records(None))[0]:
            shelves.setdefault(namespace_of(row.rule.tool_name), []).append(row)
        return [_Shelf(shelves[namespace], ()).spelling("") for namespace in sorted(shelves)]

    async def rules_json(self, tool_name: str) -> list[dict[str, Any]]:
        """The records of a tool's rules as they are stored, by id; damaged ones as `{"damaged": their text}`."""
        return [_raw_value(record.text) for record in await self._records([namespace_of(read_tool_name(tool_name))])]

    async def rules_for_prompt(
        self, tools: Iterable[str | ToolSchema | Mapping[str, Any]] | None = None
    ) -> PinnedRules:
        """The critical and high rules of these tools (none given: of all), as the prompt orders them.

        Tools are names or schemas; names are told apart without regard to case, and rules bear the name as it is given
        here. Rules without a tool are always among them. A critical rule is never left out; high ones are, where the
        caps are reached, and that is reported and logged.
        """
        names = _named(tools)
        records = await self._records([*names, namespace_of(UNSCOPED)] if names else None)
        unread, plainly_high = at_a_glance(records)
        rows, damaged = read_rows(unread)
        pinning = Pinning(self._max_in_prompt, self._max_characters)
        pinning.add_critical(_under(row.rule, names) for row in rows if row.rule.priority == "critical")
        if pinning.full:  # then what the high ones say changes nothing
            left_out = [LeftOut(tool_of(each.namespace), each.key.removeprefix(RULE_PREFIX)) for each in plainly_high]
        else:
            more, more_damaged = read_rows(plainly_high)
            high = [_under(row.rule, names) for row in (*rows, *more) if row.rule.priority == "high"]
            left_out = [LeftOut(rule.tool_name, rule.id) for rule in pinning.add_high(high)]
            damaged += more_damaged
        if left_out:
            logger.warning(
                "%d high rules are not in the prompt: the caps are %d rules and %d characters",
                *(len(left_out), self._max_in_prompt, self._max_characters),
            )
        return PinnedRules(tuple(pinning.rules()), tuple(left_out), tuple(damaged))

    async def _records(self, namespaces: Sequence[str] | None) -> list[RawRecord]:
        return await self.store.list_raw(self.workspace, namespaces, prefix=TOOL_PREFIX, key_prefix=RULE_PREFIX)

    async def _shelf(self, namespace: str) -> _Shelf:
        rows, damaged = read_rows(await self._records([namespace]))
        return _Shelf(rows, damaged)

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
    ) -> ToolMemoryRule:
        """Insert, or change the rule of that id; answers it as it is stored.

        What is left out keeps its stored value, `created_at` always does. A text that the tool has already (case,
        space and final punctuation aside) is the rule that has it: its id stays. New rules are `normal` and
        `programmatic` where nothing else is said. A tombstone of this rule is cleared. Raises RequestError that names
        the field: a blank tool name or text, one over its limit, an unknown priority or source, an id of another tool.
        """
        draft = RuleDraft(tool_name, rule, priority=priority, source=source, tags=tags, id=id).checked()
        put = await self._settled(draft, captured=False)
        assert put is not None
        return put

    async def put_whole(self, rule: ToolMemoryRule) -> ToolMemoryRule:
        """Upsert of a whole rule, every field as it stands but for the times: those the store knows better."""
        return await self.put_rule(
            rule.tool_name, rule.rule, id=rule.id, priority=rule.priority, source=rule.source, tags=rule.tags
        )

    async def capture_rule(self, draft: RuleDraft) -> ToolMemoryRule | None:
        """Keep a rule that was heard, not put: raises the priority of one that is there, never lowers it.

        None where the user deleted it. Raises as `put_rule`.
        """
        return await self._settled(draft.checked(), captured=True)

    async def delete_rule(self, tool_name: str, rule_id: str) -> bool:
        """True if it was there. Leaves a tombstone: capture will not bring it back."""
        namespace, key = namespace_of(read_tool_name(tool_name)), rule_key(read_id(rule_id))
        try:
            record = await self.store.get(self.workspace, namespace, key)
            rule = None if record is None else read_rule(namespace, key, record.value)
        except (StoreClosed, StoreUnavailable):
            raise
        except (StoreError, ValueError) as error:
            logger.warning("record %r of %r is damaged and is deleted without a tombstone: %s", key, namespace, error)
            return await self.store.delete(self.workspace, namespace, key)
        if rule is None:
            return False
        await tombstones.bury(self.store, self.workspace, rule)  # first: whoever misses the rule finds the tombstone
        return await self.store.delete(self.workspace, namespace, key)

    async def _settled(self, draft: RuleDraft, *, captured: bool) -> ToolMemoryRule | None:
        """Decide and write until nobody overtakes: the loop of every compare-and-swap here."""
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(random.uniform(0, _LONGEST_PAUSE))
            shelf = await self._shelf(namespace_of(draft.tool_name))
            try:
                return await self._decided(draft, shelf, captured=captured)
            except Conflict:
                continue
        raise Conflict(f"the rules of {draft.tool_name!r} changed {_ATTEMPTS} times while one was written; try again")

    async def _decided(self, draft: RuleDraft, shelf: _Shelf, *, captured: bool) -> ToolMemoryRule | None:
        """None: captured, but buried. Raises Conflict where somebody else wrote first."""
        own = shelf.with_id(draft.id) if draft.id else None
        target = shelf.with_text(draft.rule) or own
        tombstone = tombstones.tombstone_key(self.workspace, draft.as_new(draft.id, draft.tool_name, self.clock.now()))
        if captured and await tombstones.is_buried(self.store, self.workspace, tombstone):
            return None
        if draft.id and own is None:
            await self._require_id(draft, claim=target is None)
        if not captured:
            await tombstones.dig_up(self.store, self.workspace, tombstone)
        if target is None:
            return await self._created(draft, shelf)
        written = await self._replaced(draft.over(target.rule, self.clock.now(), captured=captured), target)
        if own is not None and own is not target:  # its text became that of another rule: one of them stays
            await self.store.delete(self.workspace, namespace_of(draft.tool_name), rule_key(own.rule.id))
        return written

    async def _created(self, draft: RuleDraft, shelf: _Shelf) -> ToolMemoryRule:
        namespace = namespace_of(draft.tool_name)
        rule_id = draft.id or await self._new_id(namespace, draft.rule, shelf)
        rule = draft.as_new(rule_id, shelf.spelling(draft.tool_name), self.clock.now())
        # A damaged record of this id is written over.
        damaged = next((each for each in shelf.damaged if each.key == rule_key(rule_id)), None)
        await self._write(rule, 0 if damaged is None else damaged.version)
        return rule

    async def _replaced(self, rule: ToolMemoryRule, row: StoredRule) -> ToolMemoryRule:
        record = await self._write(rule, row.version)
        while _born(record) != row.born:
            # Deleted since it was read, and put again at the version that was read: the rule is younger than it says.
            born = record.time_created
            rule = rule.model_copy(update={"created_at": born, "updated_at": max(born, rule.updated_at)})
            try:
                await self._write(rule, record.version)
                break
            except Conflict:
                later = await self.store.get(self.workspace, namespace_of(rule.tool_name), rule_key(rule.id))
                if later is None or later.time_created != born:
                    break
                record, rule = later, read_rule(later.namespace, later.key, later.value)
        return rule

    async def _write(self, rule: ToolMemoryRule, version: int | None) -> Record:
        return await self.store.put(
            self.workspace,
            namespace_of(rule.tool_name),
            rule_key(rule.id),
            value_of(rule),
            document=await document_of(rule.rule, self.embedder),
            expected_version=version,
        )

    # ------------------------------------------------------------ ids

    async def _require_id(self, draft: RuleDraft, *, claim: bool) -> None:
        """Raises RequestError where the id belongs to another tool."""
        tool = draft.tool_name.lower()
        owner = await self._owner(draft.id, tool if claim else None)
        if owner not in (None, tool):
            raise RequestError(
                f"id: {draft.id!r} belongs to tool {owner!r}; leave the id out, and a rule of {draft.tool_name!r} "
                "gets one of its own",
                field="id",
            )

    async def _new_id(self, namespace: str, text: str, shelf: _Shelf) -> str:
        """Made from the text; another one where a rule that was changed since, or another tool, has that."""
        taken = {row.rule.id for row in shelf.rows} | {each.key.removeprefix(RULE_PREFIX) for each in shelf.damaged}
        attempt = 0
        while True:
            rule_id = text_id(self.workspace, namespace, text, attempt)
            if rule_id not in taken and await self._owner(rule_id, tool_of(namespace)) == tool_of(namespace):
                return rule_id
            attempt += 1

    async def _owner(self, rule_id: str, claim_for: str | None) -> str | None:
        """The tool that the id belongs to; `claim_for` takes it where it belongs to none."""
        if claim_for is not None:
            try:
                await self.store.put(self.workspace, IDS, rule_id, {"tool": claim_for}, expected_version=0)
                return claim_for
            except Conflict:
                pass
        record = await self.store.get(self.workspace, IDS, rule_id)
        if record is None and claim_for is not None:
            raise Conflict(f"the workspace {self.workspace!r} was deleted meanwhile")
        return None if record is None else str(record.value.get("tool"))


def _named(tools: Iterable[str | ToolSchema | Mapping[str, Any]] | None) -> dict[str, str]:
    """Names by namespace; the first spelling counts. Raises RequestError that names `tools`."""
    if isinstance(tools, str):
        raise RequestError("tools: expected a list of names or schemas, got text", field="tools")
    names: dict[str, str] = {}
    for tool in tools or ():
        name = (
            tool if isinstance(tool, str) else tool.name if isinstance(tool, ToolSchema) else ToolSchema.read(tool).name
        )
        if is_blank(name):
            raise RequestError("tools: a blank name", field="tools")
        names.setdefault(namespace_of(name), name.strip())
    return names


def _born(record: Record) -> int:
    """As in `RawRecord`."""
    return (record.time_created - _EPOCH) // timedelta(microseconds=1)


def _raw_value(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"damaged": text}


def _under(rule: ToolMemoryRule, names: Mapping[str, str]) -> ToolMemoryRule:
    """The rule with its tool's name as `names` writes it."""
    name = names.get(namespace_of(rule.tool_name), rule.tool_name) if names else rule.tool_name
    return rule if rule.tool_name == name else rule.model_copy(update={"tool_name": name})
