"""toolmem: an agent's memory of its tools.

What works: each tool call is judged, kept per tool in a sliding window, and distilled into usage guidance with its
evidence; a tool where nothing is new is skipped. What the user demands: a rule per tool that stays in the prompt.

    from toolmem import ToolCall, ToolMem

    with ToolMem("memory.db") as mem:               # embedded store, rule-based check: no key, no network
        mem.add([ToolCall("search", {"q": "rain"}, output="[]")])
        mem.summarize("search")
        print(mem.guidance("search").text)
        mem.rules.put("send_email", "never email Sarah", priority="critical")
        print(mem.prompt(tools=["search", "send_email"]))

Importing this package does nothing: no logging set-up, no environment reads, and each name below is loaded when it is
first used.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # `typing`'s, without the 10 ms that importing it takes
if TYPE_CHECKING:
    from typing import Any

    from toolmem.app import AsyncToolMem, ToolMem, ToolMemApp
    from toolmem.client import AsyncClient, Client
    from toolmem.errors import (
        CallDenied,
        ConfigError,
        ModelError,
        RecordError,
        Refused,
        RequestError,
        StoreError,
        ToolMemError,
    )
    from toolmem.flow.op import Op, OpParams
    from toolmem.flow.registry import register
    from toolmem.models import FlowResponse, Guidance, ToolCall, ToolCallResult, ToolMemory, ToolSchema, Verdict
    from toolmem.ops import (
        ParseToolCallResultOp,
        RejudgeOp,
        RetrieveToolMemoryOp,
        RetryEvaluationsOp,
        SummaryToolMemoryOp,
        UpdateVectorStoreOp,
        VectorStoreActionOp,
    )
    from toolmem.research.evaluation import evaluate
    from toolmem.session import AgentSession, CallRecorder

__version__ = "0.2.0.dev0"

_HOMES = {
    "ToolMemApp": "toolmem.app",
    **dict.fromkeys(("AsyncToolMem", "ToolMem"), "toolmem.app"),
    **dict.fromkeys(("AgentSession", "CallRecorder"), "toolmem.session"),
    "AsyncClient": "toolmem.client",
    "Client": "toolmem.client",
    "evaluate": "toolmem.research.evaluation",
    "Op": "toolmem.flow.op",
    "OpParams": "toolmem.flow.op",
    "register": "toolmem.flow.registry",
    **dict.fromkeys(
        (
            *("ToolMemError", "Refused", "ConfigError", "RequestError", "RecordError", "CallDenied"),
            *("StoreError", "ModelError"),
        ),
        "toolmem.errors",
    ),
    **dict.fromkeys(
        (
            "ParseToolCallResultOp",
            "UpdateVectorStoreOp",
            "SummaryToolMemoryOp",
            "RetrieveToolMemoryOp",
            "RetryEvaluationsOp",
            "RejudgeOp",
            "VectorStoreActionOp",
        ),
        "toolmem.ops",
    ),
    **dict.fromkeys(
        ("ToolCall", "ToolCallResult", "ToolMemory", "ToolSchema", "Verdict", "Guidance", "FlowResponse"),
        "toolmem.models",
    ),
}

__all__ = [
    "AgentSession",
    "AsyncClient",
    "AsyncToolMem",
    "CallDenied",
    "CallRecorder",
    "Client",
    "ConfigError",
    "FlowResponse",
    "Guidance",
    "ModelError",
    "Op",
    "OpParams",
    "ParseToolCallResultOp",
    "RecordError",
    "Refused",
    "RejudgeOp",
    "RequestError",
    "RetrieveToolMemoryOp",
    "RetryEvaluationsOp",
    "StoreError",
    "SummaryToolMemoryOp",
    "ToolCall",
    "ToolCallResult",
    "ToolMem",
    "ToolMemApp",
    "ToolMemError",
    "ToolMemory",
    "ToolSchema",
    "UpdateVectorStoreOp",
    "VectorStoreActionOp",
    "Verdict",
    "evaluate",
    "register",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'toolmem' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
