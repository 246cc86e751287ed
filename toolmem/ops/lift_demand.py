"""LiftDemandOp: a demand that the user takes back, as a model noted it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolmem.errors import RequestError
from toolmem.flow.op import Context, Op
from toolmem.ops.note_demand import as_metadata, demand_context
from toolmem.ops.workspace_rules import rule_store

if TYPE_CHECKING:
    from toolmem.protocols import ConfiguredOp, Services
    from toolmem.rules.noted_demands import NotedDemand

_GIVEN = ("quote", "lifted", "conversation_id", "user_message")


class LiftDemandOp(Op):
    """Let a rule hold no longer where the user's own words surely take it back; else propose it to the user.

    The answer is what to tell the user; `metadata` as of NoteDemandOp.
    """

    reads = ("workspace_id",)
    optional = _GIVEN
    leaves = ("lifted_demand",)

    async def execute(self, context: Context) -> None:
        given = {key: context[key] for key in _GIVEN if key in context}
        lifted = await lifted_demand(context.services, self, context.workspace, given)
        context["lifted_demand"] = lifted
        context.response.success = lifted.outcome == "kept"
        context.response.answer = str(lifted)
        context.response.metadata.update(as_metadata(lifted))


async def lifted_demand(services: Services, op: ConfiguredOp, workspace: str, given: Mapping[str, Any]) -> NotedDemand:
    """`given`: the request. Raises RequestError, StoreError."""
    from toolmem.rules.lifted_demands import lift_demand

    rules = await rule_store(services, op, workspace)
    for name in ("quote", "lifted"):
        if not isinstance(given.get(name), str) or not given[name].strip():
            raise RequestError(f"{name}: expected text", field=name)
    return await lift_demand(rules, given["quote"], given["lifted"], demand_context(rules, given))
