"""General memory: short texts in a namespace, stored, recalled and forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from toolmem.operations.operation import rpc_operation
from toolmem.operations.rules import DEFAULT_WORKSPACE
from toolmem.ports import Services
from toolmem.rules.general_memory import GLOBAL, LIMIT, MemoryEntry

if TYPE_CHECKING:
    from toolmem.rules.general_memory import GeneralMemory

_ENTRIES = TypeAdapter(MemoryEntry | list[MemoryEntry])


async def general_memory(services: Services, workspace_id: str | None) -> GeneralMemory:
    """The memory of a workspace, in the default store."""
    from toolmem.ops import ToolRulesPromptOp
    from toolmem.ops.rule_store import general_memory as configured

    return await configured(services, ToolRulesPromptOp(), workspace_id or DEFAULT_WORKSPACE)


def _shown(entries: MemoryEntry | list[MemoryEntry]) -> Any:
    """Without what an entry does not have."""
    return _ENTRIES.dump_python(entries, mode="json", exclude_none=True)


@rpc_operation("memory.recall", reads_only=True, shown=_shown)
async def recall(
    services: Services,
    /,
    query: str = "",
    *,
    namespace: str = GLOBAL,
    limit: int = LIMIT,
    workspace_id: str | None = None,
) -> list[MemoryEntry]:
    """The entries of a namespace that fit a query best, or the newest ones without a query."""
    memory = await general_memory(services, workspace_id)
    return await memory.recall(query, namespace=namespace, limit=limit)


@rpc_operation("memory.store", repeats=lambda request: "id" in request, shown=_shown)
async def remember(
    services: Services,
    /,
    content: str,
    *,
    namespace: str = GLOBAL,
    id: str = "",
    tags: Sequence[str] | None = None,
    workspace_id: str | None = None,
) -> MemoryEntry:
    """Store a short text; the same text again is the same memory."""
    memory = await general_memory(services, workspace_id)
    return await memory.remember(content, namespace=namespace, id=id, tags=tags)


@rpc_operation("memory.forget")
async def forget(services: Services, /, id: str, *, namespace: str = GLOBAL, workspace_id: str | None = None) -> bool:
    """Delete an entry of general memory; True where it was there."""
    return await (await general_memory(services, workspace_id)).forget(id, namespace=namespace)
