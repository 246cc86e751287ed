"""Store the rules of one workspace. A change is one compare-and-swap of the rule's record."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict, replace

from toolmem.errors import Conflict, RequestError
from toolmem.models.calls import Moment
from toolmem.models.protocols import Clock, Store
from toolmem.models.records import RULE_PREFIX, SESSION_RULES, TOOL_PREFIX, Record
from toolmem.models.rules import RANK, Effect, Priority, RuleChange, Said, Source, ToolMemoryRule
from toolmem.rules.changes import (
    ACCEPTED,
    MAX_CHANGES,
    ONLY_ASKS,
    PROGRAM,
    Actor,
    change_of,
    is_allowed,
    loosens,
    require_seen,
    tombstone,
)
from toolmem.rules.identity import (
    derived_id,
    folded_name,
    namespace_of,
    read_id,
    read_tags,
    read_text,
    read_tool_name,
    rule_key,
    text_key,
)
from toolmem.store.storable import ATTEMPTS, retry_on_conflict
from toolmem.text.display import shown_time, zone_name
from toolmem.text.forms import word_set
from toolmem.text.masking import Masker
from toolmem.view.conditions import read_conditions

log = logging.getLogger("toolmem.rules")

GUARDED = (".store", ".store", "guarded")  # workspace, namespace and key of the mark
MAX_SESSION = timedelta(days=7)  # after which rules of a session expire that was never ended
MAX_TURNS = 20  # newest marks of turns in which a rule was said
_CONTENT = word_set("priority source tags effect when unless stops passes replaces unread")


class RuleInput(Struct, kw_only=True):
    """The fields of a rule to put. An unset field keeps its stored value."""

    tool_name: str
    rule: str
    id: str = ""
    priority: Priority | UnsetType = UNSET
    source: Source | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    effect: Effect | UnsetType = UNSET
    when: list[dict[str, Any]] | UnsetType = UNSET
    unless: list[dict[str, Any]] | UnsetType = UNSET
    stops: list[dict[str, Any]] | UnsetType = UNSET
    passes: list[dict[str, Any]] | UnsetType = UNSET
    unread: list[str] | UnsetType = UNSET
    replaces: str | UnsetType = UNSET
    expires_at: Moment | None | UnsetType = UNSET
    session: str = ""  # the only one in which it holds; "": it holds in all
    said: Said | UnsetType = UNSET

    def checked(self) -> RuleInput:
        """Return a copy with checked and trimmed fields. Raises RequestError for a wrong one."""
        if self.when is not UNSET and self.when:
            read_conditions(self.when, None if self.unless is UNSET else self.unless)
        elif self.effect is not UNSET and self.effect != "remind" and not self.id:
            raise RequestError(f"when: needed with effect {self.effect}; or leave both out", "when")
        return replace(
            self,
            tool_name=read_tool_name(self.tool_name),
            rule=read_text(self.rule, "rule"),
            id=read_id(self.id),
            tags=self.tags if self.tags is UNSET else read_tags(self.tags),
        )


class RuleListing(Struct, frozen=True):
    """Rules, and the records that cannot be read; `put_rule` may replace these records."""

    rules: list[ToolMemoryRule]
    damaged: list[Record]


class _Slot(Struct):
    """Where a rule is stored, and its record there before a change."""

    namespace: str
    id: str
    version: int = 0  # of the record; 0: there is none
    before: ToolMemoryRule | None = None  # None: there is no record, or it is damaged


class ToolMemoryStore:
    """Stores the user's rules, by tool. Methods raise RequestError and StoreError.

    `zone`: the user's time zone; if None, the machine's.
    """

    def __init__(
        self, store: Store, workspace: str, clock: Clock, zone: tzinfo | None = None
    ) -> None:
        self.store = store
        self.workspace = workspace
        self.clock = clock
        self.zone = zone
        # Copies of a store that was lost; their rules bind, too.
        self.copied: Sequence[ToolMemoryStore] = ()

    def local_time(self) -> datetime:
        """Return the current time in the user's zone."""
        return self.clock.now().astimezone(self.zone)

    def end_of_day(self, day: date | None = None) -> datetime:
        """Return the midnight that ends a day, in the user's zone. `day`: if None, today."""
        following = (day or self.local_time().date()) + timedelta(days=1)
        return datetime.combine(following, time(), self.zone).astimezone(self.zone)

    def until(self, ends: datetime) -> str:
        """Write when something ends, with the zone: "until Fri 28 Nov 24:00, Europe/Berlin"."""
        now = self.clock.now()
        return f"until {shown_time(ends, self.zone, now)}, {zone_name(self.zone, ends)}"

    def get_rule(self, tool_name: str, rule_id: str) -> ToolMemoryRule | None:
        """Return a rule; None if there is no such rule, or it is only requested."""
        found = self._slot_at(namespace_of(read_tool_name(tool_name)), read_id(rule_id)).before
        return found if found is not None and found.status == "active" else None

    def list_rules(self, tool_name: str) -> list[ToolMemoryRule]:
        """List the rules on a tool that hold now, sorted by priority, then the newest first."""
        found = self._listing(namespace_of(read_tool_name(tool_name))).rules
        active = [rule for rule in found if rule.holds_at(self.clock.now())]
        return sorted(active, key=lambda rule: (RANK[rule.priority], -rule.updated_at.timestamp()))

    def all_rules(self, session: str = "") -> RuleListing:
        """List the rules that hold now in every session, and those that hold only in `session`."""
        now = self.clock.now()
        listing = self._listing(prefix=TOOL_PREFIX)
        rules = [rule for rule in listing.rules if rule.holds_at(now)]
        if session:
            rules += [rule for rule in self.every_session_rule() if rule.session == session]
        return RuleListing(rules, listing.damaged)

    def every_session_rule(self) -> list[ToolMemoryRule]:
        """List, for all sessions, the rules that hold now in only one of them."""
        now = self.clock.now()
        found = self._listing(SESSION_RULES).rules
        return [rule for rule in found if rule.holds_at(now)]

    def every_rule(self) -> list[ToolMemoryRule]:
        """List all rules that are not deleted: rules that hold, are requested, or have ended."""
        found = [self._listing(prefix=TOOL_PREFIX), self._listing(SESSION_RULES)]
        return [rule for each in found for rule in each.rules if rule.status != "deleted"]

    def requests(self) -> list[ToolMemoryRule]:
        """List rules that are only requested, and rules with a requested change."""
        every = self.every_rule()
        return [rule for rule in every if rule.status == "request" or rule.request is not None]

    def list_tool_names(self) -> list[str]:
        """List the tools that have rules, sorted, each as it was spelled first."""
        names: dict[str, str] = {}
        for rule in sorted(self.all_rules().rules, key=lambda rule: (rule.created_at, rule.id)):
            names.setdefault(folded_name(rule.tool_name), rule.tool_name)
        return sorted(names.values())

    def rules_json(self, tool_name: str) -> list[Any]:
        """List the stored rules of a tool as decoded JSON, unsorted and with deleted ones."""
        namespace = namespace_of(read_tool_name(tool_name))
        records = self.store.list_records(self.workspace, namespace, key_prefix=RULE_PREFIX)
        return [msgspec.json.decode(record.value) for record in records]

    def is_guarded(self) -> bool:
        """Whether only the user may loosen rules here: a hook or proxy has used this store."""
        return self.store.get(*GUARDED) is not None

    def _listing(self, namespace: str | None = None, prefix: str = "") -> RuleListing:
        records = self.store.list_records(
            self.workspace, namespace, prefix=prefix, key_prefix=RULE_PREFIX
        )
        listing = RuleListing([], [])
        now = self.local_time()
        for record in records:
            try:
                listing.rules.append(_read(record, now))
            except ValueError as error:
                listing.damaged.append(record)
                log.warning("%s/%s is no rule: %.300s", record.namespace, record.key, error)
        return listing

    def put_rule(
        self, given: RuleInput, actor: Actor = PROGRAM, *, captured: bool = False
    ) -> ToolMemoryRule:
        """Make a rule, or change the one with this id or text. Returns the rule afterwards.

        An agent only makes a request. `captured`: the rule was read from a sentence. Then no rule
        is loosened, and a deleted rule stays deleted when its turn is replayed.
        """
        checked = self._masked(given.checked())
        if checked.session:
            latest = self.clock.now() + MAX_SESSION
            checked.expires_at = min(checked.expires_at or latest, latest)
        return retry_on_conflict(lambda: self._put(checked, actor, captured))

    def _masked(self, given: RuleInput) -> RuleInput:
        """Mask secrets, except in conditions, which would match nothing any more."""
        masker = Masker(self.store.secret_key())
        said = given.said
        if said is not UNSET:
            said = replace(said, understood=masker.text(said.understood))
        calls = {"stops": masker.value(given.stops), "passes": masker.value(given.passes)}
        return replace(given, rule=masker.text(given.rule), said=said, **calls)

    def _put(self, given: RuleInput, actor: Actor, captured: bool) -> ToolMemoryRule:
        slot = self._slot_of(given)
        now = self.clock.now()
        before = slot.before
        if actor.seen:
            require_seen(before, actor.seen, now)
        is_vouched = bool(actor.evidence) or not self.is_guarded()  # that the user said it
        is_over = before is not None and before.status != "request" and not before.holds_at(now)
        if before is not None and is_over and captured and _is_replayed(before, given):
            return before
        if before is None or before.status != "active":
            return self._write(slot, self._new(slot, given, actor, is_vouched))
        if actor.kind == "agent" and given.said is not UNSET:  # a note: the rule is who said it
            given = replace(given, tags=before.tags)
        if not is_vouched:
            given.said = UNSET
        after = _merged(before, given, now)
        may_be_mended = ONLY_ASKS in before.tags and after.effect == "deny"
        if may_be_mended:  # in the same turn, by the model, which was told to narrow it
            turns = () if given.said is UNSET else given.said.turns[-1:]
            may_be_mended = bool(turns) and before.said.turns[-1:] == turns
            after = replace(after, expires_at=before.expires_at)
        if captured and is_over and not is_vouched:  # said again: it holds again as it was
            after = replace(before, expires_at=after.expires_at, updated_at=now)
        if captured and not may_be_mended and loosens(before, after, now):
            fields = {name: getattr(before, name) for name in (*_CONTENT, "expires_at", "rule")}
            after = replace(after, **fields)
        return self._change(slot, after, actor, "changed")

    def _new(self, slot: _Slot, given: RuleInput, actor: Actor, is_vouched: bool) -> ToolMemoryRule:
        now = self.clock.now()
        said = Said(actor.kind, actor.session) if given.said is UNSET else given.said
        if actor.kind == "agent":
            said = replace(said, by="agent", noted_by=said.noted_by or actor.name)
        waits = actor.kind == "agent" or (said.by == "user" and not is_vouched)
        if waits and said.by == "user":  # nobody saw the user say it
            said = replace(said, by="program")
        content = {name: value for name, value in asdict(given).items() if value is not UNSET}
        return ToolMemoryRule(
            **{**content, "id": slot.id, "said": said},
            created_at=now,
            updated_at=now,
            status="request" if waits else "active",
        )

    def delete_rule(self, tool_name: str, rule_id: str, actor: Actor = PROGRAM) -> bool:
        """Delete a rule; return False if there is no such rule, or deletion is only requested."""
        slot = self._slot_at(namespace_of(read_tool_name(tool_name)), read_id(rule_id))
        if slot.before is None or slot.before.status == "deleted":
            return False
        return self.delete(slot.before, actor).status == "deleted"

    def delete(self, rule: ToolMemoryRule, actor: Actor, what: str = "deleted") -> ToolMemoryRule:
        """Delete a rule, or request that if `actor` may not. Returns the rule afterwards."""
        return self.change(rule, actor, what, status="deleted")

    def change(
        self, rule: ToolMemoryRule, actor: Actor, what: str = "changed", /, **fields: Any
    ) -> ToolMemoryRule:
        """Change a rule, or request that if `actor` may not. Returns the rule afterwards."""

        def write() -> ToolMemoryRule:
            slot = self._slot_at(_namespace(rule), rule.id)
            before = slot.before
            if before is None or before.status == "deleted":
                raise RequestError(f"id: there is no rule {rule.id!r} any more", "id")
            if actor.seen:
                require_seen(before, actor.seen, self.clock.now())
            after = replace(before, **fields, updated_at=self.clock.now())
            return self._change(slot, after, actor, what)

        return retry_on_conflict(write)

    def restore(self, rule: ToolMemoryRule, actor: Actor) -> ToolMemoryRule:
        """Write a deleted rule again. `rule`: as it was before. Returns the rule afterwards."""

        def write() -> ToolMemoryRule:
            slot = self._slot_at(_namespace(rule), rule.id)
            now = self.clock.now()
            if slot.before is not None and slot.before.status == "active":
                return slot.before  # it was said again
            change = RuleChange(now, actor.kind, "restored", actor.evidence, session=actor.session)
            changes = [*rule.changes, change][-MAX_CHANGES:]
            again = replace(rule, status="active", request=None, updated_at=now, changes=changes)
            return self._write(slot, again)

        return retry_on_conflict(write)

    def accept(self, rule: ToolMemoryRule, actor: Actor) -> ToolMemoryRule:
        """Do what a request asks for. It remains a request if `actor` may not decide on it."""
        if rule.status == "request":
            said = replace(rule.said, by="user")
            return self.change(rule, actor, ACCEPTED, status="active", said=said)
        if rule.request is None:
            raise RequestError(f"id: nothing is asked for rule {rule.id!r}", "id")
        fields = {name: getattr(rule.as_asked, name) for name in rule.request.after}
        return self.change(rule, actor, ACCEPTED, **fields, request=None)

    def reject(self, rule: ToolMemoryRule, actor: Actor) -> ToolMemoryRule:
        """Drop the requested change of a rule, or a rule that was only requested."""
        if rule.status == "request":
            return self.delete(rule, actor)
        return self.change(rule, actor, "rejected", request=None)

    def end_session(self, session: str) -> int:
        """Delete this session's rules and long expired ones of others. Returns how many."""
        long_ago = self.clock.now() - MAX_SESSION  # until then the others can tell of the end
        number = 0
        for rule in self._listing(SESSION_RULES).rules:
            is_over = rule.expires_at is not None and rule.expires_at <= long_ago
            if is_over or rule.session == session:
                number += self.store.delete(self.workspace, SESSION_RULES, rule_key(rule.id))
        return number

    def _change(
        self, slot: _Slot, after: ToolMemoryRule, actor: Actor, what: str
    ) -> ToolMemoryRule:
        before = slot.before
        now = self.clock.now()
        assert before is not None
        actor = replace(actor, words=Masker(self.store.secret_key()).text(actor.words))
        change = change_of(before, after, actor, now, what)
        if not is_allowed(before, after, actor, now, guarded=self.is_guarded()):
            if what == ACCEPTED or not change.after:
                return before
            return self._write(slot, replace(before, request=replace(change, before={})))
        if after.status == "deleted":
            return self._write(slot, tombstone(after, actor, now, what))
        changes = [*before.changes, replace(change, after={})] if change.after else before.changes
        return self._write(slot, replace(after, changes=changes[-MAX_CHANGES:]))

    def _write(self, slot: _Slot, rule: ToolMemoryRule) -> ToolMemoryRule:
        key = rule_key(rule.id)
        self.store.put(self.workspace, slot.namespace, key, rule, expected_version=slot.version)
        return rule

    def _slot_of(self, given: RuleInput) -> _Slot:
        namespace = _namespace(given)
        if given.id:
            slot = self._slot_at(namespace, given.id)
            if slot.version == 0:
                self._refuse_id_of_another_tool(given)
            return slot
        text = text_key(given.rule)
        tool = folded_name(given.tool_name)
        for rule in self._listing(namespace).rules:
            is_same = rule.session == given.session and folded_name(rule.tool_name) == tool
            if is_same and rule.status == "active" and text_key(rule.rule) == text:
                return self._slot_at(namespace, rule.id)
        secret = self.store.secret_key().hex()  # so that nobody guesses the id in `lift ID`
        for attempt in range(ATTEMPTS):
            parts = (secret, self.workspace, namespace, given.session, tool, text, str(attempt))
            slot = self._slot_at(namespace, derived_id("text", *parts))
            before = slot.before
            if before is None or before.status != "active" or text_key(before.rule) == text:
                return slot
        raise Conflict(f"rule {given.rule[:60]!r}: its ids are taken")

    def _slot_at(self, namespace: str, rule_id: str) -> _Slot:
        record = self.store.get(self.workspace, namespace, rule_key(rule_id))
        if record is None:
            return _Slot(namespace, rule_id)
        slot = _Slot(namespace, rule_id, record.version)
        with suppress(ValueError):
            slot.before = _read(record, self.local_time())
        return slot

    def _refuse_id_of_another_tool(self, given: RuleInput) -> None:
        key = rule_key(given.id)
        found = self.store.list_records(self.workspace, prefix=TOOL_PREFIX, key_prefix=key)
        for record in found:
            if record.key == key:
                tool = record.namespace.removeprefix(TOOL_PREFIX)
                raise RequestError(f"id: {given.id!r} is a rule of {tool!r}", "id")


