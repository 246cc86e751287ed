"""The operations as methods: what `ToolMem` and `Client` have in common, and their async twins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolmem.operations import add as add_
from toolmem.operations import (
    call_advice,
    capture,
    demand_notes,
    evaluations,
    guard_checks,
    kept_calls,
    known_tools,
    notes,
    rule_replays,
    spending,
    tool_rules,
    workspace_actions,
)
from toolmem.operations import health as health_
from toolmem.operations import prompt as prompt_
from toolmem.operations import retrieve as retrieve_
from toolmem.operations import summarize as summarize_
from toolmem.operations.operation import AsyncCaller, SyncCaller, bound


class RuleMethods:
    """The rules of the tools."""

    put = tool_rules.put_rule
    get = tool_rules.get_rule
    list = tool_rules.list_rules
    delete = tool_rules.delete_rule
    json = tool_rules.rules_json
    for_prompt = tool_rules.rules_for_prompt
    review = tool_rules.review_rules
    replay = rule_replays.replay_rules
    set_status = tool_rules.set_rule_status


class Rules(RuleMethods, SyncCaller):
    """The rules, as methods of `ToolMem.rules` and `Client.rules`."""

    def __init__(self, caller: SyncCaller) -> None:
        self.perform = caller.perform  # type: ignore[method-assign]


class AsyncRules(RuleMethods, AsyncCaller):
    """The rules, as methods of `AsyncToolMem.rules` and `AsyncClient.rules`."""

    def __init__(self, caller: AsyncCaller) -> None:
        self.perform = caller.perform  # type: ignore[method-assign]


class Methods:
    """Every operation as a method; one that was registered by somebody else is found by its name as well."""

    add = add_.add
    summarize = summarize_.summarize
    retrieve = retrieve_.retrieve
    guidance = retrieve_.guidance
    prompt = prompt_.prompt
    capture_rules = capture.capture_rules
    rules_block = prompt_.rules_block

    tools = known_tools.tools
    tool = known_tools.tool
    calls = kept_calls.calls
    ledger = spending.ledger
    health = health_.health

    note_demand = demand_notes.note_demand
    lift_demand = demand_notes.lift_demand

    check_tool_call = guard_checks.check_tool_call
    advise_tool_call = call_advice.advise_tool_call
    decisions = guard_checks.decisions

    recall = notes.recall
    remember = notes.remember
    forget = notes.forget

    retry_evaluations = evaluations.retry_evaluations
    rejudge = evaluations.rejudge
    memories = workspace_actions.memories
    copy_workspace = workspace_actions.copy_workspace
    delete_tools = workspace_actions.delete_tools
    delete_memories = workspace_actions.delete_memories
    delete_workspace = workspace_actions.delete_workspace
    dump = workspace_actions.dump
    load = workspace_actions.load

    if not TYPE_CHECKING:  # so that a misspelt method is an error of the type checker

        def __getattr__(self, name: str) -> Any:
            from toolmem.operations.table import OPERATIONS

            if name not in OPERATIONS:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
            return bound(self, OPERATIONS[name])
