"""When a change lets a rule bind less than before.

To make a rule, to restore one or to let it bind more restricts an agent. All else needs evidence of the user where
agents are held to the store's rules.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from toolmem.light_models import ToolMemoryRule, When
from toolmem.rules.identity import namespace_of, same_text
from toolmem.rules.stored_rules import RANK

_STRICTNESS = {"remind": 0, "ask": 1, "deny": 2}


def binds_less(before: ToolMemoryRule, after: ToolMemoryRule | None, now: datetime) -> bool:
    """Whether a rule that binds the agents of its user binds them less afterwards. None: it is there no longer."""
    if not binds(before, now):
        return False
    if after is None or not after.holds_at(now):
        return True
    return (
        same_text(before.rule) != same_text(after.rule)
        or namespace_of(before.tool_name) != namespace_of(after.tool_name)
        or RANK[after.priority] > RANK[before.priority]
        or _STRICTNESS[after.effect] < _STRICTNESS[before.effect]
        or (before.checked and not _means_as_much(before.when, after.when))
        or (before.is_users and not after.is_users)
        or _ends_earlier(before, after)
    )


def takes_its_place(before: ToolMemoryRule, after: ToolMemoryRule, now: datetime) -> bool:
    """Whether a rule of other words binds at least as much; false where that cannot be told."""
    return not binds_less(before, after.model_copy(update={"rule": before.rule}), now)


def _means_as_much(before: When | None, after: When | None) -> bool:
    """Whether each call of one condition is surely one of the other: the same, or more that stops and less that lets
    through.
    """
    if after is True or before == after:
        return True
    (stopping, through), (stops, lets) = _alternatives(before), _alternatives(after)
    return bool(stopping) and all(each in stops for each in stopping) and all(each in through for each in lets)


def _alternatives(when: When | None) -> tuple[list[Any], list[Any]]:
    """`when` and `unless`, of a condition that has them."""
    stops, lets = (when.get(name) if isinstance(when, dict) else None for name in ("when", "unless"))
    return stops if isinstance(stops, list) else [], lets if isinstance(lets, list) else []


def binds(rule: ToolMemoryRule, now: datetime) -> bool:
    """Whether agents are held to it: no agent's own note, and no reminder of what kept failing."""
    return rule.holds_at(now) and not rule.is_note and not _is_observation(rule)


def _is_observation(rule: ToolMemoryRule) -> bool:
    """A reminder of what kept failing, which nobody demanded."""
    return rule.source == "post_turn" and not rule.checked


def _ends_earlier(before: ToolMemoryRule, after: ToolMemoryRule) -> bool:
    return after.expires_at is not None and (before.expires_at is None or after.expires_at < before.expires_at)