_decode = msgspec.json.Decoder(ToolMemoryRule).decode


def _read(record: Record, now: datetime) -> ToolMemoryRule:
    """Read a rule from its record. Raises ValueError if the record is damaged."""
    rule = _decode(record.value)
    if rule.request is not None and rule.request.evidence == "typed":
        rule = replace(rule, request=rule.question_at(now))  # None: its day is over
    if rule_key(rule.id) != record.key or _namespace(rule) != record.namespace:
        raise ValueError("its id or tool is another one")
    if rule.status != "deleted" and not rule.rule.strip():
        raise ValueError("rule: expected a text")
    return rule


def _namespace(rule: ToolMemoryRule | RuleInput) -> str:
    return SESSION_RULES if rule.session else namespace_of(rule.tool_name)


def _merged(before: ToolMemoryRule, given: RuleInput, now: Moment) -> ToolMemoryRule:
    """Return the stored rule with the given fields. Its `created_at` stays."""
    given_fields = {name: getattr(given, name) for name in (*_CONTENT, "expires_at")}
    fields = {name: value for name, value in given_fields.items() if value is not UNSET}
    if not (given.id or before.holds_at(now)):
        fields = {"expires_at": None, **fields}  # said again, it holds again
    said = before.said
    if given.said is not UNSET and given.said.by == "user":
        turns = tuple(dict.fromkeys((*said.turns, *given.said.turns)))[-MAX_TURNS:]
        said = replace(given.said, turns=turns)
        if before.request is not None and before.request.evidence == "typed":
            before = replace(before, request=None)  # said again: the question is answered
    is_same = not given.id and text_key(given.rule) == text_key(before.rule)
    rule = before.rule if is_same else given.rule
    return replace(before, **fields, rule=rule, said=said, updated_at=now)


def _is_replayed(before: ToolMemoryRule, given: RuleInput) -> bool:
    """Whether the same turn was read before and made this rule."""
    turns: Sequence[str] = () if given.said is UNSET else given.said.turns
    return not set(turns).isdisjoint(before.said.turns)
