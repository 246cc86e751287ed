"""A note over MCP, verified where hooks hold the agent whose process started this server: they keep what was typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from toolmem.demands.note import FIELDS
from toolmem.hosts.ancestry import ancestors
from toolmem.hosts.kept_prompts import masked, prompts_here
from toolmem.hosts.noted_by_hook import tools_named
from toolmem.hosts.receipts import Receipts
from toolmem.ops import NoteDemandOp
from toolmem.ops.note_demand import kept_calls
from toolmem.ops.workspace_rules import rule_store
from toolmem.protocols import Services
from toolmem.rules.noted_demands import DemandContext, NotedDemand, note_demand


class SpokenSession(NamedTuple):
    """The session of an agent in which its user spoke last."""

    name: str
    heard: list[str]  # what the user typed in it, without secrets, the oldest first


def session_above() -> SpokenSession | None:
    """Of the agent that started this process; None where hooks hold none above it, or heard nothing. Raises nothing."""
    receipts, kept = Receipts(), prompts_here()
    try:
        for process in ancestors():
            typed = {name: kept.prompts(name) for name in receipts.sessions_of(process.pid, process.began)}
            spoken = {name: prompts for name, prompts in typed.items() if prompts}
            if spoken:
                newest = max(spoken, key=lambda name: spoken[name][-1].at)
                return SpokenSession(newest, [each.text for each in spoken[newest]])
    finally:
        receipts.close()
    return None


async def noted_by_client(services: Services, workspace: str, given: Mapping[str, Any]) -> NotedDemand | None:
    """The note of a client that is an agent whose user hooks heard; None where it is none. Raises StoreError."""
    session = session_above()
    if session is None:
        return None
    op = NoteDemandOp()
    note = {name: given[name] for name in FIELDS if name in given}
    quote = note.get("quote")
    kept = await kept_calls(await services.store(op), workspace)
    tools = tools_named(note)  # nobody tells this server which the agent has
    context = DemandContext(session.heard, tools, session.name, noted_by="agent, over MCP", kept=kept)
    rules = await rule_store(services, op, workspace)
    return await note_demand(rules, {**note, "quote": masked(quote)} if isinstance(quote, str) else note, context)
