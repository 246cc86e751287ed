"""The system prompt: base text, the pinned rules, and the guidance of the tools at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from toolmem.guidance.shown import OneGuidance, fit_together, guidance_shown, said_to_be_data
from toolmem.light_models import Language
from toolmem.readers.plain_text import name_shown
from toolmem.rules.section import PinnedRules, render_rules

if TYPE_CHECKING:
    from toolmem.models import Guidance, ToolRecord

_GUIDANCE_TITLE = {"": "## What is known of your tools", "zh": "## 关于你的工具的已知情况"}


def prompt_of(
    base: str,
    pinned: PinnedRules,
    known: Iterable[tuple[str, OneGuidance]],
    budget_tokens: int,
    count: Callable[[str], int],
    language: Language = "",
) -> str:
    """Lay out base text, pinned rules and guidance; parts that are empty leave nothing behind.

    `known`: the guidance of the tools at hand, by name.
    """
    rules = render_rules(pinned.rules, language, pinned.not_shown, recalls=pinned.recalls)
    guidance = guidance_block(known, budget_tokens, count, language)
    return "\n\n".join(part for part in (base.strip(), rules, guidance) if part)


def guidance_of(records: Iterable[ToolRecord]) -> list[tuple[str, Guidance]]:
    """List the tools that have guidance, with it."""
    return [(record.tool_name, record.guidance) for record in records if record.guidance is not None]


def guidance_block(
    tools: Iterable[tuple[str, OneGuidance]], budget_tokens: int, count: Callable[[str], int], language: Language = ""
) -> str:
    """The guidance of these tools in at most `budget_tokens`; "" where there is none or no room.

    It is spent where most failures can be avoided (`shown.fit_together`).
    """
    shown_tools = [(f"### `{name_shown(tool)}`", guidance_shown(guidance)) for tool, guidance in tools]
    known = [(heading, guidance) for heading, guidance in shown_tools if guidance.text]
    if not known:  # nothing is counted, which may load a vocabulary
        return ""
    title = f"{_GUIDANCE_TITLE[language]}\n\n{said_to_be_data(language)}"
    texts = fit_together(known, budget_tokens - count(title), count)
    parts: list[str] = [f"{heading}\n{_deeper(text)}" for (heading, _), text in zip(known, texts, strict=True) if text]
    return "\n\n".join([title, *parts]) if parts else ""


def _deeper(text: str) -> str:
    """The guidance's own headings, moved below the tool's."""
    return "\n".join(f"##{line}" if line.startswith("#") else line for line in text.splitlines())
