"""The guard of a workspace as the configuration says."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from toolmem.engine.guarding import KEEP_CALLS, CallGuard
from toolmem.ops import ParseToolCallResultOp

if TYPE_CHECKING:
    from toolmem.engine.ended_calls import TaughtCalls
    from toolmem.flow.configure import Configured
    from toolmem.guard.decision import Mode
    from toolmem.protocols import Clock, MemoryStore


def configured_guard(
    configured: Configured,
    clock: Clock,
    store: MemoryStore,
    workspace_id: str,
    rules_workspace_id: str,
    strict: bool = False,
    *,
    taught: TaughtCalls,
) -> CallGuard:
    """A guard over `store`, with the settings' modes. `strict`: repeats are enforced where nobody configured them."""
    settings = configured.settings
    modes = modes_of(configured)
    if strict and "repeats" not in settings.guard.model_fields_set:
        modes["repeats"] = "enforce"
    return CallGuard(
        store,
        workspace_id,
        clock=clock,
        rules_workspace_id=rules_workspace_id,
        modes=modes,
        on_error=settings.guard.on_error,
        context_key=settings.guidance.context_key,
        keep_calls=_keep_calls(configured),
        taught=taught,
    )


def modes_of(configured: Configured) -> dict[str, Mode]:
    """What each source may do."""
    return cast("dict[str, Mode]", configured.settings.guard.modes)


def _keep_calls(configured: Configured) -> int:
    """Calls kept per tool, as the flow `add_tool_call_result` is configured."""
    flow = configured.flows.get("add_tool_call_result")
    ops = [op for op in flow.ops() if isinstance(op, ParseToolCallResultOp)] if flow is not None else []
    return int(ops[0].params.max_history_tool_call_cnt) if ops else KEEP_CALLS
