"""How a call ended, and which calls followed one another.

A tool that answers with an error did not work, whatever its flag says. That one call followed
another is known only where calls name their conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from toolmem.models.calls import ToolCallResult
from toolmem.view.effects import CallEffects

# Failures of the service: another input would have changed nothing.
_SERVICE = frozenset({"rate_limited", "connection_error"})
# Failures that the same call may not meet again.
_PASSING = _SERVICE | {"server_error"}
# Failures after which the call may have been carried out all the same.
_OPEN = frozenset({"timeout", "no_output", "server_error", "connection_error"})


def went_wrong(call: ToolCallResult) -> bool | None:
    """Whether its flag or the judge says that it failed; None: neither is known."""
    return True if call.execution_failed else call.failed


def is_useful(call: ToolCallResult) -> bool | None:
    """Of a call that worked, whether the judge found its answer useful; None: unknown or failed."""
    return None if went_wrong(call) or call.score is None else call.score > 0.0


def is_service_failure(call: ToolCallResult) -> bool:
    """Whether it failed for a reason that no other input would have changed."""
    return bool(went_wrong(call)) and call.error_class in _SERVICE


def may_pass(call: ToolCallResult) -> bool:
    """Whether it failed in a way that the same call may not meet again."""
    return bool(went_wrong(call)) and call.error_class in _PASSING


def may_have_run(call: ToolCallResult) -> bool:
    """Whether a failed call may have changed something: to make it again could do it twice."""
    return call.error_class in _OPEN and CallEffects(call.tool_name, call.input).may_write()


def conversations(calls: Sequence[ToolCallResult]) -> list[list[int]]:
    """Positions of the calls of each conversation that calls name, in the order made."""
    groups: dict[str, list[int]] = {}
    for position, call in enumerate(calls):
        if name := call.conversation_id:
            groups.setdefault(name, []).append(position)
    return [sorted(group, key=lambda i: (*_place(calls[i]), i)) for group in groups.values()]


def _place(call: ToolCallResult) -> tuple[datetime, float]:
    """Sort by time; where times tie, by the recorded step."""
    step = call.metadata.get("step")
    return call.create_time, float(step) if isinstance(step, int | float) else 0.0
