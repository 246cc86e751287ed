"""RuleStore: the rules of one workspace, as keyed records that every backend of the store protocol keeps.

    tool-{name in lower case}   rule/{id}   the rule; after its deletion its tombstone
    tool_rule_ids               {id}        which tool the id belongs to; written before the rule, and never changed

A change is decided on what was read and written by compare-and-swap, so that writers in several processes lose nothing.
An id belongs to the first tool that it was put under, for good: that is what makes ids unique without a transaction
over several records.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import copy
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from toolmem.errors import RequestError, StoreClosed, StoreError, StoreUnavailable, StoreUntrusted
from toolmem.late import late_logger
from toolmem.late_dataclasses import replace
from toolmem.light_models import Effect, Priority, RuleStatus, Said, Source, Speaker, ToolMemoryRule, ToolSchema, When
from toolmem.rules.compare_and_swap import until_written
from toolmem.rules.drafts import (
    RuleDraft,
    holds_again,
    is_agents_to_change,
    is_said_anew,
    left_alone,
    read_said,
    sentence_of,
)
from toolmem.rules.embedded_text import document_of
from toolmem.rules.evidence import UserEvidence, evidence_here
from toolmem.rules.identity import (
    RULE_PREFIX,
    folded_name,
    namespace_of,
    read_choice,
    read_id,
    read_time,
    read_tool_name,
    rule_key,
)
from toolmem.rules.pinning import Caps, chosen_for_prompt, names_of, spaces_of, tell_left_out
from toolmem.rules.replaced_demands import noted_already
from toolmem.rules.rule_checks import Check, read_check
from toolmem.rules.rule_ids import RuleIds, is_shortened, whole_id
from toolmem.rules.rule_records import Changing, RuleRecords
from toolmem.rules.section import MAX_CHARACTERS, MAX_CRITICAL_CHARACTERS, MAX_IN_PROMPT, PinnedRules
from toolmem.rules.speakers import allowed_speaker
from toolmem.rules.stored_rules import (
    DamagedRule,
    StoredRules,
    by_priority,
    first_spelling,
    is_tombstone,
    may_hold,
    raw_value,
)
from toolmem.rules.turns import read_tools
from toolmem.store.holding import holds_agents
from toolmem.stored import Document

if TYPE_CHECKING:
    from toolmem.protocols import Clock, Embedder, MemoryStore

logger = late_logger("toolmem.rules")

T = TypeVar("T")


class RuleStore:
    """Rules of one workspace. `embedder`: the one of the store, so that rules are found by `memory_recall`.

    `max_in_prompt` and `max_characters` cap what `rules_for_prompt` pins beside critical rules, whose own cap is
    `max_critical_characters`. `speaker`: who puts rules here; what an agent puts never touches a rule of anybody else.
    `untrusted`: why none of these rules may reach a prompt; then `rules_for_prompt` raises StoreUntrusted.
    `evidence`: that the user wants what is done here. Where agents are held to the store's rules, whatever lets one of
    them bind less raises LiftProposed without it, and changes nothing.
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
        evidence: UserEvidence | None = None,
    ) -> None:
        self.store = store
        self.workspace = workspace
        self.clock = clock
        self.embedder = embedder
        self._untrusted = untrusted
        self.evidence = evidence
        self.speaker = allowed_speaker(speaker)
        self._ids = RuleIds(store, workspace)
        self.records = RuleRecords(store, workspace, clock)
        self._tells = True
        self._hears = False
        self._instead: frozenset[str] = frozenset()
        self.agent = ""  # by whose note rules are changed here; a proposal tells it to the user
        self._caps: Caps = (max_in_prompt, max_characters, max_critical_characters)

    def for_agent(self) -> RuleStore:
        """The same rules, as an agent may change them."""
        own = copy(self)
        own.speaker = "agent"
        return own

    def with_evidence(self, evidence: UserEvidence | None) -> RuleStore:
        """The same rules, changed by what the user did; None: by what nobody was seen to do."""
        own = copy(self)
        own.evidence = evidence
        return own

    def as_told_by(self, evidence: UserEvidence | None) -> RuleStore:
        """The same rules, for a road on which the user speaks: a hook of an agent, or the process of a session.

        `evidence`: that the user typed what was heard.
        """
        own = self.with_evidence(evidence)
        own._hears = True
        return own

    def instead_of(self, ids: Iterable[str]) -> RuleStore:
        """The same rules, where others are put in the place of these: nobody is asked whether those may go."""
        own = copy(self)
        own._instead = frozenset(ids)
        return own

    def over(self, store: MemoryStore) -> RuleStore:
        """The same rules by another handle of their store."""
        own = copy(self)
        own.store, own._ids = store, RuleIds(store, self.workspace)
        own.records = RuleRecords(store, self.workspace, self.clock)
        return own

    def quiet(self) -> RuleStore:
        """The same rules, for one who asks again and again: what is left out of the prompt is not logged each time."""
        own = copy(self)
        own._tells = False
        return own

    # ------------------------------------------------------------ reading

    async def get_rule(self, tool_name: str, rule_id: str) -> ToolMemoryRule | None:
        """None where no active rule is. Raises StoreError where its record is damaged."""
        row = await self.records.row(namespace_of(read_tool_name(tool_name)), await self.full_id(rule_id))
        return row.rule if row is not None and row.rule.holds_at(self.clock.now()) else None

    async def list_rules(self, tool_name: str) -> list[ToolMemoryRule]:
        """Active ones of one tool: priority, then the freshest. Damaged records are logged and left out."""
        return by_priority(
            (await self.records.stored(namespace_of(read_tool_name(tool_name)))).active(self.clock.now())
        )

    async def all_rules(self, *, inactive: bool = False) -> tuple[list[ToolMemoryRule], list[DamagedRule]]:
        """Of all tools, by tool, priority and freshness; and the records that hold no rule. `inactive`: also those that
        wait for a person, were withdrawn or superseded.
        """
        stored = await self.records.stored(None)
        ordered = by_priority([row.rule for row in stored.rules] if inactive else stored.active(self.clock.now()))
        return sorted(ordered, key=lambda rule: folded_name(rule.tool_name)), stored.damaged

    async def list_tool_names(self) -> list[str]:
        """Tools that have active rules, as the first put wrote them, in the order of their lower-case names;
        `__unscoped__` among them where a rule has no tool.
        """
        rules: dict[str, list[ToolMemoryRule]] = {}
        for rule in (await self.records.stored(None)).active(self.clock.now()):
            rules.setdefault(folded_name(rule.tool_name), []).append(rule)
        return [first_spelling(rules[tool]) for tool in sorted(rules)]

    async def rules_json(self, tool_name: str) -> list[dict[str, Any]]:
        """The records of a tool's active rules as they are stored, by id; damaged ones as `{"damaged": their text}`."""
        records = await self.records.raw([namespace_of(read_tool_name(tool_name))])
        values = [raw_value(record.text) for record in records]
        now = self.clock.now()
        return [value for value in values if not is_tombstone(value) and may_hold(value, now)]

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
        catalogue = read_tools(tools)
        names = names_of(catalogue)
        records = await self.records.raw(spaces_of(names, catalogue))
        chosen = chosen_for_prompt(records, names, self._caps, self.clock.now())
        if self._tells:
            tell_left_out(chosen, self._caps)
        return chosen

    async def full_id(self, given: str) -> str:
        """The id of the rule, of whatever tool, that begins so; as given for none. Raises RequestError for several."""
        if not is_shortened(given):
            return read_id(given)
        records = [each for each in await self.records.raw(None) if not is_tombstone(raw_value(each.text))]
        return whole_id(given, [each.key.removeprefix(RULE_PREFIX) for each in records])

    @property
    def _by(self) -> Changing:
        return Changing(self.speaker, self.evidence or evidence_here(), instead=self._instead, agent=self.agent)

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
        effect: Effect | None = None,
        when: When | Sequence[Mapping[str, Any]] | None = None,
        unchecked: str = "",
        expires_at: datetime | str | None = None,
        superseded_by: str = "",
    ) -> ToolMemoryRule:
        """Insert, or change the rule of that id; answers it as it is stored.

        What is left out keeps its stored value, `created_at` always does. A text that the tool has already (case,
        space and final punctuation aside) is the rule that has it: its id stays. New rules are `normal` and
        `programmatic` where nothing else is said. A tombstone of this rule is cleared. Raises RequestError that names
        the field: a blank tool name or text, one over its limit, an unknown priority or source, an id of another tool.

        `effect`: deny, ask or remind; `when`: which calls are meant, as alternatives of tests (a list, or an object of
        `when` and `unless`), as a JSON Schema that the view of a call fulfils, or True for every call of the tool.
        Where both are left out the sentence is read for them, and `unchecked` of the answer says why it only reminds.
        A rule that has expired holds no longer.

        `status`, `said` and times: of a rule that is put back as it was; `said` never gives more authority than the
        speaker of this store has.
        """
        chosen, condition = read_check(effect, when)
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
            effect=chosen,
            when=condition,
            unchecked=unchecked,
            expires_at=read_time(expires_at, "expires_at"),
            superseded_by=superseded_by,
        )
        put = await self._put(draft.spoken_by(self.speaker), captured=False)
        assert put is not None
        return put

    async def put_whole(self, rule: ToolMemoryRule) -> ToolMemoryRule:
        """Put a rule as it stands; where it is new here, with its times."""
        return await self.put_rule(**rule.model_dump())

    async def capture_rule(self, draft: RuleDraft) -> ToolMemoryRule | None:
        """Keep a rule that was captured, not put: raises the priority of one that is there, never lowers it.

        None where it was said before it was deleted, or let go. Where agents are held to the store, what a program says
        that the user said is a proposal of that program, unless it `heard` it. Raises as `put_rule`.
        """
        if (noted := await noted_already(draft, self.records, self.clock.now())) is not None:
            return noted
        if draft.said.by == "user" and not self._hears and draft.source == "user_explicit" and holds_agents(self.store):
            draft = draft.of_a_program()
        return await self._put(draft.spoken_by(self._speaker_of(draft)), captured=True)

    def _speaker_of(self, draft: RuleDraft) -> Speaker:
        """Of words that were heard."""
        return "agent" if self.speaker == "agent" else allowed_speaker(draft.said.by)

    async def put_noted(self, draft: RuleDraft) -> ToolMemoryRule:
        """Keep what was noted of the user's words; a proposal changes no rule that holds. Raises as `put_rule`."""
        spoken = replace(draft.spoken_by(self._speaker_of(draft)), is_heard=True)
        kept = await self._put(spoken, captured=draft.status == "proposed") or await self._put(spoken, captured=False)
        assert kept is not None
        return kept

    async def set_status(self, rule_id: str, status: RuleStatus, tool_name: str | None = None) -> ToolMemoryRule | None:
        """A person's decision on a rule of whatever status; None where there is none. Raises RequestError."""
        if self.speaker == "agent":
            raise RequestError("status: an agent cannot approve or reject a rule; the user can", field="status")
        if read_choice(status, "status", get_args(RuleStatus)) is None:
            raise RequestError(f"status: expected one of {', '.join(get_args(RuleStatus))}", field="status")
        full = await self.full_id(rule_id)
        tool = await self._ids.owner(full) if tool_name is None else read_tool_name(tool_name)
        return None if tool is None else await self._written(tool, partial(self._with_status, tool, full, status))

    async def withdraw(self, rule: ToolMemoryRule, *, superseded_by: str = "") -> ToolMemoryRule | None:
        """Let an active rule hold no longer, kept as withdrawn, or as superseded by the rule of that id.

        None where it is not active. Raises RequestError for an agent.
        """
        if self.speaker == "agent":
            raise RequestError("status: an agent cannot withdraw a rule; the user can", field="status")
        status: RuleStatus = "superseded" if superseded_by else "withdrawn"
        change = partial(self._with_status, rule.tool_name, rule.id, status, superseded_by, of="active")
        return await self._written(rule.tool_name, change)

    async def _with_status(
        self, tool: str, rule_id: str, status: RuleStatus, superseded_by: str = "", of: RuleStatus | None = None
    ) -> ToolMemoryRule | None:
        """`of`: None where it has another status."""
        row = await self.records.row(namespace_of(tool), rule_id)
        if row is None or (of is not None and row.rule.status != of):
            return None
        update = {"status": status, "superseded_by": superseded_by, "updated_at": self.clock.now()}
        changed = row.rule.model_copy(update=update)
        return await self.records.write(changed, await document_of(changed.rule, self.embedder), row, self._by)

    async def delete_rule(self, tool_name: str, rule_id: str) -> bool:
        """True if it was there. Capture will not bring it back from the same sentence; an explicit put does."""
        namespace, full = namespace_of(read_tool_name(tool_name)), await self.full_id(rule_id)
        return await self._written(tool_name, partial(self._deleted, namespace, full))

    async def _deleted(self, namespace: str, rule_id: str) -> bool:
        try:
            row = await self.records.row(namespace, rule_id)
        except (StoreClosed, StoreUnavailable):
            raise
        except StoreError as error:
            logger.warning("a record is damaged and is deleted without a trace: %s", error)
            return await self.store.delete(self.workspace, namespace, rule_key(rule_id))
        if row is None:
            return False
        if self.speaker == "agent" and not is_agents_to_change(row.rule):
            raise RequestError(f"id: {row.rule.id!r} is no rule of an agent's; only a person deletes it", field="id")
        await self.records.bury(row, sentence_of(self.workspace, row.rule), self._by)
        return True

    async def _put(self, given: RuleDraft, *, captured: bool) -> ToolMemoryRule | None:
        checked = given.checked()
        document = await document_of(checked.rule, self.embedder)
        draft = replace(checked, id=await self.full_id(checked.id))
        return await self._written(draft.tool_name, partial(self._decided, draft, document, captured=captured))

    async def _written(self, tool_name: str, decide: Callable[[], Awaitable[T]]) -> T:
        return await until_written(f"the rules of {tool_name!r}", decide, self.clock.sleep)

    async def _decided(self, draft: RuleDraft, document: Document, *, captured: bool) -> ToolMemoryRule | None:
        """None: captured, but the user deleted it. Raises Conflict where somebody else wrote first."""
        stored = await self.records.stored(namespace_of(draft.tool_name))
        own = stored.with_id(draft.id) if draft.id else None
        target = stored.with_text(draft.rule) or own
        deleted = stored.deleted(sentence_of(self.workspace, draft)) if captured and target is None else []
        if any(not is_said_anew(draft, tombstone.said) for tombstone in deleted):
            return None
        if draft.said.by == "agent":
            for row in (own, target):
                if row is not None and not is_agents_to_change(row.rule):
                    return left_alone(row.rule, draft, captured=captured)
        elif captured and target is not None and not holds_again(target.rule, draft, self.clock.now()):
            return None
        check = draft.check_over(None if target is None else target.rule, captured=captured)
        if draft.id and own is None:
            await self._ids.require(draft, claim=target is None)
        if target is None:
            return await self._created(draft, document, stored, check)
        changed = draft.over(target.rule, self.clock.now(), check, captured=captured)
        if own is not None and own is not target:  # its text became that of another rule: one of them stays
            self.records.require(own.rule, None, self._by)
        await self.records.write(changed, document, target, self._by)
        if own is not None and own is not target:
            await self.records.bury(own, "", self._by)
        return changed

    async def _created(self, draft: RuleDraft, document: Document, stored: StoredRules, check: Check) -> ToolMemoryRule:
        rule_id = draft.id or await self._ids.new(draft, stored)
        name = first_spelling((row.rule for row in stored.rules), draft.tool_name)
        new = draft.as_new(rule_id, name, self.clock.now(), check)
        return await self.records.write(new, document, stored.free_version(rule_id), self._by)


ToolMemoryStore = RuleStore  # its name in OpenHuman
