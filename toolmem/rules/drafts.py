"""A rule as a caller hands it over, checked; and what becomes of a stored rule that meets one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, get_args

from toolmem.errors import RequestError
from toolmem.late_dataclasses import dataclass, replace
from toolmem.light_models import Effect, Priority, RuleStatus, Said, Source, Speaker, ToolMemoryRule, When
from toolmem.rules.identity import (
    MAX_RULE,
    namespace_of,
    read_choice,
    read_id,
    read_tags,
    read_text,
    read_tool_name,
    same_text,
    text_id,
)
from toolmem.rules.rule_checks import Check, check_of, effect_meant, require_condition
from toolmem.rules.speakers import AUTHORITY, lesser
from toolmem.rules.stored_rules import PRIORITIES, RANK, THIS_SESSION

USER_EDICT = "user-edict"  # the tag of rules that a user spoke, as the source system writes it
REPEATED_FAILURE = "repeated-failure"  # the tag of rules on repeated failures
_PROGRAM = Said(by="program")
_CHANGED_BY_TIME = {"updated_at", "said"}


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """None, and "" for the id: left out. `said.by` is who the way that it came in lets it be from."""

    tool_name: str
    rule: str
    priority: Priority | None = None
    source: Source | None = None
    tags: Iterable[str] | None = None
    id: str = ""
    said: Said = _PROGRAM
    status: RuleStatus | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    effect: Effect | None = None
    when: When | None = None
    unchecked: str = ""  # why a captured sentence only reminds
    stops: str = ""  # a call that a captured sentence stopped on trial, in words; told, not kept
    expires_at: datetime | None = None
    superseded_by: str = ""
    is_heard: bool = False  # the user's words, as a model noted them

    def checked(self) -> RuleDraft:
        """Trimmed and complete. Raises RequestError that names the field."""
        return replace(
            self,
            tool_name=read_tool_name(self.tool_name),
            rule=read_text(self.rule),
            priority=read_choice(self.priority, "priority", PRIORITIES),
            source=read_choice(self.source, "source", get_args(Source)),
            tags=None if self.tags is None else read_tags(self.tags),
            id=read_id(self.id),
            status=read_choice(self.status, "status", get_args(RuleStatus)),
            superseded_by=read_id(self.superseded_by),
        )

    def spoken_by(self, speaker: Speaker) -> RuleDraft:
        """Whoever it says it is from, it has no more authority than `speaker`; an agent's has no status to give."""
        said = self.said.model_copy(update={"by": lesser(self.said.by, speaker)})
        if speaker != "agent":
            return replace(self, said=said)
        source = None if self.source == "user_explicit" else self.source
        tags = None if self.tags is None else [tag for tag in read_tags(self.tags) if tag != USER_EDICT]
        return replace(self, said=said, status=None, source=source, tags=tags, unchecked="", superseded_by="")

    def of_a_program(self) -> RuleDraft:
        """What nobody heard the user say: proposed by the program that handed it over."""
        said = self.said.model_copy(update={"by": "program"})
        tags = [tag for tag in read_tags(self.tags or ()) if tag != USER_EDICT]
        return replace(self, said=said, source="programmatic", tags=tags, status="proposed")

    def as_new(self, rule_id: str, tool_name: str, now: datetime, check: Check) -> ToolMemoryRule:
        """Times that the caller gives are kept, none of them later than now."""
        created = min(self.created_at or now, now)
        priority = self.priority or "normal"
        return ToolMemoryRule(
            id=rule_id,
            tool_name=tool_name,
            rule=self.rule,
            priority=priority,
            source=self.source or "programmatic",
            tags=list(self.tags or ()),
            created_at=created,
            updated_at=max(created, min(self.updated_at or now, now)),
            status=self._status(priority, check.effect),
            said=self._said(now),
            effect=check.effect,
            when=check.when,
            unchecked=check.unchecked,
            expires_at=self.expires_at,
            superseded_by=self.superseded_by,
        )

    def check_over(self, stored: ToolMemoryRule | None, *, captured: bool = False) -> Check:
        """What of the rule is checked: as given, as stored, or as its sentence reads. Raises RequestError."""
        kept = None if stored is None else Check(stored.effect, stored.when, stored.unchecked)
        same = stored is not None and same_text(self.rule) == same_text(stored.rule)
        if kept is not None and captured and kept.when is not None:
            return kept  # as it was compiled, or as somebody changed it since
        if self.effect is not None or self.when is not None:
            before = kept if kept is not None and kept.when is not None and same else None
            effect = self.effect or (before.effect if before is not None else effect_meant(self.rule))
            when = before.when if self.when is None and before is not None else self.when
            return require_condition(Check(effect, None if effect == "remind" else when, self.unchecked))
        if kept is not None and same and (kept.when is not None or (stored is not None and stored.status == "active")):
            return kept
        if self.said.by == "agent" or self.source == "post_turn":
            return Check()
        return check_of(self.rule, self.tool_name if stored is None else stored.tool_name)

    def over(self, stored: ToolMemoryRule, now: datetime, check: Check, *, captured: bool) -> ToolMemoryRule:
        """The stored rule with what the draft says. A captured one raises the priority, and never lowers it."""
        if captured and self.status == "proposed" and stored.status == "active":
            return stored  # it holds already: what is only proposed changes nothing
        update: dict[str, Any] = {"rule": self.rule, "updated_at": max(now, stored.created_at)}
        raised = self.priority is not None and RANK[self.priority] < RANK[stored.priority]
        if self.priority is not None and (raised or not captured):
            update["priority"] = self.priority
        outranks = AUTHORITY[self.said.by] > AUTHORITY[stored.by]
        anew = is_said_anew(self, stored.said)
        if self.source is not None and (raised or outranks or not captured):
            update["source"] = self.source
        if self.tags is not None:
            before = [tag for tag in stored.tags if captured and not (tag == THIS_SESSION and anew)]
            update["tags"] = list(dict.fromkeys([*before, *self.tags]))
        update |= {"effect": check.effect, "when": check.when, "unchecked": check.unchecked}
        update |= {name: given for name in ("expires_at", "superseded_by") if (given := getattr(self, name))}
        if ((captured and anew) or self.is_heard) and self.expires_at is None:
            update["expires_at"] = None
        update["status"] = self._status(update.get("priority", stored.priority), check.effect)
        if update["status"] == "active":
            update["superseded_by"] = ""
        if AUTHORITY[self.said.by] >= AUTHORITY[stored.by] or same_text(self.rule) != same_text(stored.rule):
            update["said"] = self._said(now)
        heard_anew = anew and (captured or self.is_heard)
        if heard_anew and not _holds_as_long(stored, update.get("expires_at", stored.expires_at), now):
            update["created_at"] = now  # since then it holds, as one that was deleted does
        changed = stored.model_copy(update=update)
        if self.updated_at is not None and _differ_in(stored, changed) <= _CHANGED_BY_TIME:
            return stored  # a copy that is put back as it is does not become the freshest by it
        return changed

    def _status(self, priority: Priority, effect: Effect) -> RuleStatus:
        """What an agent holds critical, or would have stopped, waits for a person."""
        waits = self.said.by == "agent" and (priority == "critical" or effect != "remind")
        return self.status or ("proposed" if waits else "active")

    def _said(self, now: datetime) -> Said:
        return self.said if self.said.time is not None else self.said.model_copy(update={"time": now})


