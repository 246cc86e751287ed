"""The rules of one workspace. Every change is one compare-and-swap of the rule's record."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict, replace

from toolmem.errors import Conflict, RequestError
from toolmem.models.calls import Moment
from toolmem.models.protocols import Clock, Store
from toolmem.models.records import Record
from toolmem.models.rules import RANK, Change, Effect, Priority, Said, Source, ToolMemoryRule
from toolmem.rules.changes import MAX_CHANGES, PROGRAM, Actor, change_of, is_allowed, loosens
from toolmem.rules.identity import (
    RULE_PREFIX,
    SESSION_RULES,
    TOOL_PREFIX,
    folded_name,
    made_id,
    namespace_of,
    read_id,
    read_tags,
    read_text,
    read_tool_name,
    rule_key,
    same_text,
)
from toolmem.text.masking import Masker
from toolmem.view.conditions import read_conditions

log = logging.getLogger("toolmem.rules")
Written = TypeVar("Written")
Kept = TypeVar("Kept")

GUARDED = (".store", ".store", "guarded")  # workspace, namespace and key of an install's mark
SESSION_LASTS = timedelta(days=7)  # at most, where a session is not ended
MAX_TURNS = 20  # in which a rule was said that are kept
_ATTEMPTS = 50  # of a change that others' changes overtake
_CONTENT = ("priority", "source", "tags", "effect", "when", "unless", "stops", "passes", "unread")


class RuleInput(Struct, kw_only=True):
    """A rule as it is put. What is left out keeps its stored value."""

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
    expires_at: Moment | None | UnsetType = UNSET
    session: str = ""  # the only one in which it holds
    said: Said | UnsetType = UNSET

    def checked(self) -> RuleInput:
        """Trimmed and within limits. Raises RequestError that names the field."""
        if self.when is not UNSET and self.when:
            read_conditions(self.when, None if self.unless is UNSET else self.unless)
        elif self.effect is not UNSET and self.effect != "remind" and not self.id:
            raise RequestError(f"when: needed where the effect is {self.effect}", "when")
        return replace(
            self,
            tool_name=read_tool_name(self.tool_name),
            rule=read_text(self.rule, "rule"),
            id=read_id(self.id),
            tags=self.tags if self.tags is UNSET else read_tags(self.tags),
        )


class RuleListing(Struct, frozen=True):
    """Rules, and the records beside them that are none; they hide no other and may be put anew."""

    rules: list[ToolMemoryRule]
    damaged: list[Record]


class _Place(Struct):
    """Where a rule is written: its record as it stands."""

    namespace: str
    id: str
    version: int = 0
    before: ToolMemoryRule | None = None  # None: there is none, or it is damaged


class ToolMemoryStore:
    """What the user demands, by tool. Methods raise RequestError and StoreError."""

    def __init__(self, store: Store, workspace: str, clock: Clock) -> None:
        self.store = store
        self.workspace = workspace
        self.clock = clock

    # ------------------------------------------------------------ reading

    def get_rule(self, tool_name: str, rule_id: str) -> ToolMemoryRule | None:
        """None where there is no such rule, or where it is only asked for."""
        found = self._place_at(namespace_of(read_tool_name(tool_name)), read_id(rule_id)).before
        return found if found is not None and found.status == "active" else None

    def list_rules(self, tool_name: str) -> list[ToolMemoryRule]:
        """The rules of one tool: by priority, then the freshest first."""
        namespace = namespace_of(read_tool_name(tool_name))
        found = self._listing(namespace=namespace).rules
        active = [rule for rule in found if rule.holds_at(self.clock.now())]
        return sorted(active, key=lambda rule: (RANK[rule.priority], -rule.updated_at.timestamp()))

    def all_rules(self, session: str = "") -> RuleListing:
        """Everything that holds now, with what holds in this session alone."""
        now, listing = self.clock.now(), self._listing(prefix=TOOL_PREFIX)
        rules = [rule for rule in listing.rules if rule.holds_at(now)]
        if session:
            rules += [rule for rule in self.every_session_rule() if rule.session == session]
        return RuleListing(rules, listing.damaged)

    def every_session_rule(self) -> list[ToolMemoryRule]:
        """What holds in any one session."""
        now, found = self.clock.now(), self._listing(namespace=SESSION_RULES).rules
        return [rule for rule in found if rule.holds_at(now)]

    def requests(self) -> list[ToolMemoryRule]:
        """Rules that are asked for, and rules of which a change is asked for."""
        found = [self._listing(prefix=TOOL_PREFIX), self._listing(namespace=SESSION_RULES)]
        rules = [rule for listing in found for rule in listing.rules]
        return [rule for rule in rules if rule.status == "request" or rule.request is not None]

    def list_tool_names(self) -> list[str]:
        """The tools that have rules, as they were first spelled; sorted."""
        names: dict[str, str] = {}
        for rule in sorted(self.all_rules().rules, key=lambda rule: (rule.created_at, rule.id)):
            names.setdefault(folded_name(rule.tool_name), rule.tool_name)
        return sorted(names.values())

    def rules_json(self, tool_name: str) -> list[Any]:
        """The records of a tool's rules as they are stored, unsorted."""
        namespace = namespace_of(read_tool_name(tool_name))
        records = self.store.list_records(self.workspace, namespace, key_prefix=RULE_PREFIX)
        return [msgspec.json.decode(record.value) for record in records]

    def is_guarded(self) -> bool:
        """Whether an installed hook or proxy holds agents by this store."""
        return self.store.get(*GUARDED) is not None

    def _listing(self, namespace: str | None = None, prefix: str = "") -> RuleListing:
        records = self.store.list_records(
            self.workspace, namespace, prefix=prefix, key_prefix=RULE_PREFIX
        )
        listing = RuleListing([], [])
        for record in records:
            try:
                listing.rules.append(_read(record))
            except ValueError as error:
                listing.damaged.append(record)
                log.warning("%s/%s is no rule: %.300s", record.namespace, record.key, error)
        return listing

    # ------------------------------------------------------------ changing

    def put_rule(
        self, given: RuleInput, actor: Actor = PROGRAM, *, captured: bool = False
    ) -> ToolMemoryRule:
        """Make a rule, or change the one of this id or text. An agent's is a request.

        `captured`: read from a sentence; it lets no rule bind less, and a deleted rule stays
        deleted where its turn is played again.
        """
        checked = self._masked(given.checked())
        if checked.session:
            latest = self.clock.now() + SESSION_LASTS
            checked.expires_at = min(checked.expires_at or latest, latest)
        return retry_on_conflict(lambda: self._put(checked, actor, captured))

    def _masked(self, given: RuleInput) -> RuleInput:
        """Without secrets; conditions keep them, as they would match nothing else."""
        masker, said = Masker(self.store.secret_key()), given.said
        if said is not UNSET:
            said = replace(said, understood=masker.text(said.understood))
        calls = {"stops": masker.value(given.stops), "passes": masker.value(given.passes)}
        return replace(given, rule=masker.text(given.rule), said=said, **calls)

    def _put(self, given: RuleInput, actor: Actor, captured: bool) -> ToolMemoryRule:
        place = self._place_of(given)
        before = place.before
        if before is None or before.status != "active":
            if before is not None and captured and _is_replayed(before, given):
                return before
            return self._write(place, self._new(place, given, actor))
        after = _merged(before, given, self.clock.now())
        if captured and loosens(before, after, self.clock.now()):
            kept = {name: getattr(before, name) for name in (*_CONTENT, "expires_at", "rule")}
            after = replace(after, **kept)
        return self._change(place, after, actor, "changed")

    def _new(self, place: _Place, given: RuleInput, actor: Actor) -> ToolMemoryRule:
        now = self.clock.now()
        said = Said(actor.kind, actor.session) if given.said is UNSET else given.said
        if actor.kind == "agent":
            said = replace(said, by="agent", noted_by=said.noted_by or actor.name)
        content = {name: value for name, value in asdict(given).items() if value is not UNSET}
        return ToolMemoryRule(
            **{**content, "id": place.id, "said": said},
            created_at=now,
            updated_at=now,
            status="request" if actor.kind == "agent" else "active",
        )

    def delete_rule(self, tool_name: str, rule_id: str, actor: Actor = PROGRAM) -> bool:
        """Whether it was there and is gone; False too where the deletion is only asked for."""
        place = self._place_at(namespace_of(read_tool_name(tool_name)), read_id(rule_id))
        if place.before is None or place.before.status == "deleted":
            return False
        return self.delete(place.before, actor).status == "deleted"

    def delete(self, rule: ToolMemoryRule, actor: Actor) -> ToolMemoryRule:
        """The rule afterwards: deleted, or with the request to do so. No word of it is kept."""
        return self.change(rule, actor, "deleted", status="deleted")

    def change(
        self, rule: ToolMemoryRule, actor: Actor, what: str = "changed", **fields: Any
    ) -> ToolMemoryRule:
        """Replace fields of a rule, or ask for it; the rule afterwards. RequestError: gone."""

        def write() -> ToolMemoryRule:
            place = self._place_at(_namespace(rule), rule.id)
            before = place.before
            if before is None or before.status == "deleted":
                raise RequestError(f"id: there is no rule {rule.id!r} any more", "id")
            after = replace(before, **fields, updated_at=self.clock.now())
            return self._change(place, after, actor, what)

        return retry_on_conflict(write)

    def accept(self, rule: ToolMemoryRule, actor: Actor) -> ToolMemoryRule:
        """Do what a request asks for. `actor`: the user."""
        if rule.status == "request":
            said = replace(rule.said, by="user")
            return self.change(rule, actor, "accepted", status="active", said=said)
        if rule.request is None:
            raise RequestError(f"id: nothing is asked for rule {rule.id!r}", "id")
        asked = msgspec.convert({**msgspec.to_builtins(rule), **rule.request.after}, ToolMemoryRule)
        fields = {name: getattr(asked, name) for name in rule.request.after}
        return self.change(rule, actor, "accepted", **fields, request=None)

    def reject(self, rule: ToolMemoryRule, actor: Actor) -> ToolMemoryRule:
        """Leave a rule as it is, or take away one that was only asked for."""
        if rule.status == "request":
            return self.delete(rule, actor)
        return self.change(rule, actor, "rejected", request=None)

    def end_session(self, session: str) -> int:
        """Drop what held in this session alone; how many rules that were."""
        now, number = self.clock.now(), 0
        for rule in self._listing(namespace=SESSION_RULES).rules:
            is_over = rule.expires_at is not None and rule.expires_at <= now
            if is_over or rule.session == session:
                number += self.store.delete(self.workspace, SESSION_RULES, rule_key(rule.id))
        return number

    def _change(
        self, place: _Place, after: ToolMemoryRule, actor: Actor, what: str
    ) -> ToolMemoryRule:
        before, now = place.before, self.clock.now()
        assert before is not None
        actor = replace(actor, words=Masker(self.store.secret_key()).text(actor.words))
        change = change_of(before, after, actor, now, what)
        if not is_allowed(before, after, actor, now, guarded=self.is_guarded()):
            if not change.after:
                return before
            return self._write(place, replace(before, request=replace(change, before={})))
        if after.status == "deleted":
            deletion = Change(now, actor.kind, what, actor.evidence)
            return self._write(place, _tombstone(after, deletion))
        changes = [*before.changes, replace(change, after={})] if change.after else before.changes
        return self._write(place, replace(after, changes=changes[-MAX_CHANGES:]))

    def _write(self, place: _Place, rule: ToolMemoryRule) -> ToolMemoryRule:
        key = rule_key(rule.id)
        self.store.put(self.workspace, place.namespace, key, rule, expected_version=place.version)
        return rule

    # ------------------------------------------------------------ finding the record

    def _place_of(self, given: RuleInput) -> _Place:
        namespace = SESSION_RULES if given.session else namespace_of(given.tool_name)
        if given.id:
            place = self._place_at(namespace, given.id)
            if place.version == 0:
                self._refuse_of_another_tool(given)
            return place
        text, tool = same_text(given.rule), folded_name(given.tool_name)
        for rule in self._listing(namespace=namespace).rules:
            is_here = rule.session == given.session and folded_name(rule.tool_name) == tool
            if is_here and rule.status == "active" and same_text(rule.rule) == text:
                return self._place_at(namespace, rule.id)
        for attempt in range(_ATTEMPTS):
            parts = (self.workspace, namespace, given.session, tool, text, str(attempt))
            place = self._place_at(namespace, made_id("text", *parts))
            held = place.before
            if held is None or held.status != "active" or same_text(held.rule) == text:
                return place
        raise Conflict(f"rule {given.rule[:60]!r}: its ids are taken")

    def _place_at(self, namespace: str, rule_id: str) -> _Place:
        record = self.store.get(self.workspace, namespace, rule_key(rule_id))
        if record is None:
            return _Place(namespace, rule_id)
        place = _Place(namespace, rule_id, record.version)
        with suppress(ValueError):
            place.before = _read(record)
        return place

    def _refuse_of_another_tool(self, given: RuleInput) -> None:
        key = rule_key(given.id)
        found = self.store.list_records(self.workspace, prefix=TOOL_PREFIX, key_prefix=key)
        for record in found:
            if record.key == key:
                tool = record.namespace.removeprefix(TOOL_PREFIX)
                raise RequestError(f"id: {given.id!r} is a rule of {tool!r}", "id")


