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
    """Its subclass has `perform`; where that is a coroutine, each method is one."""

    add = operations.add
    summarize = operations.summarize
    guidance = operations.guidance
    retrieve = operations.retrieve
    advise = operations.advise
    calls = operations.calls
    tools = operations.tools
    prompt = operations.prompt
    capture_rules = operations.capture_rules
    note_demand = operations.note_demand
    lift_demand = operations.lift_demand
    check_tool_call = operations.check_tool_call
    tool_call_ended = operations.tool_call_ended
    decisions = operations.decisions
    tool_rule_put = operations.tool_rule_put
    tool_rule_get = operations.tool_rule_get
    tool_rule_list = operations.tool_rule_list
    tool_rule_delete = operations.tool_rule_delete
    tool_rules_for_prompt = operations.tool_rules_for_prompt
    tool_rules_json = operations.tool_rules_json
    recall = operations.recall
    remember = operations.remember
    forget = operations.forget


class AsyncMethods(Methods):
    """A plain memory or client for coroutines. The work is done in threads.

    Cancelling a coroutine cancels its run as Ctrl-C does a plain one.
    """

    def __init__(self, plain: Any) -> None:
        self.plain = plain

    async def perform(self, operation: Operation[..., Any], given: Mapping[str, Any]) -> Any:
        """Do an operation."""
        return await _in_thread(lambda: self.plain.perform(operation, given))

    async def run(self, flow: Any, /, **request: Any) -> FlowResponse:
        """Run a flow by name, or in this process one that was composed in Python."""
        return await _in_thread(lambda: self.plain.run(flow, **request))

    async def close(self) -> None:
        """Whatever is asked later raises StoreClosed."""
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
