"""Which rules of a workspace the prompt holds, from the records as they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from toolmem.guard.tool_classes import scopes_of
from toolmem.late import late_logger
from toolmem.light_models import ToolMemoryRule, ToolSchema
from toolmem.readers.plain_text import name_shown
from toolmem.rules.identity import RULE_PREFIX, UNSCOPED, namespace_of, tool_of
from toolmem.rules.section import (
    MAX_CHARACTERS,
    MAX_CRITICAL_CHARACTERS,
    MAX_IN_PROMPT,
    RECALL,
    LeftOut,
    PinnedRules,
    RuleBlock,
    RuleLine,
    block_frame,
    notes_frame,
)
from toolmem.rules.stored_rules import (
    THIS_SESSION,
    StoredRules,
    at_a_glance,
    by_priority,
    freshness,
    is_plainly_high,
    read_stored,
)
from toolmem.rules.turns import read_tools, tool_names
from toolmem.stored import RawRecord

logger = late_logger("toolmem.rules")

Caps = tuple[int, int, int]  # rules, characters, characters of critical ones
CAPS: Caps = (MAX_IN_PROMPT, MAX_CHARACTERS, MAX_CRITICAL_CHARACTERS)
_NOTICE_ROOM = 800  # characters, for the line on what is not shown


def chosen_for_prompt(records: Iterable[RawRecord], names: Mapping[str, str], caps: Caps, now: datetime) -> PinnedRules:
    """`names`: of tools by namespace, as the block is to write them."""
    first, further = at_a_glance(records)
    read = read_stored(first)
    known, damaged, pinning = _of_all_sessions(read, now), read.damaged, Pinning(*caps)
    not_shown = pinning.add_critical(_named(rule, names) for rule in known if rule.priority == "critical")
    left_out = [LeftOut(rule.tool_name, rule.id, rule.priority) for rule in not_shown]
    if pinning.full:  # then what the others say changes nothing, and they are not read
        high = [each for each in further if is_plainly_high(each)]
        left_out += [LeftOut(tool_of(each.namespace), each.key.removeprefix(RULE_PREFIX)) for each in high]
    else:
        read = read_stored(further)
        known, damaged = [*known, *_of_all_sessions(read, now)], [*damaged, *read.damaged]
    others = [_named(rule, names) for rule in known if rule.priority != "critical"]
    out = pinning.add_high(rule for rule in others if rule.priority == "high" and not rule.is_note)
    out += pinning.add_notes(rule for rule in others if rule.is_note)
    left_out += [LeftOut(rule.tool_name, rule.id) for rule in out if rule.priority == "high"]
    recalls = any(name.endswith(RECALL) for name in names.values())
    return PinnedRules(tuple(pinning.rules()), tuple(left_out), tuple(damaged), tuple(not_shown), recalls)


def _of_all_sessions(read: StoredRules, now: datetime) -> list[ToolMemoryRule]:
    return [rule for rule in read.active(now) if THIS_SESSION not in rule.tags]


class Pinning:
    """Which rules the prompt holds: the critical ones, then as many high ones as the caps leave room for, then notes.

    `max_characters` counts the whole block, in the language whose words take more. Critical rules are beyond it; their
    own cap is `max_critical_characters`, the line included that says what is not shown.
    """

    def __init__(
        self, max_in_prompt: int, max_characters: int, max_critical_characters: int = MAX_CRITICAL_CHARACTERS
    ) -> None:
        self._rules_left = max_in_prompt
        self._characters_left = max_characters - block_frame()
        self._critical_left = max_critical_characters - block_frame()
        self._block = RuleBlock()
        self._notes = RuleBlock()

    def add_critical(self, rules: Iterable[ToolMemoryRule]) -> list[ToolMemoryRule]:
        """The user's first; answers those that do not fit. Once one does not, none that follows is shown."""
        lines = sorted(map(RuleLine.of, rules), key=_users_first)
        shown_lines = _fitting(lines, self._critical_left)
        if shown_lines < len(lines):
            shown_lines = _fitting(lines, self._critical_left - _NOTICE_ROOM)
        for line in lines[:shown_lines]:
            self._add(line, self._block)
        return [line.rule for line in lines[shown_lines:]]

    @property
    def full(self) -> bool:
        return self._rules_left <= 0 or self._characters_left <= 0

    def add_high(self, rules: Iterable[ToolMemoryRule]) -> list[ToolMemoryRule]:
        """The freshest first; answers those that do not fit."""
        return self._add_fitting(sorted(rules, key=freshness), self._block)

    def add_notes(self, rules: Iterable[ToolMemoryRule]) -> list[ToolMemoryRule]:
        """What agents noted: by priority, then the freshest; answers those that do not fit."""
        chosen = by_priority(rules)
        self._characters_left -= notes_frame() if chosen else 0
        return self._add_fitting(chosen, self._notes)

    def rules(self) -> list[ToolMemoryRule]:
        """As the block orders them."""
        groups = [*self._block.groups(), *self._notes.groups()]
        return [line.rule for lines in groups for line in lines]

    def _add_fitting(self, rules: Iterable[ToolMemoryRule], block: RuleBlock) -> list[ToolMemoryRule]:
        left_out = []
        for rule in rules:
            line = RuleLine.of(rule)
            if self.full or block.size(line) > self._characters_left:
                left_out.append(rule)
            else:
                self._add(line, block)
        return left_out

    def _add(self, line: RuleLine, block: RuleBlock) -> None:
        if not self.full:  # once full it stays so, and how long the block is no longer matters
            self._characters_left -= block.size(line)
        self._rules_left -= 1
        block.add(line)