def find_rule(rules: Iterable[ToolMemoryRule], start: str) -> ToolMemoryRule:
    """The rule whose id begins so. Raises RequestError where none does, or several do."""
    found = [rule for rule in rules if start and rule.id.startswith(start)]
    if len(found) == 1:
        return found[0]
    problem = f"{len(found)} rules begin so: give more of it" if found else "no rule begins so"
    raise RequestError(f"id: {start!r}: {problem} (`toolmem rules list`)", "id")


def retry_on_conflict(write: Callable[[], Written]) -> Written:
    """Read and decide anew while others change the same record."""
    for attempt in range(_ATTEMPTS):
        try:
            return write()
        except Conflict:
            import random

            time.sleep(random.random() * 0.002 * min(attempt + 1, 20))
    return write()


def swap(
    store: Store,
    workspace: str,
    place: tuple[str, str],
    kind: type[Kept],
    change: Callable[[Kept], Written],
) -> Written:
    """Change a record, of a namespace and key, in place; what the change tells of it."""

    def write() -> Written:
        record = store.get(workspace, *place)
        held = read_or_new(record, kind)
        told = change(held)
        version = 0 if record is None else record.version
        store.put(workspace, *place, held, expected_version=version)
        return told

    return retry_on_conflict(write)


def read_or_new(record: Record | None, kind: type[Kept]) -> Kept:
    """A damaged record is as none."""
    try:
        return kind() if record is None else record.read(kind)
    except ValueError:
        return kind()


