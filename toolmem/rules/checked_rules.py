"""Stored rules as the guard checks them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from toolmem.errors import RequestError
from toolmem.guard.call_conditions import Condition, require_safe
from toolmem.guard.decision import CheckedRule
from toolmem.late import late_logger
from toolmem.light_models import ToolMemoryRule
from toolmem.rules.identity import UNSCOPED, folded_name
from toolmem.rules.rule_checks import said_text
from toolmem.rules.stored_rules import THIS_SESSION

logger = late_logger("toolmem.rules")


def checked_rules(rules: Iterable[ToolMemoryRule], now: datetime) -> dict[str, list[CheckedRule]]:
    """Those that hold now, by their tool's name in lower case ("": of every tool). A damaged condition only reminds."""
    found: dict[str, list[CheckedRule]] = {}
    for rule in rules:
        if rule.holds_at(now):
            tool = folded_name(rule.tool_name)
            found.setdefault("" if tool == UNSCOPED else tool, []).append(as_checked(rule))
    return found


def as_checked(rule: ToolMemoryRule) -> CheckedRule:
    """One rule, whether or not it holds."""
    said_at = rule.said.time if rule.said is not None else rule.created_at
    by = "user" if rule.is_users else rule.by
    effect, when = (rule.effect, _safe(rule)) if rule.checked else ("remind", None)
    session = rule.said.session if THIS_SESSION in rule.tags and rule.said is not None else ""
    kept = effect if when is not None else "remind"
    return CheckedRule(rule.id, said_text(rule), kept, when, by, said_at, rule.expires_at, session)


def _safe(rule: ToolMemoryRule) -> Condition | None:
    try:
        return require_safe(rule.when)
    except RequestError as error:
        logger.warning("the condition of rule %r is damaged: it only reminds (%s)", rule.id, error)
        return None
