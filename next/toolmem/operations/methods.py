"""Every operation as a method, for memories in this process and for clients."""

from __future__ import annotations

from toolmem import operations
from toolmem.operations.operation import AsyncOperation


class Methods:
    """Its subclass has `perform`."""

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


class AsyncMethods:
    """The same as coroutines. Its subclass has `in_thread`."""

    add = AsyncOperation(operations.add)
    summarize = AsyncOperation(operations.summarize)
    guidance = AsyncOperation(operations.guidance)
    retrieve = AsyncOperation(operations.retrieve)
    advise = AsyncOperation(operations.advise)
    calls = AsyncOperation(operations.calls)
    tools = AsyncOperation(operations.tools)
    prompt = AsyncOperation(operations.prompt)
    capture_rules = AsyncOperation(operations.capture_rules)
    note_demand = AsyncOperation(operations.note_demand)
    lift_demand = AsyncOperation(operations.lift_demand)
    check_tool_call = AsyncOperation(operations.check_tool_call)
    tool_call_ended = AsyncOperation(operations.tool_call_ended)
    decisions = AsyncOperation(operations.decisions)
    tool_rule_put = AsyncOperation(operations.tool_rule_put)
    tool_rule_get = AsyncOperation(operations.tool_rule_get)
    tool_rule_list = AsyncOperation(operations.tool_rule_list)
    tool_rule_delete = AsyncOperation(operations.tool_rule_delete)
    tool_rules_for_prompt = AsyncOperation(operations.tool_rules_for_prompt)
    tool_rules_json = AsyncOperation(operations.tool_rules_json)
    recall = AsyncOperation(operations.recall)
    remember = AsyncOperation(operations.remember)
    forget = AsyncOperation(operations.forget)
