"""The ledger: what models were asked in a workspace, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence

from toolmem.operations.operation import DEFAULT_WORKSPACE, rpc_operation
from toolmem.protocols import Services
from toolmem.providers.usage_log import Spent, read_ledger, sum_up


@rpc_operation("memory.ledger", reads_only=True)
async def ledger(
    services: Services, /, by: Sequence[str] = ("op", "model"), *, workspace_id: str | None = None
) -> list[Spent]:
    """Every request to a model, summed up; `by` names columns: flow, op, tool, backend, model, day, outcome."""
    from toolmem.ops import SummaryToolMemoryOp

    entries = await read_ledger(await services.store(SummaryToolMemoryOp()), workspace_id or DEFAULT_WORKSPACE)
    return sum_up(entries, tuple(by))
