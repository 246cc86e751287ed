"""Memories: texts other than rules that agents store and look up."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from toolmem.config.sections import OpSection
from toolmem.flow.services import Memory
from toolmem.operations.operation import AgentTool, operation
from toolmem.rules.memories import GLOBAL, LIMIT, Memories, MemoryEntry

Namespace = Annotated[str, "The namespace of the memory: global, skill-<id> or tool-<name>."]


@operation(
    rpc="memory.recall",
    reads_only=True,
    agent=AgentTool(
        "memory_recall", "Look up what is remembered. A tool's namespace includes its rules."
    ),
)
def recall(
    memory: Memory,
    query: Annotated[str, "The text to look for. An empty query returns the newest memories."] = "",
    *,
    namespace: Annotated[
        str, "Search here: global, skill-<id>, tool-<name> or tool_effectiveness."
    ] = GLOBAL,
    limit: Annotated[int, Meta(ge=1, le=100), "Return at most this many memories."] = LIMIT,
) -> list[MemoryEntry]:
    """Return the memories that fit the query best and, in `tool-<name>`, the rules on the tool.

    In `tool_effectiveness`, return figures on the calls and errors of each tool, as JSON.
    """
    return _memories(memory).recall(query, namespace, limit)


@operation(rpc="memory.store", agent=AgentTool("memory_store", "Remember a text."))
def remember(
    memory: Memory,
    content: Annotated[str, "The text to remember."],
    *,
    namespace: Namespace = GLOBAL,
    id: Annotated[str | None, "The id of the memory to replace."] = None,
    tags: Annotated[list[str] | None, "Words by which a search finds the memory."] = None,
) -> MemoryEntry:
    """Remember a text. An older memory of this id or, without an id, of this text is replaced."""
    return _memories(memory).remember(content, namespace, id or "", tags or ())


@operation(rpc="memory.forget", agent=AgentTool("memory_forget", "Forget a memory."))
def forget(
    memory: Memory, id: Annotated[str, "The id of the memory."], *, namespace: Namespace = GLOBAL
) -> bool:
    """Forget a memory. Returns True if there was one with this id."""
    return _memories(memory).forget(id, namespace)


def _memories(memory: Memory) -> Memories:
    op = OpSection()
    services = memory.services
    store = services.store(op)
    return Memories(store, memory.workspace_name, services.clock, lambda: services.embedder(op))
