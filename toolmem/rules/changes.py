"""Decide who may change a rule: loosening a user's rule needs evidence, restricting does not.

Evidence is what the user typed, or a command in an interactive terminal. An agent's change is
always a request. A hook or proxy marks its store as guarded. In a guarded store, a program's change
is a request if it loosens a rule of the user, or one of the repository that the user agreed to.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolmem.errors import Conflict
from toolmem.models.rules import RANK, Evidence, RuleChange, Said, Speaker, ToolMemoryRule
from toolmem.rules.identity import MIN_ID_LENGTH, code_of, text_key

MAX_CHANGES = 20
ACCEPTED = "accepted"  # the name of the change by which a request is accepted
NEW = "new"  # `Actor.seen` where they know of no such rule
NOTED = "noted"  # the tag of rules made from a note
ONLY_ASKS = "only-asks"  # the tag of a ban that asks, as its condition is far wider than the words
MAX_WORDS = 500  # characters of the actor's words that are kept with a change
_STRICTNESS = {"remind": 0, "ask": 1, "deny": 2}
_COMPARED = ("rule", "priority", "effect", "when", "unless", "expires_at", "tags", "status")


class Actor(Struct, frozen=True):
    """Who changes a rule, and what shows that the user wants it."""

    kind: Speaker = "program"
    evidence: Evidence = ""  # that it is the user: typed, or a command in a terminal
    words: str = ""  # that ask for the change
    session: str = ""
    name: str = ""  # of the agent or model
    seen: str = ""  # the digest of the rule that they read; a rule changed since is left alone


PROGRAM = Actor()


def loosens(before: ToolMemoryRule, after: ToolMemoryRule, now: datetime) -> bool:
    """Whether a change loosens a rule that holds, such as a weaker effect or an earlier end."""
    if not before.holds_at(now):
        return False
    if not after.holds_at(now):
        return True
    ends = after.expires_at
    return (
        text_key(before.rule) != text_key(after.rule)
        or RANK[after.priority] > RANK[before.priority]
        or _STRICTNESS[after.effect] < _STRICTNESS[before.effect]
        or (before.is_checked and any(each not in after.when for each in before.when))
        or (before.is_checked and any(each not in before.unless for each in after.unless))
        or (before.is_users and not after.is_users)
        or (before.is_team and not (after.is_team or after.is_users))
        # A later note may narrow a ban with this tag.
        or (ONLY_ASKS in after.tags and ONLY_ASKS not in before.tags)
        or (ends is not None and (before.expires_at is None or ends < before.expires_at))
    )


def only_loosens(rule: ToolMemoryRule) -> bool:
    """Whether the request on a rule deletes it, or loosens it and restricts nothing."""
    asked = rule.as_asked
    return loosens(rule, asked, rule.updated_at) and not loosens(asked, rule, rule.updated_at)


def what_is_asked(rule: ToolMemoryRule) -> str:
    """Name a request and its source, such as "a new rule, by agent"."""
    what, by = ("a change", rule.request.by) if rule.request else ("a new rule", rule.said.by)
    return f"{what}, by {by}" + (" (nobody saw them type it)" if by == "user" else "")


def request_digest(rule: ToolMemoryRule) -> str:
    """Return 32 hex digits that identify what a request asks for: another request has others."""
    asked = rule.as_asked
    fields = [rule.id, asked.session, asked.replaces, *(getattr(asked, n) for n in _COMPARED)]
    return hashlib.sha256(msgspec.json.encode(fields)).hexdigest()[:32]


def way_to_agree(rule: ToolMemoryRule) -> str:
    """Return what the user types to agree to a request: `lift CODE` if it only loosens the rule.

    The code of `agree` is of what they were shown, so that it agrees to nothing else.
    """
    if only_loosens(rule):
        return f"lift {code_of(rule)}"
    return f"agree {request_digest(rule)[:MIN_ID_LENGTH]}"


def is_allowed(
    before: ToolMemoryRule, after: ToolMemoryRule, actor: Actor, now: datetime, *, guarded: bool
) -> bool:
    """Whether `actor` may make a change at once; if not, it has to be stored as a request."""
    if actor.kind == "agent":  # its evidence says only that the user typed the words
        return False
    if not guarded or (actor.evidence and actor.kind == "user"):
        return True
    if before.status == "request" and after.status == "active":  # it would then count as the user's
        return False
    if before.is_users and before.status == "active" and not before.holds_at(now):
        before = replace(before, expires_at=None)  # it may be restored, not loosened
        after = replace(after, expires_at=None)
    return not ((before.is_users or before.is_team) and loosens(before, after, now))


def change_of(
    before: ToolMemoryRule, after: ToolMemoryRule, actor: Actor, now: datetime, what: str
) -> RuleChange:
    """Describe a change: who made it, and which fields differ. `what`: such as "lifted"."""
    names = [name for name in _COMPARED if getattr(before, name) != getattr(after, name)]
    return RuleChange(
        now,
        actor.kind,
        what,
        actor.evidence,
        actor.words[:MAX_WORDS],
        actor.session,
        before={name: getattr(before, name) for name in names},
        after={name: getattr(after, name) for name in names},
    )


def tombstone(rule: ToolMemoryRule, actor: Actor, now: datetime, what: str) -> ToolMemoryRule:
    """Return a deleted rule, without its text. Its turns stay, so that no replay remakes it."""
    names = ("id", "tool_name", "created_at", "updated_at", "session", "expires_at")
    fields = {name: getattr(rule, name) for name in names}
    said = Said(rule.said.by, turns=rule.said.turns)
    change = RuleChange(now, actor.kind, what, actor.evidence)
    return ToolMemoryRule(**fields, rule="", status="deleted", said=said, changes=[change])


def rule_digest(rule: ToolMemoryRule) -> str:
    """Return 32 hex digits that identify a version of a rule: they differ if any field does."""
    return hashlib.sha256(msgspec.json.encode(rule)).hexdigest()[:32]


def require_seen(before: ToolMemoryRule | None, seen: str, now: datetime) -> None:
    """Raise Conflict unless `seen` is the rule's digest, or is NEW and no such rule holds now."""
    if seen == NEW:
        if before is not None and before.holds_at(now):
            raise Conflict("this rule was made since: read it before you change it", is_final=True)
    elif before is None or rule_digest(before) != seen:
        raise Conflict("the rule was changed since you read it: read it again", is_final=True)
