"""What a team's file changes in a store, and the import of it.

To add a rule, or to let one bind more, restricts. What the file dropped or narrowed goes on holding, and is proposed to
the user, who alone lets a rule bind less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from toolmem.light_models import Said, ToolMemoryRule
from toolmem.readers.plain_text import plain_line
from toolmem.rules.loosening import binds, binds_less
from toolmem.rules.stored_rules import THIS_SESSION
from toolmem.rules.team_file import TEAM_FILE, TeamFile, TeamRule, key_of
from toolmem.store.holding import holds_agents

if TYPE_CHECKING:
    from toolmem.rules.rule_store import RuleStore

_SHOWN = 200  # characters of a rule in a message


@dataclass(frozen=True, slots=True)
class TeamChange:
    """One difference. `before`: the rule that binds now; `after`: as the file has it, None of one that it dropped."""

    kind: Literal["added", "changed", "narrowed", "dropped"]
    rule: TeamRule | None
    before: ToolMemoryRule | None = None
    after: ToolMemoryRule | None = None

    @property
    def restricts(self) -> bool:
        return self.kind in ("added", "changed")


def team_changes(file: TeamFile, known: Sequence[ToolMemoryRule], now: datetime) -> list[TeamChange]:
    """`known`: the rules that are active. While a block cannot be read, nothing counts as dropped."""
    binding = {key_of(rule): rule for rule in known if binds(rule, now) and THIS_SESSION not in rule.tags}
    found = [_change(rule, binding.get(key), now) for key, rule in sorted(file.rules.items())]
    gone = [rule for key, rule in sorted(binding.items()) if TEAM_FILE in rule.tags and key not in file.rules]
    dropped = [] if file.problems else [TeamChange("dropped", None, rule) for rule in gone]
    return [each for each in found if each is not None] + dropped


def _change(rule: TeamRule, before: ToolMemoryRule | None, now: datetime) -> TeamChange | None:
    if rule.expires_at is not None and rule.expires_at <= now:
        return None
    if before is None:
        return TeamChange("added", rule)
    update: dict[str, Any] = {"effect": rule.check.effect, "when": rule.check.when, "priority": rule.priority}
    if rule.expires_at is not None:
        update["expires_at"] = rule.expires_at
    if all(getattr(before, name) == value for name, value in update.items()):
        return None
    after = before.model_copy(update={**update, "updated_at": now})
    return TeamChange("narrowed" if binds_less(before, after, now) else "changed", rule, before, after)


async def import_change(rules: RuleStore, change: TeamChange) -> str:
    """Put a rule, or propose that it is let go; what its user is to be told of it, or "". Raises RequestError."""
    if change.restricts:
        await _put(rules, change)
        return ""
    before = change.before
    assert before is not None
    if not holds_agents(rules.store):
        way = f"`toolmem rules reject {before.id[:8]}` lets it go"
        return f"“{plain_line(before.rule, _SHOWN)}” holds on, though the file has it no longer or says less: {way}"
    gone = before.model_copy(update={"status": "withdrawn", "updated_at": rules.clock.now()})
    return str(rules.records.proposal(before, change.after or gone, "program"))


async def _put(rules: RuleStore, change: TeamChange) -> None:
    rule, before = change.rule, change.before
    assert rule is not None
    check, is_new, now = rule.check, before is None, rules.clock.now()
    said_at = now if rule.said_at is None else min(rule.said_at, now)
    await rules.put_rule(
        rule.tool_name if before is None else before.tool_name,
        rule.rule if before is None else before.rule,
        id="" if before is None else before.id,
        priority=rule.priority,
        source="programmatic" if is_new else None,
        tags=rule.tags if is_new else None,
        said=Said(by="program", time=said_at) if is_new else None,
        effect=check.effect,
        when=check.when,
        unchecked=check.unchecked,
        expires_at=rule.expires_at,
    )
