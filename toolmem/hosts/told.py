"""What hooks put before a model, and what they tell the user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from toolmem.engine import DEFAULT_WORKSPACE
from toolmem.hosts.events import SILENT, HookAnswer

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile
    from toolmem.hosts.receipts import SaidHere
    from toolmem.light_models import GuidanceLines, ToolMemoryRule
    from toolmem.rules.capture.hook import Captured
    from toolmem.rules.pinning import Caps
    from toolmem.stored import RawRecord

_LONGEST = 300  # characters of a sentence that is told again
_MOST_LINES = 12
_BECOMES = {"deny": "calls against it are stopped", "ask": "you are asked before such a call"}


def rules_and_guidance(
    stores: Sequence[StoreFile], tools: Sequence[str], demands: Iterable[SaidHere], caps: Caps, guidance_tokens: int
) -> str:
    """The pinned rules of these stores, the demands of the session, and what is known of the tools; "" for nothing."""
    from toolmem.engine.system_prompt import prompt_of
    from toolmem.providers.tokenizer import estimated_tokens
    from toolmem.rules.capture.hook import SessionRule
    from toolmem.rules.pinning import chosen_for_prompt
    from toolmem.rules.section import render_since

    if not stores:
        return ""
    records: list[RawRecord] = []
    known: dict[str, GuidanceLines] = {}
    for store in stores:
        rules, guidance = store.prompt_rows(DEFAULT_WORKSPACE, None, tools)
        records += rules
        known = {**dict(guidance), **known}  # the project's own goes before the user's
    pinned = chosen_for_prompt(records, {}, caps, stores[0].clock.now())
    here = render_since([], [SessionRule(each.tool, each.rule) for each in demands], [])
    text = prompt_of("", pinned, known.items(), guidance_tokens, estimated_tokens)
    return "\n\n".join(part for part in (text, here) if part)


def captured_lines(captured: Captured) -> list[str]:
    """What became of a message, line by line; nothing where it demanded nothing."""
    from toolmem.readers.plain_text import plain_line

    said: dict[str, list[ToolMemoryRule]] = {}
    for rule in captured.rules:
        said.setdefault(plain_line(rule.rule, _LONGEST), []).append(rule)
    lines = [f"Kept as a rule: {sentence} ({_binds(rules)})" for sentence, rules in said.items()]
    lines += captured.notes
    if captured.too_long:
        lines.append(f"Not kept, as it is too long for a rule: sentences with a demand: {captured.too_long}")
    lines += [f"Not kept: {each}" for each in captured.failures]
    return lines[:_MOST_LINES] + ([f"(+{len(lines) - _MOST_LINES})"] if len(lines) > _MOST_LINES else [])


def _binds(rules: Sequence[ToolMemoryRule]) -> str:
    from toolmem.guard.tool_classes import is_scope, scope_in_words
    from toolmem.readers.plain_text import name_shown

    checked = [rule for rule in rules if rule.checked]
    names = [rule.tool_name for rule in checked or rules]
    tools = ", ".join(dict.fromkeys(scope_in_words(name) if is_scope(name) else name_shown(name) for name in names))
    becomes = _BECOMES[checked[0].effect] if checked else "a reminder: no call is checked against it"
    return f"{tools}; {becomes}"


def told_of_prompt(lines: Sequence[str]) -> HookAnswer:
    """To the user and to the model alike."""
    if not lines:
        return SILENT
    context = "toolmem, on what the user just said; it binds from now on:\n" + "\n".join(f"- {line}" for line in lines)
    return HookAnswer(notice="toolmem: " + "\n".join(lines), context=context)
