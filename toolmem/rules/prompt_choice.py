"""Which rules of a workspace the prompt holds, from the records as they are stored."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from toolmem.errors import RequestError
from toolmem.light_models import ToolMemoryRule, ToolSchema
from toolmem.readers.plain_text import name_shown
from toolmem.rules.identity import RULE_PREFIX, UNSCOPED, is_blank, namespace_of, tool_of
from toolmem.rules.rows import active, at_a_glance, read_rows
from toolmem.rules.section import (
    MAX_CHARACTERS,
    MAX_CRITICAL_CHARACTERS,
    MAX_IN_PROMPT,
    LeftOut,
    PinnedRules,
    Pinning,
)
from toolmem.stored import RawRecord

logger = logging.getLogger("toolmem.rules")

Caps = tuple[int, int, int]  # rules, characters, characters of critical ones
CAPS: Caps = (MAX_IN_PROMPT, MAX_CHARACTERS, MAX_CRITICAL_CHARACTERS)


def chosen_for_prompt(records: Iterable[RawRecord], names: Mapping[str, str], caps: Caps) -> PinnedRules:
    """`names`: of tools by namespace, as the block is to write them."""
    glance = at_a_glance(records)
    rows = read_rows(glance.unread)
    known = [_under(rule, names) for rule in active(row.rule for row in rows.rules)]
    pinning, damaged = Pinning(*caps), rows.damaged
    not_shown = pinning.add_critical(rule for rule in known if rule.priority == "critical")
    left_out = [LeftOut(rule.tool_name, rule.id, rule.priority) for rule in not_shown]
    if pinning.full:  # then what the others say changes nothing, and they are not read
        left_out += [LeftOut(tool_of(each.namespace), _id_of(each)) for each in glance.plainly_high()]
    else:
        more = read_rows([*glance.high, *glance.notes])
        known += [_under(rule, names) for rule in active(row.rule for row in more.rules)]
        damaged = [*damaged, *more.damaged]
    out = pinning.add_high(rule for rule in known if rule.priority == "high" and not rule.is_note)
    out += pinning.add_notes(rule for rule in known if rule.is_note)
    left_out += [LeftOut(rule.tool_name, rule.id) for rule in out if rule.priority == "high"]
    return PinnedRules(tuple(pinning.rules()), tuple(left_out), tuple(damaged), tuple(not_shown))


def names_of(tools: Iterable[str | ToolSchema | Mapping[str, Any]] | None) -> dict[str, str]:
    """Names by namespace; the first spelling counts. Raises RequestError that names `tools`."""
    if isinstance(tools, str):
        raise RequestError("tools: expected a list of names or schemas, got text", field="tools")
    names: dict[str, str] = {}
    for tool in tools or ():
        name = (
            tool if isinstance(tool, str) else tool.name if isinstance(tool, ToolSchema) else ToolSchema.read(tool).name
        )
        if is_blank(name):
            raise RequestError("tools: a blank name", field="tools")
        names.setdefault(namespace_of(name), name.strip())
    return names


def spaces_of(names: Mapping[str, str]) -> list[str] | None:
    """The namespaces whose rules are chosen from; None: all."""
    return [*names, namespace_of(UNSCOPED)] if names else None


def tell_left_out(pinned: PinnedRules, caps: Caps) -> None:
    """Log what the caps left no room for."""
    if pinned.not_shown:
        tools = sorted({name_shown(rule.tool_name, 60) for rule in pinned.not_shown})
        told = "critical rules not in the prompt: %d (rules.max_critical_characters: %d); they stand under %s"
        logger.warning(told, len(pinned.not_shown), caps[2], ", ".join(tools[:10]))
    high = len(pinned.left_out) - len(pinned.not_shown)
    if high:
        logger.warning("high rules not in the prompt: %d; the caps are %d rules and %d characters", high, *caps[:2])


def _id_of(record: RawRecord) -> str:
    return record.key.removeprefix(RULE_PREFIX)


def _under(rule: ToolMemoryRule, names: Mapping[str, str]) -> ToolMemoryRule:
    """The rule with its tool's name as `names` writes it."""
    name = names.get(namespace_of(rule.tool_name), rule.tool_name) if names else rule.tool_name
    return rule if rule.tool_name == name else rule.model_copy(update={"tool_name": name})
