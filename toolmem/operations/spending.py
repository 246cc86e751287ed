"""The ledger: what models were asked in a workspace, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from toolmem.operations.operation import DEFAULT_WORKSPACE, rpc_operation
from toolmem.protocols import Services


class Spent(BaseModel):
    """What the requests of one group add up to."""

    group: dict[str, str]  # the columns that were asked for, and their values
    requests: int
    failed: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    estimated: int  # requests whose tokens were counted here, not told by the reply
    seconds: float
    cost: float | None  # None where the model has no price
    currency: str


@rpc_operation("memory.ledger", reads_only=True)
async def ledger(
    services: Services, /, by: Sequence[str] = ("op", "model"), *, workspace_id: str | None = None
) -> list[Spent]:
    """Every request to a model, summed up; `by` names columns: flow, op, tool, backend, model, day, outcome."""
    from toolmem.ops import SummaryToolMemoryOp
    from toolmem.providers.usage_log import read_ledger, sum_up

    entries = await read_ledger(await services.store(SummaryToolMemoryOp()), workspace_id or DEFAULT_WORKSPACE)
    return [Spent.model_validate({**each.row(), "group": each.group}) for each in sum_up(entries, tuple(by))]
