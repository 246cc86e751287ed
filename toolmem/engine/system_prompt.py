"""The frozen system prompt, and the message of what was demanded since it was frozen."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from toolmem.guidance.fitting import fit
from toolmem.guidance.shown import OneGuidance, guidance_shown, said_to_be_data
from toolmem.light_models import Language, ToolMemoryRule
from toolmem.readers.plain_text import name_shown, plain_line, shown
from toolmem.rules.identity import UNSCOPED
from toolmem.rules.section import MAX_CRITICAL_CHARACTERS, PinnedRules, not_shown_line, render_rules

if TYPE_CHECKING:
    from toolmem.models import Guidance, ToolRecord
    from toolmem.rules.capture.hook import SessionRule

_GUIDANCE_TITLE = {"": "## What is known of your tools", "zh": "## 关于你的工具的已知情况"}
_SINCE = {
    "": "## Rules since this session began\n\nThe user's demands below bind you as the pinned rules do, from now on.",
    "zh": "## 本次会话开始以来的规则\n\n以下是用户的要求，从现在起与置顶规则同样具有约束力。",
}
_WITHDRAWN = {
    "": "The user withdrew these pinned rules; they bind you no longer:",
    "zh": "用户已撤回以下置顶规则，它们不再有约束力：",
}
_ENDS = {
    "": "Those of this session end with it. The user who wants to keep one says 'always'; tell the user so, once.",
    "zh": "“本次会话”的要求随会话结束。用户若要长期保留，请说“永远”；请告知用户一次。",
}
_NOTED = {
    "": "Noted by an agent since then; advice, and no rule:",
    "zh": "此后由智能体记录，仅供参考，不是规则：",
}
_THIS_SESSION = {"": "this session", "zh": "本次会话"}
_ANY_TOOL = {"": "any tool", "zh": "任何工具"}


def system_prompt(base: str, rules_block: str, guidance_block: str) -> str:
    """Base text, then the pinned rules, then guidance; parts that are empty leave nothing behind."""
    return "\n\n".join(part for part in (base.strip(), rules_block, guidance_block) if part)


def prompt_of(
    base: str,
    pinned: PinnedRules,
    known: Iterable[tuple[str, OneGuidance]],
    budget_tokens: int,
    count: Callable[[str], int],
    language: Language = "",
) -> str:
    """All of it. `known`: the guidance of the tools at hand, by name."""
    rules = render_rules(pinned.rules, language, pinned.not_shown)
    return system_prompt(base, rules, guidance_block(known, budget_tokens, count, language))


def guidance_of(records: Iterable[ToolRecord]) -> list[tuple[str, Guidance]]:
    return [(record.tool_name, record.guidance) for record in records if record.guidance is not None]


def guidance_block(
    tools: Iterable[tuple[str, OneGuidance]], budget_tokens: int, count: Callable[[str], int], language: Language = ""
) -> str:
    """The guidance of these tools in at most `budget_tokens`; "" where there is none or no room.

    The tools share the budget evenly; what one does not need goes to the next.
    """
    shown_tools = [(tool, guidance_shown(guidance)) for tool, guidance in tools]
    known = [(tool, guidance) for tool, guidance in shown_tools if guidance.text]
    if not known:  # nothing is counted, which may load a vocabulary
        return ""
    title = f"{_GUIDANCE_TITLE[language]}\n\n{said_to_be_data(language)}"
    left = budget_tokens - count(title)
    parts: list[str] = []
    for position, (tool, guidance) in enumerate(known):
        heading = f"### `{name_shown(tool)}`"
        share = left // (len(known) - position) - count(heading) - 2
        text = fit(guidance, share, count) if share > 0 else ""
        if text:
            part = f"{heading}\n{_deeper(text)}"
            parts.append(part)
            left -= count(part) + 2
    return "\n\n".join([title, *parts]) if parts else ""


def since_block(
    rules: Sequence[ToolMemoryRule],
    session_rules: Sequence[SessionRule],
    withdrawn: Sequence[ToolMemoryRule],
    language: Language = "",
    max_characters: int = MAX_CRITICAL_CHARACTERS,
) -> str:
    """What binds in this session beside the frozen prompt; "" where nothing does.

    Of `rules` at most `max_characters` are shown, and how many are not is said; what the user said comes first.
    """
    lines: dict[str, str] = {}  # bullet -> itself: the same demand twice is one line
    binding = sorted((rule for rule in rules if not rule.is_note), key=lambda rule: not rule.is_users)
    bullets = [f"- **[{rule.priority}]** {_tool(rule.tool_name, language)}: {shown(rule.rule)}" for rule in binding]
    lengths = list(accumulate(len(bullet) + 1 for bullet in bullets))
    count = bisect_right(lengths, max_characters)
    lines.update(dict.fromkeys(bullets[:count], ""))
    for demand in session_rules:
        bullet = f"- **[{_THIS_SESSION[language]}]** {_tool(demand.tool_name, language)}: {shown(demand.rule)}"
        lines.setdefault(bullet, "")
    gone = [f"- {_tool(rule.tool_name, language)}: {shown(rule.rule)}" for rule in withdrawn]
    if session_rules:
        lines.setdefault(f"\n{_ENDS[language]}", "")
    parts = ["\n".join([_SINCE[language], "", *lines])] if lines else []
    if count < len(bullets):
        parts.append(not_shown_line(binding[count:], language))
    notes = [
        f"- [{rule.priority}] {_tool(rule.tool_name, language)}: {plain_line(rule.rule)}"
        for rule in rules
        if rule.is_note
    ]
    if notes:
        parts.append("\n".join([_NOTED[language], "", *notes]))
    if gone:
        parts.append("\n".join([_WITHDRAWN[language], "", *gone]))
    return "\n\n".join(parts)


def _tool(name: str, language: Language) -> str:
    return _ANY_TOOL[language] if name == UNSCOPED else f"`{name_shown(name)}`"


def _deeper(text: str) -> str:
    """The guidance's own headings, moved below the tool's."""
    return "\n".join(f"##{line}" if line.startswith("#") else line for line in text.splitlines())
