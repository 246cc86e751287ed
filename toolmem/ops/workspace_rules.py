"""The rule store of a workspace, as the configuration describes it."""

from __future__ import annotations

from toolmem.protocols import ConfiguredOp, Services
from toolmem.rules.general_memory import GeneralMemory
from toolmem.rules.rule_store import RuleStore


async def rule_store(services: Services, op: ConfiguredOp, workspace: str) -> RuleStore:
    """Over the op's store, with the caps of the configuration's `rules` section."""
    return RuleStore(
        await services.store(op),
        workspace,
        clock=services.clock,
        embedder=await services.embedder(op),
        max_in_prompt=services.settings.rules.max_in_prompt,
        max_characters=services.settings.rules.max_characters,
        untrusted=services.untrusted(op.settings.vector_store),
        max_critical_characters=services.settings.rules.max_critical_characters,
    )


async def general_memory(services: Services, op: ConfiguredOp, workspace: str) -> GeneralMemory:
    """Over the op's store."""
    return GeneralMemory(
        await services.store(op),
        workspace,
        clock=services.clock,
        embedder=await services.embedder(op),
        untrusted=services.untrusted(op.settings.vector_store),
    )
