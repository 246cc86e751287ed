"""Which rules changed since a session's system prompt was frozen, whoever changed them."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolmem.models import ToolMemoryRule
from toolmem.rules.section import LeftOut, PinnedRules


@dataclass(slots=True)
class RulesSince:
    """What differs from the rules that the prompt holds."""

    pinned: PinnedRules = field(default_factory=lambda: PinnedRules(()))  # as the prompt was frozen
    new: list[ToolMemoryRule] = field(default_factory=list)
    withdrawn: list[ToolMemoryRule] = field(default_factory=list)
    holding: tuple[ToolMemoryRule, ...] = ()  # all that were pinned when the store was last asked
    left_out: tuple[LeftOut, ...] = ()  # rules that the caps leave no room for

    def freeze(self, pinned: PinnedRules) -> None:
        self.pinned, self.left_out = pinned, pinned.left_out
        self.holding = (*pinned.rules, *pinned.not_shown)

    def take(self, now: PinnedRules) -> None:
        """What is new, also where the caps hide it; what was known to be hidden stays so."""
        frozen = {_said(rule) for rule in self.pinned.rules}
        hidden = {_said(rule) for rule in self.pinned.not_shown}
        new = [rule for rule in now.not_shown if _said(rule) not in hidden]
        self.new = [rule for rule in (*now.rules, *new) if _said(rule) not in frozen]
        self.holding = (*now.rules, *now.not_shown)
        holding = {rule.id for rule in self.holding} | {each.id for each in now.left_out}
        changed = {rule.id for rule in self.new}
        self.withdrawn = [
            rule for rule in self.pinned.rules if not rule.is_note and (rule.id not in holding or rule.id in changed)
        ]
        self.left_out = now.left_out


def _said(rule: ToolMemoryRule) -> tuple[str, str, str, bool]:
    """A rule as a prompt has it."""
    return rule.id, rule.rule, rule.priority, rule.is_note
