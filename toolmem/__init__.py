"""A memory of an agent's tools.

from toolmem import ToolMem

with ToolMem("memory.db") as memory:
    memory.add([{"tool_name": "search", "input": {"q": "rain"}, "output": "[]"}])
    memory.summarize("search")
    print(memory.guidance("search").text)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolmem.client import AsyncClient, Client
    from toolmem.errors import CallDenied
    from toolmem.formats.data_frames import read_calls
    from toolmem.memory.toolmem import AsyncToolMem, ToolMem
    from toolmem.models.calls import ToolCallResult
    from toolmem.models.rules import ToolMemoryRule
    from toolmem.rules.capture import ToolMemoryCaptureHook
    from toolmem.rules.prompt import (
        ToolMemoryRulesSection,
        prefetch_tool_memory_rules,
        prefetch_tool_memory_rules_blocking,
    )
    from toolmem.rules.store import ToolMemoryStore
    from toolmem.session.agent_session import AgentSession
    from toolmem.session.async_session import AsyncAgentSession
    from toolmem.session.recorder import CallRecorder

__version__ = "0.2.0"

_MODULES = {
    "AgentSession": "toolmem.session.agent_session",
    "AsyncClient": "toolmem.client",
    "AsyncAgentSession": "toolmem.session.async_session",
    "AsyncToolMem": "toolmem.memory.toolmem",
    "CallDenied": "toolmem.errors",
    "Client": "toolmem.client",
    "CallRecorder": "toolmem.session.recorder",
    "ToolCallResult": "toolmem.models.calls",
    "ToolMem": "toolmem.memory.toolmem",
    "ToolMemoryCaptureHook": "toolmem.rules.capture",
    "ToolMemoryRule": "toolmem.models.rules",
    "ToolMemoryRulesSection": "toolmem.rules.prompt",
    "ToolMemoryStore": "toolmem.rules.store",
    "prefetch_tool_memory_rules": "toolmem.rules.prompt",
    "prefetch_tool_memory_rules_blocking": "toolmem.rules.prompt",
    "read_calls": "toolmem.formats.data_frames",
}

__all__ = [
    "AgentSession",
    "AsyncAgentSession",
    "AsyncClient",
    "AsyncToolMem",
    "CallDenied",
    "CallRecorder",
    "Client",
    "ToolCallResult",
    "ToolMem",
    "ToolMemoryCaptureHook",
    "ToolMemoryRule",
    "ToolMemoryRulesSection",
    "ToolMemoryStore",
    "prefetch_tool_memory_rules",
    "prefetch_tool_memory_rules_blocking",
    "read_calls",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'toolmem' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)
