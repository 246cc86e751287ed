"""General memory: short texts in a namespace, stored, recalled and forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, TypeAdapter

from toolmem.operations.operation import DEFAULT_WORKSPACE, AgentTool, rpc_operation
from toolmem.operations.tool_rules import Tags
from toolmem.protocols import Services
from toolmem.rules.general_memory import GLOBAL, LIMIT, MAX_LIMIT, MemoryEntry

if TYPE_CHECKING:
    from toolmem.rules.general_memory import GeneralMemory

Namespace = Annotated[str, "global, skill-<id>, or tool-<name> with its rules."]
_ENTRIES = TypeAdapter(MemoryEntry | list[MemoryEntry])


async def general_memory(services: Services, workspace_id: str | None) -> GeneralMemory:
    """The memory of a workspace, in the default store."""
    from toolmem.ops import ToolRulesPromptOp
    from toolmem.ops.workspace_rules import general_memory as configured

    return await configured(services, ToolRulesPromptOp(), workspace_id or DEFAULT_WORKSPACE)


def _shown(entries: MemoryEntry | list[MemoryEntry]) -> Any:
    """Without what an entry does not have."""
    return _ENTRIES.dump_python(entries, mode="json", exclude_none=True)


@rpc_operation(
    "memory.recall",
    reads_only=True,
    shown=_shown,
    agent=AgentTool(
        "memory_recall",
        "Look up what was stored: what fits a query best, or the newest without one.",
    ),
)
async def recall(
    services: Services,
    /,
    query: Annotated[str, "What you want to know."] = "",
    *,
    namespace: Namespace = GLOBAL,
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = LIMIT,
    workspace_id: str | None = None,
) -> list[MemoryEntry]:
    """The entries of a namespace that fit a query best, or the newest ones without a query."""
    memory = await general_memory(services, workspace_id)
    return await memory.recall(query, namespace=namespace, limit=limit)


@rpc_operation(
    "memory.store",
    repeats=lambda request: "id" in request,
    shown=_shown,
    agent=AgentTool("memory_store", "Store a short text to be recalled later."),
)
async def remember(
    services: Services,
    /,
    content: Annotated[str, "What to remember."],
    *,
    namespace: Namespace = GLOBAL,
    id: Annotated[str | None, "Of an entry to replace."] = None,
    tags: Tags = None,
    workspace_id: str | None = None,
) -> MemoryEntry:
    """Store a short text; the same text again is the same memory."""
    memory = await general_memory(services, workspace_id)
    return await memory.remember(content, namespace=namespace, id=id or "", tags=tags)


@rpc_operation(
    "memory.forget",
    agent=AgentTool("memory_forget", "Delete a stored text. Rules cannot be deleted by this tool."),
)
async def forget(
    services: Services,
    /,
    id: Annotated[str, "Of the entry."],
    *,
    namespace: Namespace = GLOBAL,
    workspace_id: str | None = None,
) -> bool:
    """Delete an entry of general memory; True where it was there."""
    return await (await general_memory(services, workspace_id)).forget(id, namespace=namespace)
