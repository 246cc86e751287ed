"""What belongs in a system prompt: the block of rules, or rules and guidance together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from toolmem.models import FlowResponse, Language, ToolMemoryRule
from toolmem.operations.operation import DEFAULT_WORKSPACE, flow_operation, rpc_operation
from toolmem.operations.results import Answer, rules_of
from toolmem.operations.tool_rules import rule_store
from toolmem.protocols import Services


class RulesBlock(Answer):
    """The block, and what it is made of."""

    @property
    def text(self) -> str:
        """The block; empty where no rule is pinned."""
        return self.answer

    def __str__(self) -> str:
        return self.text

    @property
    def rules(self) -> list[ToolMemoryRule]:
        """As the block orders them."""
        return rules_of(self)


@flow_operation("tool_rules_for_prompt", reads_only=True)
def rules_block(
    answer: FlowResponse,
    /,
    tools: Annotated[
        str | Sequence[str | Mapping[str, Any]] | None,
        "Names, separated by commas or as a list, or JSON schemas. All tools that have rules where none is given.",
    ] = None,
    *,
    workspace_id: str | None = None,
) -> RulesBlock:
    """Answer the block of critical and high rules for the system prompt."""
    return RulesBlock.of(answer)


@rpc_operation("memory.prompt", reads_only=True)
async def prompt(
    services: Services,
    /,
    tools: Sequence[str | Mapping[str, Any]] | None = None,
    *,
    base_prompt: str = "",
    guidance_tokens: int | None = None,
    workspace_id: str | None = None,
) -> str:
    """The system prompt of an agent with these tools: `base_prompt`, the pinned rules, then the tools' guidance.

    The guidance fits into `guidance_tokens` (None: the configuration's `guidance.max_tokens_prompt`). Without tools
    there are the rules of all tools and no guidance.
    """
    from toolmem.engine.system_prompt import guidance_of, prompt_of
    from toolmem.ops import RetrieveToolMemoryOp
    from toolmem.rules.turns import read_tools, tool_names

    settings = services.settings
    language: Language = "zh" if settings.language == "zh" else ""
    catalogue = read_tools(tools or ())
    pinned = await (await rule_store(services, workspace_id)).rules_for_prompt(catalogue)
    budget = settings.guidance_tokens if guidance_tokens is None else guidance_tokens
    names = tool_names(catalogue)
    store = await services.store(RetrieveToolMemoryOp())
    records = await store.records(workspace_id or DEFAULT_WORKSPACE, names) if names and budget else []
    return prompt_of(base_prompt, pinned, guidance_of(records), budget, qwen_tokens, language)


def qwen_tokens(text: str) -> int:
    """Tokens of a text, as Qwen's tokenizer counts them."""
    from toolmem.providers.tokenizer import QwenTokenizer

    return QwenTokenizer().count(text)
