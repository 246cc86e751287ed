"""ToolRulesPromptOp: tools in, the block of their rules for the system prompt out."""

from __future__ import annotations

from typing import Any

from toolmem.flow.op import Context, Op
from toolmem.ops.workspace_rules import rule_store
from toolmem.rules.section import ToolMemoryRulesSection
from toolmem.rules.turns import read_tools


class ToolRulesPromptOp(Op):
    """Answer the block of critical and high rules; "" where there is none.

    `tools` are names or schemas, or names separated by commas; none: all tools that have rules.
    """

    reads = ("workspace_id",)
    optional = ("tools",)
    leaves = ("rules_block",)

    async def execute(self, context: Context) -> None:
        rules = await rule_store(context.services, self, context.workspace)
        pinned = await rules.rules_for_prompt(read_prompt_tools(context.get("tools")))
        language = self.settings.language or context.services.settings.language
        section = ToolMemoryRulesSection(pinned, "zh" if language == "zh" else "")
        context["rules_block"] = section.text
        context.response.answer = section.text
        context.response.metadata.update(
            rules=[rule.model_dump(mode="json") for rule in pinned.rules],
            left_out=[each._asdict() for each in pinned.left_out],
            damaged=list(map(str, pinned.damaged)),
        )


def read_prompt_tools(given: Any) -> tuple[Any, ...]:
    """Names or schemas; a text holds names separated by commas. Raises RequestError."""
    if isinstance(given, str):
        return tuple(name.strip() for name in given.split(",") if name.strip())
    return read_tools(given)
