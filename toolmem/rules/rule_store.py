"""ToolMemoryStore: the rules of one workspace, as keyed records that every backend of the store protocol keeps.

    tool-{name in lower case}   rule/{id}   the rule; after its deletion its grave (`rows.Grave`)
    tool_rule_ids               {id}        which tool the id belongs to; written before the rule, and never changed

A change is decided on what was read and written by compare-and-swap, so that writers in several processes lose nothing.
An id belongs to the first tool that it was put under, for good: that is what makes ids unique without a transaction
over several records.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolmem.errors import Conflict, RequestError, StoreClosed, StoreError, StoreUnavailable, StoreUntrusted
from toolmem.ports import Clock, Document, Embedder, MemoryStore, RawRecord, Record
from toolmem.rules.drafts import RuleDraft, sentence_of
from toolmem.rules.identity import (
    RULE_PREFIX,
    TOOL_PREFIX,
    UNSCOPED,
    folded_name,
    is_blank,
    namespace_of,
    read_id,
    read_tool_name,
    rule_key,
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
    grave_value,
    is_grave,
    read_rows,
    read_rule,
    value_of,
)
from toolmem.rules.searchable import document_of
from toolmem.rules.section import MAX_CHARACTERS, MAX_IN_PROMPT, LeftOut, PinnedRules, Pinning
from toolmem.rules.shelf import Shelf
from toolmem.schema import ToolMemoryRule, ToolSchema

logger = logging.getLogger("toolmem.rules")

IDS = "tool_rule_ids"
_ATTEMPTS = 100  # of one write that others keep overtaking
_LONGEST_PAUSE = 0.02  # seconds between two of them


class ToolMemoryStore:
    """Rules of one workspace. `embedder`: the one of the store, so that rules are found by `memory_recall`.

    `max_in_prompt` and `max_characters` cap what `rules_for_prompt` pins; critical rules are pinned whatever they say.
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
        untrusted: str = "",
    ) -> None:
        self.store = store
        self.workspace = workspace
        self.clock = clock
        self.embedder = embedder
        self._max_in_prompt = max_in_prompt
        self._max_characters = max_characters
        self._untrusted = untrusted

    # ------------------------------------------------------------ reading

    async def get_rule(self, tool_name: str, rule_id: str) -> ToolMemoryRule | None:
        """None where there is none. Raises StoreError where its record is damaged."""
        namespace = namespace_of(read_tool_name(tool_name))
        record = await self.store.get(self.workspace, namespace, rule_key(read_id(rule_id)))
        if record is None:
            return None
        if is_grave(record.value):
            return None
        try:
            return read_rule(namespace, record.key, record.value)
        except ValueError as error:
            raise StoreError(f"record {record.key!r} of {namespace!r} is no rule ({error}); put or delete it") from None

    async def list_rules(self, tool_name: str) -> list[ToolMemoryRule]:
        """Of one tool: priority, then the freshest. Damaged records are logged and left out."""
        rows = read_rows(await self._records([namespace_of(read_tool_name(tool_name))]))
        return by_priority(row.rule for row in rows.rules)

    async def all_rules(self) -> tuple[list[ToolMemoryRule], list[DamagedRule]]:
        """Of all tools, by tool, priority and freshness; and the records that hold no rule."""
        rows = read_rows(await self._records(None))
        rules = by_priority(row.rule for row in rows.rules)
        return sorted(rules, key=lambda rule: folded_name(rule.tool_name)), rows.damaged

    async def list_tool_names(self) -> list[str]:
        """Tools that have rules, as the first put wrote them, in the order of their lower-case names.

        `__unscoped__` among them where a rule has no tool.
        """
        shelves: dict[str, list[StoredRule]] = {}
        for row in read_rows(await self._records(None)).rules:
            shelves.setdefault(namespace_of(row.rule.tool_name), []).append(row)
        return [Shelf(shelves[namespace], [], []).spelling("") for namespace in sorted(shelves)]

    async def rules_json(self, tool_name: str) -> list[dict[str, Any]]:
        """The records of a tool's rules as they are stored, by id; damaged ones as `{"damaged": their text}`."""
        records = await self._records([namespace_of(read_tool_name(tool_name))])
        values = [_raw_value(record.text) for record in records]
        return [value for value in values if not is_grave(value)]

    async def rules_for_prompt(
        self, tools: Iterable[str | ToolSchema | Mapping[str, Any]] | None = None
    ) -> PinnedRules:
        """The critical and high rules of these tools (none given: of all), as the prompt orders them.

        Tools are names or schemas; names are told apart without regard to case, and rules bear the name as it is given
        here. Rules without a tool are always among them. A critical rule is never left out; high ones are, where the
        caps are reached, and that is reported and logged.
        """
        if self._untrusted:
            raise StoreUntrusted(self._untrusted)
        names = _named(tools)
        records = await self._records([*names, namespace_of(UNSCOPED)] if names else None)
        unread, plainly_high = at_a_glance(records)
        rows = read_rows(unread)
        damaged = rows.damaged
        pinning = Pinning(self._max_in_prompt, self._max_characters)
        pinning.add_critical(_under(row.rule, names) for row in rows.rules if row.rule.priority == "critical")
        if pinning.full:  # then what the high ones say changes nothing
            left_out = [LeftOut(tool_of(each.namespace), each.key.removeprefix(RULE_PREFIX)) for each in plainly_high]
        else:
            more = read_rows(plainly_high)
            high = [_under(row.rule, names) for row in (*rows.rules, *more.rules) if row.rule.priority == "high"]
            left_out = [LeftOut(rule.tool_name, rule.id) for rule in pinning.add_high(high)]
            damaged += more.damaged
        if left_out:
            logger.warning(
                "%d high rules are not in the prompt: the caps are %d rules and %d characters",
                *(len(left_out), self._max_in_prompt, self._max_characters),
            )
        return PinnedRules(tuple(pinning.rules()), tuple(left_out), tuple(damaged))

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
        """True if it was there. Capture will not bring it back from the same sentence; an explicit put does."""
        namespace, key = namespace_of(read_tool_name(tool_name)), rule_key(read_id(rule_id))
        for attempt in range(_ATTEMPTS):
            await _pause(attempt)
            try:
                record = await self.store.get(self.workspace, namespace, key)
                if record is None or is_grave(record.value):
                    return False
                sentence = sentence_of(self.workspace, read_rule(namespace, key, record.value))
            except (StoreClosed, StoreUnavailable):
                raise
            except (StoreError, ValueError) as error:
                logger.warning("record %r of %r is damaged and is deleted without a trace: %s", key, namespace, error)
                return await self.store.delete(self.workspace, namespace, key)
            try:
                await self._bury(namespace, key, sentence, record.version)
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
        for attempt in range(_ATTEMPTS):
            await _pause(attempt)
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
        if draft.id and own is None:
            await self._require_id(draft, claim=target is None)
        if target is None:
            return await self._created(draft, document, shelf)
        changed = draft.over(target.rule, self.clock.now(), captured=captured)
        await self._write(changed, document, target.version)
        if own is not None and own is not target:  # its text became that of another rule: one of them stays
            await self._bury(namespace_of(draft.tool_name), rule_key(own.rule.id), "", own.version)
        return changed

    async def _created(self, draft: RuleDraft, document: Document, shelf: Shelf) -> ToolMemoryRule:
        rule_id = draft.id or await self._new_id(draft, shelf)
        rule = draft.as_new(rule_id, shelf.spelling(draft.tool_name), self.clock.now())
        await self._write(rule, document, shelf.free_version(rule_id))
        return rule

    async def _write(self, rule: ToolMemoryRule, document: Document, version: int | None) -> Record:
        return await self.store.put(
            self.workspace,
            namespace_of(rule.tool_name),
            rule_key(rule.id),
            value_of(rule),
            document=document,
            expected_version=version,
        )

    # ------------------------------------------------------------ ids

    async def _require_id(self, draft: RuleDraft, *, claim: bool) -> None:
        """Raises RequestError where the id belongs to another tool."""
        tool = folded_name(draft.tool_name)
        owner = await self._owner(draft.id, tool if claim else None)
        if owner not in (None, tool):
            raise RequestError(
                f"id: {draft.id!r} belongs to tool {owner!r}; leave the id out, and a rule of {draft.tool_name!r} "
                "gets one of its own",
                field="id",
            )

    async def _new_id(self, draft: RuleDraft, shelf: Shelf) -> str:
        """Made from the text; another one where a rule that was changed since, or another tool, has that."""
        namespace = namespace_of(draft.tool_name)
        taken = shelf.taken(sentence_of(self.workspace, draft))
        for attempt in itertools.count():
            rule_id = text_id(self.workspace, namespace, draft.rule, attempt)
            if rule_id not in taken and await self._owner(rule_id, tool_of(namespace)) == tool_of(namespace):
                return rule_id
        raise AssertionError("unreachable")

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


async def _pause(attempt: int) -> None:
    if attempt:
        await asyncio.sleep(random.uniform(0, _LONGEST_PAUSE))


def _overtaken(tool_name: str) -> str:
    return f"the rules of {tool_name!r} changed {_ATTEMPTS} times while one was written; try again"


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
