"""What the description of each tool gains: the user's rules for it, and its guidance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from toolmem.guard.tool_classes import scopes_of
from toolmem.guidance.shown import fit, guidance_shown, said_to_be_data
from toolmem.providers.tokenizer import estimated_tokens
from toolmem.rules.identity import folded_name
from toolmem.rules.pinning import CAPS, chosen_for_prompt, names_of, spaces_of
from toolmem.rules.section import render_rules

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile
    from toolmem.light_models import Language, ToolSchema
    from toolmem.models import Guidance, ToolMemoryRule

GUIDANCE_TOKENS = 200  # of one tool


def known_texts(
    tools: Sequence[ToolSchema],
    rules: Sequence[ToolMemoryRule],
    guidance: Iterable[tuple[str, Guidance]],
    beside: Sequence[StoreFile],
    language: Language,
) -> Mapping[str, str]:
    """By tool; one of which nothing is known is absent. `beside`: further stores whose rules bind.

    How rules are to be kept is said with the first tool that has some.
    """
    known: dict[str, list[str]] = {}
    every = [*rules, *(rule for store in beside for rule in _rules_of(store, tools))]
    is_said = False
    for tool in tools:
        scopes = {folded_name(name) for name in (tool.name, *scopes_of(tool.name, tool.parameters))}
        own = {rule.rule: rule for rule in every if folded_name(rule.tool_name) in scopes}
        if own:
            known[tool.name] = [render_rules(list(own.values()), language, brief=is_said)]
            is_said = is_said or not all(rule.is_note for rule in own.values())
    for name, each in guidance:
        text = fit(guidance_shown(each), GUIDANCE_TOKENS, estimated_tokens)
        if text:
            known.setdefault(name, []).append(f"{said_to_be_data(language)}\n{text}")
    return {name: "\n\n".join(parts) for name, parts in known.items()}


def _rules_of(store: StoreFile, tools: Sequence[ToolSchema]) -> Sequence[ToolMemoryRule]:
    names = names_of(tools)
    records, _ = store.prompt_rows("default", spaces_of(names, tools), [])
    return chosen_for_prompt(records, names, CAPS, store.clock.now()).rules
