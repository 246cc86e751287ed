"""NoteDemandOp: a model's note of what the user demands in, rules out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolmem.demands.note import FIELDS
from toolmem.errors import RequestError
from toolmem.flow.op import Context, Op
from toolmem.late_dataclasses import replace
from toolmem.ops.workspace_rules import rule_store

if TYPE_CHECKING:
    from toolmem.protocols import ConfiguredOp, MemoryStore, Services
    from toolmem.rules.noted_demands import DemandContext, NotedDemand
    from toolmem.rules.rule_store import RuleStore

_ROAD = ("conversation_id", "user_message", "tools_available", "noted_by")


class NoteDemandOp(Op):
    """Verify what a model noted of the user's words, and keep it as rules.

    The quote must stand in `user_message`. The answer is what to tell the user; `metadata.rule` is the rule (`rules`:
    one for each tool or class of tools), or `metadata.problems` says what the model is to change. `metadata.outcome` is
    kept, proposed or refused.
    """

    reads = ("workspace_id",)
    optional = (*_ROAD, *FIELDS)
    leaves = ("noted",)

    async def execute(self, context: Context) -> None:
        given = {key: context[key] for key in (*_ROAD, *FIELDS) if key in context}
        noted = await noted_demand(context.services, self, context.workspace, given)
        context["noted"] = noted
        context.response.success = noted.outcome == "kept"
        context.response.answer = str(noted)
        context.response.metadata.update(as_metadata(noted))


def as_metadata(noted: NotedDemand) -> dict[str, Any]:
    """What became of a note, as it travels."""
    rules = [rule.model_dump(mode="json") for rule in noted.rules]
    problems = [{"field": place, "problem": told} for place, told in noted.problems]
    told = {"rule": rules[0] if rules else None, "rules": rules, "why": noted.why, "problems": problems}
    return {"outcome": noted.outcome, **{name: each for name, each in told.items() if each}}


async def noted_demand(services: Services, op: ConfiguredOp, workspace: str, given: Mapping[str, Any]) -> NotedDemand:
    """`given`: the request; only a program that speaks for its user is believed what the user said. Raises RequestError
    for what its road got wrong, StoreError.
    """
    from toolmem.rules.noted_demands import note_demand

    rules = await rule_store(services, op, workspace)
    context = replace(demand_context(rules, given), kept=await kept_calls(await services.store(op), workspace))
    return await note_demand(rules, {name: given[name] for name in FIELDS if name in given}, context)


def demand_context(rules: RuleStore, given: Mapping[str, Any]) -> DemandContext:
    """What a request tells of its road. Raises RequestError."""
    from toolmem.rules.noted_demands import DemandContext
    from toolmem.rules.turns import read_tools

    message = given.get("user_message")
    if message is not None and not isinstance(message, str):
        raise RequestError(f"user_message: expected text, got {type(message).__name__}", field="user_message")
    return DemandContext(
        None if message is None else said_to_program(rules, message),
        read_tools(given.get("tools_available") or given.get("tools") or ()),
        str(given.get("conversation_id") or ""),
        noted_by=str(given.get("noted_by") or ""),
        speaker="program",
    )


def said_to_program(rules: RuleStore, message: str) -> list[str] | None:
    """What its user said, as a program tells it; None where that is not believed: of a store agents are held to."""
    from toolmem.store.holding import holds_agents

    return None if rules.speaker == "agent" or holds_agents(rules.store) else [message]


async def kept_calls(store: MemoryStore, workspace: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The newest logged calls that worked, the newest first."""
    from toolmem.demands.verification import REPLAYED

    logged = await store.call_log(workspace, newest=True, limit=REPLAYED)
    calls = [each.call for each in reversed(logged)]
    return [(call.tool_name, call.input) for call in calls if call.failed is False and isinstance(call.input, Mapping)]