def _users_first(line: RuleLine) -> tuple[bool, bool, str, str, str]:
    """Sorts critical rules as the block has them, the user's before all others."""
    return not line.rule.is_users, line.tool != UNSCOPED, line.tool, line.text, line.id


def _fitting(lines: Sequence[RuleLine], characters: int) -> int:
    """How many of the lines, from the first on, go into so many characters."""
    block = RuleBlock()
    for number, line in enumerate(lines):
        characters -= block.size(line)
        if characters < 0:
            return number
        block.add(line)
    return len(lines)


def _named(rule: ToolMemoryRule, names: Mapping[str, str]) -> ToolMemoryRule:
    """The rule with its tool's name as `names` writes it."""
    name = names.get(namespace_of(rule.tool_name), rule.tool_name) if names else rule.tool_name
    return rule if rule.tool_name == name else rule.model_copy(update={"tool_name": name})


def names_of(tools: Iterable[str | ToolSchema | Mapping[str, Any]] | None) -> dict[str, str]:
    """Names by namespace; the first spelling counts. Raises RequestError that names `tools`."""
    return {namespace_of(name): name.strip() for name in reversed(tool_names(read_tools(tools)))}


def spaces_of(names: Mapping[str, str], tools: Iterable[str | ToolSchema] = ()) -> list[str] | None:
    """The namespaces whose rules are chosen from: of these tools, of their classes, of every tool; None: all."""
    if not names:
        return None
    classes = {scope: None for tool in tools for scope in _scopes(tool)}
    return [
        *names,
        *(space for scope in classes if (space := namespace_of(scope)) not in names),
        namespace_of(UNSCOPED),
    ]


def _scopes(tool: str | ToolSchema) -> tuple[str, ...]:
    return scopes_of(tool) if isinstance(tool, str) else scopes_of(tool.name, tool.parameters)


def tell_left_out(pinned: PinnedRules, caps: Caps) -> None:
    """Log what the caps left no room for."""
    if pinned.not_shown:
        tools = sorted({name_shown(rule.tool_name, 60) for rule in pinned.not_shown})
        told = "critical rules not in the prompt: %d (rules.max_critical_characters: %d); they stand under %s"
        logger.warning(told, len(pinned.not_shown), caps[2], ", ".join(tools[:10]))
    high = len(pinned.left_out) - len(pinned.not_shown)
    if high:
        logger.warning("high rules not in the prompt: %d; the caps are %d rules and %d characters", high, *caps[:2])
