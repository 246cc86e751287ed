"""The tools that a workspace knows: all of them in figures, or one with its guidance."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel

from toolmem.models import ToolStatistics
from toolmem.operations.operation import DEFAULT_WORKSPACE, rpc_operation
from toolmem.protocols import MemoryStore, Services
from toolmem.stored import StoredMemory


class ToolOverview(BaseModel):
    """What is known of one tool. The figures of `window` are of the kept calls, `calls_ever` counts all there were."""

    tool_name: str
    calls_ever: int
    window: ToolStatistics
    guidance: str = ""  # "" where there is none yet
    guidance_created_at: datetime | None = None
    new_calls: int = 0  # kept and judged, not covered by the guidance


async def _store(services: Services) -> MemoryStore:
    from toolmem.ops import RetrieveToolMemoryOp

    return await services.store(RetrieveToolMemoryOp())


def _overview(stored: StoredMemory) -> ToolOverview:
    from toolmem.guidance.skip import count_new
    from toolmem.guidance.statistics import measured

    record, guidance = stored.record, stored.record.guidance
    return ToolOverview(
        tool_name=record.tool_name,
        calls_ever=record.counters.calls,
        window=measured(stored).statistics,
        guidance=guidance.text if guidance else "",
        guidance_created_at=guidance.created_at if guidance else None,
        new_calls=count_new(record),
    )


@rpc_operation("memory.tools_list", reads_only=True)
async def tools(services: Services, /, *, workspace_id: str | None = None) -> list[ToolOverview]:
    """Every tool of the workspace with its figures, by name."""
    stored = await (await _store(services)).memories(workspace_id or DEFAULT_WORKSPACE, None)
    return [_overview(each) for each in stored]


@rpc_operation("memory.tool_show", reads_only=True)
async def tool(services: Services, /, tool_name: str, *, workspace_id: str | None = None) -> ToolOverview | None:
    """One tool with its figures and guidance; None where the workspace does not know it."""
    stored = await (await _store(services)).memories(workspace_id or DEFAULT_WORKSPACE, [tool_name])
    return _overview(stored[0]) if stored else None
