"""Every operation as a method, for memories in this process and for clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

from toolmem import operations
from toolmem.flow.op import Cancellation, outer_cancellation
from toolmem.models.tools import FlowResponse
from toolmem.operations.operation import Operation

Answer = TypeVar("Answer")


class Methods:
    """Subclasses have `perform`. Where it is a coroutine, so is every method."""

    add = operations.calls.add
    summarize = operations.guidance.summarize
    guidance = operations.guidance.guidance
    forget_guidance_line = operations.guidance.forget_guidance_line
    retrieve = operations.guidance.retrieve
    advise = operations.guidance.advise
    calls = operations.calls.calls
    tools = operations.calls.tools
    prompt = operations.guidance.prompt
    capture_rules = operations.rules.capture_rules
    note_demand = operations.demands.note_demand
    lift_demand = operations.demands.lift_demand
    demands = operations.demands.demands
    check_tool_call = operations.guard.check_tool_call
    tool_call_ended = operations.guard.tool_call_ended
    decisions = operations.guard.decisions
    tool_rule_put = operations.rules.tool_rule_put
    tool_rule_get = operations.rules.tool_rule_get
    tool_rule_list = operations.rules.tool_rule_list
    tool_rule_delete = operations.rules.tool_rule_delete
    tool_rules_for_prompt = operations.rules.tool_rules_for_prompt
    tool_rules_json = operations.rules.tool_rules_json
    recall = operations.memories.recall
    remember = operations.memories.remember
    forget = operations.memories.forget


class AsyncMethods(Methods):
    """The methods of a plain memory or client as coroutines. The work is done in threads.

    Cancelling a coroutine cancels its flow, as Ctrl-C does without threads.
    """

    def __init__(self, plain: Any) -> None:
        self.plain = plain

    async def perform(self, operation: Operation[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Run an operation."""
        return await _in_thread(lambda: self.plain.perform(operation, arguments))

    async def run(self, flow: Any, /, **request: Any) -> FlowResponse:
        """Run a flow by name, or in this process one that was composed in Python."""
        return await _in_thread(lambda: self.plain.run(flow, **request))

    async def close(self) -> None:
        """Close it. Later calls raise StoreClosed."""
        await asyncio.to_thread(self.plain.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _in_thread(work: Callable[[], Answer]) -> Answer:
    cancellation = Cancellation()
    token = outer_cancellation.set(cancellation)
    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        cancellation.set()  # else asyncio.run would wait for the thread
        raise
    finally:
        outer_cancellation.reset(token)