_decode = msgspec.json.Decoder(ToolMemoryRule).decode


def _read(record: Record) -> ToolMemoryRule:
    """Raises ValueError where the record is damaged."""
    rule = _decode(record.value)
    if rule_key(rule.id) != record.key or _namespace(rule) != record.namespace:
        raise ValueError("its id or tool is another one")
    if rule.status != "deleted" and not rule.rule.strip():
        raise ValueError("rule: expected a text")
    return rule


def _namespace(rule: ToolMemoryRule) -> str:
    return SESSION_RULES if rule.session else namespace_of(rule.tool_name)


def _merged(before: ToolMemoryRule, given: RuleInput, now: Moment) -> ToolMemoryRule:
    """The stored rule with what was given. `created_at` is never the caller's."""
    names = (*_CONTENT, "expires_at")
    fields = {name: value for name in names if (value := getattr(given, name)) is not UNSET}
    said = before.said
    if given.said is not UNSET and given.said.by == "user":
        turns = tuple(dict.fromkeys((*said.turns, *given.said.turns)))[-MAX_TURNS:]
        said = replace(given.said, turns=turns)
    is_same = not given.id and same_text(given.rule) == same_text(before.rule)
    rule = before.rule if is_same else given.rule
    return replace(before, **fields, rule=rule, said=said, updated_at=now)


def _is_replayed(before: ToolMemoryRule, given: RuleInput) -> bool:
    """Whether a rule that was deleted is read again from the turn in which it was said."""
    turns: Sequence[str] = () if given.said is UNSET else given.said.turns
    return before.status == "deleted" and not set(turns).isdisjoint(before.said.turns)


def _tombstone(rule: ToolMemoryRule, change: Change) -> ToolMemoryRule:
    names = ("id", "tool_name", "created_at", "updated_at", "session", "expires_at")
    kept = {name: getattr(rule, name) for name in names}
    said = Said(rule.said.by, turns=rule.said.turns)
    return ToolMemoryRule(**kept, rule="", status="deleted", said=said, changes=[change])