def read_said(given: Any) -> Said:
    """Of a rule that is put back: its words and times count, `by` only where it claims less. Raises RequestError."""
    if given is None:
        return _PROGRAM
    if isinstance(given, Said):
        return given
    if not isinstance(given, Mapping):
        raise RequestError(f"said: expected an object, got {type(given).__name__}", field="said")
    try:
        said = Said.model_validate(given)
    except ValueError as error:
        raise RequestError(f"said.{error}", field="said") from None
    for name in ("sentence", "session"):
        if len(getattr(said, name)) > MAX_RULE:
            raise RequestError(f"said.{name}: at most {MAX_RULE} characters", field="said")
    return said


def left_alone(stored: ToolMemoryRule, draft: RuleDraft, *, captured: bool) -> ToolMemoryRule | None:
    """What becomes of an agent's draft that meets another's rule. Raises RequestError where it would change it."""
    if captured:
        return stored if stored.status == "active" else None
    _require_own(stored, draft)
    return stored


def _require_own(stored: ToolMemoryRule, draft: RuleDraft) -> None:
    """An agent's draft meets what is not its own to change. Raises RequestError where it would change it."""
    whose = "the user" if stored.is_users else "a person" if stored.by == "agent" else "a program of the user's"
    if same_text(stored.rule) != same_text(draft.rule):
        problem = f"is a rule that {whose} set or approved; an agent cannot change its text"
        raise RequestError(f"id: {stored.id!r} {problem}", field="id")
    if stored.status != "active":
        problem = f"a person decided on this rule, it is {stored.status}; an agent cannot bring it back"
        raise RequestError(f"rule: {problem} (the user can)", field="rule")
    if draft.priority is not None and draft.priority != stored.priority:
        problem = f"{whose} set or approved this rule as {stored.priority}; an agent cannot change that (the user can)"
        raise RequestError(f"priority: {problem}", field="priority")
    for name in ("effect", "when", "expires_at"):
        if getattr(draft, name) not in (None, getattr(stored, name)):
            problem = f"{whose} set or approved this rule; an agent cannot change its {name} (the user can)"
            raise RequestError(f"{name}: {problem}", field=name)


def is_agents_to_change(stored: ToolMemoryRule) -> bool:
    """What it put itself, until a person has decided on it."""
    return stored.by == "agent" and (stored.status == "proposed" or (stored.status == "active" and stored.is_note))


def holds_again(stored: ToolMemoryRule, draft: RuleDraft, now: datetime) -> bool:
    """Whether what was captured makes the stored rule hold, from now on or still.

    Where it holds no longer only the user does, by saying it anew; the same turn read again does not.
    """
    ended = stored.expires_at is not None and stored.expires_at <= now
    if stored.status in ("active", "proposed") and not ended:
        return True
    return is_said_anew(draft, stored.said)


def is_said_anew(draft: RuleDraft, before: Said | None) -> bool:
    """Whether the user says it in another session or turn than `before`; who tells no turn says it each time anew."""
    if draft.source != "user_explicit":
        return False
    if before is None or not draft.said.session or draft.said.turn is None:
        return True
    return (draft.said.session, draft.said.turn) != (before.session, before.turn)


def _holds_as_long(stored: ToolMemoryRule, until: datetime | None, now: datetime) -> bool:
    """Whether a rule that is said anew held already, and until no earlier than it does now."""
    return stored.holds_at(now) and (stored.expires_at is None or (until is not None and stored.expires_at >= until))


def _differ_in(one: ToolMemoryRule, other: ToolMemoryRule) -> set[str]:
    return {name for name in ToolMemoryRule.__slots__ if getattr(one, name) != getattr(other, name)}


def sentence_of(workspace: str, rule: RuleDraft | ToolMemoryRule) -> str:
    """By what capture knows a rule again that the user deleted.

    Of a rule on repeated failures that is its id, because its text counts them; of any other its tool and its text.
    """
    if rule.source == "post_turn" and REPEATED_FAILURE in (rule.tags or ()):
        return rule.id
    return text_id(workspace, namespace_of(rule.tool_name), rule.rule)
