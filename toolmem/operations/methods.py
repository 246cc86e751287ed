"""Every operation as a method, for memories in this process and for clients."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from toolmem import operations
from toolmem.flow.op import Cancellation, outer_cancellation
from toolmem.models.tools import FlowResponse

P = ParamSpec("P")
R = TypeVar("R")


class Methods:
    """Each operation as a method. A subclass runs it in `perform`."""

    add = operations.calls.add
    summarize = operations.guidance.summarize
    guidance = operations.guidance.guidance
    forget_guidance_line = operations.guidance.forget_guidance_line
    retrieve = operations.guidance.retrieve
    advise = operations.guidance.advise
    calls = operations.calls.calls
    ledger = operations.calls.ledger
    tools = operations.calls.tools
    prompt = operations.guidance.prompt
    capture_rules = operations.rules.capture_rules
    note_demand = operations.demands.note_demand
    lift_demand = operations.demands.lift_demand
    demands = operations.demands.demands
    check_tool_call = operations.guard.check_tool_call
    tool_call_ended = operations.guard.tool_call_ended
    decisions = operations.guard.decisions
    mark_decision = operations.guard.mark_decision
    tool_rule_put = operations.rules.tool_rule_put
    tool_rule_get = operations.rules.tool_rule_get
    tool_rules = operations.rules.tool_rules
    tool_rule_review = operations.rules.tool_rule_review
    tool_rule_try = operations.rules.tool_rule_try
    tool_rule_list = operations.rules.tool_rule_list
    tool_rule_delete = operations.rules.tool_rule_delete
    tool_rules_for_prompt = operations.rules.tool_rules_for_prompt
    tool_rules_json = operations.rules.tool_rules_json
    recall = operations.memories.recall
    remember = operations.memories.remember
    forget = operations.memories.forget


def awaited(
    method: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[AsyncMethods, P], Coroutine[Any, Any, R]]:
    """Return an async method that calls the method of `plain` with the same name in a thread."""

    @wraps(method)
    async def coroutine(self: AsyncMethods, /, *args: P.args, **kwargs: P.kwargs) -> R:
        own: Callable[P, R] = getattr(self.plain, method.__name__)  # a subclass may override it
        return await _in_thread(lambda: own(*args, **kwargs))

    return coroutine


class AsyncMethods:
    """The methods of `plain`, a `ToolMem` or `Client`, as coroutines. They run in threads.

    Cancelling a coroutine cancels the flow that a `ToolMem` runs; a server finishes what it began.
    """

    def __init__(self, plain: Any) -> None:
        self.plain = plain

    add = awaited(operations.calls.add)
    summarize = awaited(operations.guidance.summarize)
    guidance = awaited(operations.guidance.guidance)
    forget_guidance_line = awaited(operations.guidance.forget_guidance_line)
    retrieve = awaited(operations.guidance.retrieve)
    advise = awaited(operations.guidance.advise)
    calls = awaited(operations.calls.calls)
    ledger = awaited(operations.calls.ledger)
    tools = awaited(operations.calls.tools)
    prompt = awaited(operations.guidance.prompt)
    capture_rules = awaited(operations.rules.capture_rules)
    note_demand = awaited(operations.demands.note_demand)
    lift_demand = awaited(operations.demands.lift_demand)
    demands = awaited(operations.demands.demands)
    check_tool_call = awaited(operations.guard.check_tool_call)
    tool_call_ended = awaited(operations.guard.tool_call_ended)
    decisions = awaited(operations.guard.decisions)
    mark_decision = awaited(operations.guard.mark_decision)
    tool_rule_put = awaited(operations.rules.tool_rule_put)
    tool_rule_get = awaited(operations.rules.tool_rule_get)
    tool_rules = awaited(operations.rules.tool_rules)
    tool_rule_review = awaited(operations.rules.tool_rule_review)
    tool_rule_try = awaited(operations.rules.tool_rule_try)
    tool_rule_list = awaited(operations.rules.tool_rule_list)
    tool_rule_delete = awaited(operations.rules.tool_rule_delete)
    tool_rules_for_prompt = awaited(operations.rules.tool_rules_for_prompt)
    tool_rules_json = awaited(operations.rules.tool_rules_json)
    recall = awaited(operations.memories.recall)
    remember = awaited(operations.memories.remember)
    forget = awaited(operations.memories.forget)

    async def run(self, flow: Any, /, **request: Any) -> FlowResponse:
        """Run a flow by name. In this process, it may also be a flow composed in Python."""
        return await _in_thread(lambda: self.plain.run(flow, **request))

    async def close(self) -> None:
        """Close the memory or client. Later calls raise StoreClosed."""
        await asyncio.to_thread(self.plain.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _in_thread(work: Callable[[], R]) -> R:
    cancellation = Cancellation()
    token = outer_cancellation.set(cancellation)
    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        cancellation.set()  # else asyncio.run would wait for the thread
        raise
    finally:
        outer_cancellation.reset(token)


def signature_from(plain: Callable[P, Any]) -> Callable[[Any], Callable[Concatenate[Any, P], None]]:
    """Decorator of a constructor, whose `help` then shows the parameters of the class `plain`."""

    def describe(constructor: Any) -> Any:
        own, *_ = inspect.signature(constructor).parameters.values()
        arguments = inspect.signature(plain).parameters.values()
        constructor.__signature__ = inspect.Signature([own, *arguments])
        return constructor

    return describe
