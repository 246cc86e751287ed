"""Decide on a rule: approve or reject a request, withdraw a rule but keep its text, restore it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec
from msgspec.structs import replace

from toolmem.errors import RequestError
from toolmem.models.calls import Moment
from toolmem.models.rules import ToolMemoryRule
from toolmem.rules.changes import Actor, require_seen, rule_digest
from toolmem.rules.identity import folded_name, text_key
from toolmem.rules.store import MAX_SESSION, ToolMemoryStore

Review = Literal["approve", "reject", "withdraw", "restore"]


def review_rule(
    rules: ToolMemoryStore, rule: ToolMemoryRule, review: Review, actor: Actor
) -> ToolMemoryRule:
    """Approve or reject a request, or withdraw or restore a rule. Returns the rule afterwards.

    A change that `actor` may not make becomes a request. Raises RequestError if the decision does
    not fit the rule's state, and Conflict if the rule has changed since it was read.
    """
    now = rules.clock.now()
    actor = actor if actor.seen else replace(actor, seen=rule_digest(rule))
    require_seen(rule, actor.seen, now)
    if review == "approve":
        return rules.accept(rule, actor)
    if review == "reject":
        if rule.status != "request" and rule.request is None:
            raise RequestError(f"id: nothing is asked for rule {rule.id!r}", "id")
        return rules.reject(rule, actor)
    if rule.status == "request":
        raise RequestError(f"id: rule {rule.id!r} waits: approve or reject it", "id")
    if review == "withdraw":
        if not rule.holds_at(now):
            raise RequestError(f"id: rule {rule.id!r} has ended already", "id")
        return rules.change(rule, actor, "withdrawn", expires_at=now)
    if rule.holds_at(now):
        raise RequestError(f"id: rule {rule.id!r} holds already", "id")
    _refuse_second(rules, rule)
    return rules.change(rule, actor, "restored", expires_at=_end_before(rule, now))


def _refuse_second(rules: ToolMemoryStore, rule: ToolMemoryRule) -> None:
    """Raise RequestError if a rule of the same sentence already holds."""
    for each in rules.all_rules(rule.session).rules:
        is_same = folded_name(each.tool_name) == folded_name(rule.tool_name)
        if is_same and each.session == rule.session and text_key(each.rule) == text_key(rule.rule):
            raise RequestError(f"id: rule {each.id!r} holds, and says the same", "id")


def _end_before(rule: ToolMemoryRule, now: datetime) -> datetime | None:
    """Return when a withdrawn rule would have ended; None if never, or if that time is over."""
    changes = [each for each in rule.changes if "expires_at" in each.before]
    end = msgspec.convert(changes[-1].before["expires_at"], Moment | None) if changes else None
    if end is not None and end > now:
        return end
    return now + MAX_SESSION if rule.session else None
