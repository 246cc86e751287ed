"""The part of a system prompt that holds what is known of an agent's tools."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from toolmem.guidance.budget import fit_together
from toolmem.guidance.wording import Language, Wording, in_backticks
from toolmem.llm.tokens import token_weight
from toolmem.models.tools import ToolRecord


def guidance_section(
    records: Iterable[ToolRecord], max_tokens: int, language: Language = ""
) -> str:
    """The guidance of these tools in at most `max_tokens`, headings included.

    "" where no tool has guidance, or none of it fits.
    """
    known = [
        (f"### `{in_backticks(record.tool_name)}`", record.guidance)
        for record in records
        if record.guidance is not None and record.guidance.text
    ]
    say = Wording(language)
    title = f"{say.say('prompt_title')}\n\n{say.say('prompt_source')}"
    texts = fit_together(known, max_tokens - ceil(token_weight(title)))
    parts = [f"{heading}\n{text}" for (heading, _), text in zip(known, texts, strict=True) if text]
    return "\n\n".join([title, *parts]) if parts else ""
