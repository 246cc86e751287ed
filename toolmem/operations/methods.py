"""The operations as methods: what `ToolMem` and `Client` have in common, and their async twins."""

from __future__ import annotations

from typing import Any, TypeVar

from toolmem.operations import add as add_
from toolmem.operations import calls as calls_
from toolmem.operations import capture, evaluations, memory, rules, workspaces
from toolmem.operations import health as health_
from toolmem.operations import ledger as ledger_
from toolmem.operations import prompt as prompt_
from toolmem.operations import retrieve as retrieve_
from toolmem.operations import summarize as summarize_
from toolmem.operations import tools as tools_
from toolmem.operations.operation import AsyncCaller, Method, Operation, SyncCaller, bound

C = TypeVar("C", SyncCaller, AsyncCaller)


class RuleMethods:
    """The rules of the tools."""

    put = Method(rules.put_rule)
    get = Method(rules.get_rule)
    list = Method(rules.list_rules)
    delete = Method(rules.delete_rule)
    json = Method(rules.rules_json)
    for_prompt = Method(rules.rules_for_prompt)
    review = Method(rules.review_rules)
    set_status = Method(rules.set_rule_status)


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

    add = Method(add_.add)
    summarize = Method(summarize_.summarize)
    retrieve = Method(retrieve_.retrieve)
    guidance = Method(retrieve_.guidance)
    prompt = Method(prompt_.prompt)
    capture_rules = Method(capture.capture_rules)
    rules_block = Method(prompt_.rules_block)

    tools = Method(tools_.tools)
    tool = Method(tools_.tool)
    calls = Method(calls_.calls)
    ledger = Method(ledger_.ledger)
    health = Method(health_.health)

    recall = Method(memory.recall)
    remember = Method(memory.remember)
    forget = Method(memory.forget)

    retry_evaluations = Method(evaluations.retry_evaluations)
    rejudge = Method(evaluations.rejudge)
    memories = Method(workspaces.memories)
    copy_workspace = Method(workspaces.copy_workspace)
    delete_tools = Method(workspaces.delete_tools)
    delete_memories = Method(workspaces.delete_memories)
    delete_workspace = Method(workspaces.delete_workspace)
    dump = Method(workspaces.dump)
    load = Method(workspaces.load)

    def __getattr__(self, name: str) -> Any:
        from toolmem.operations.table import OPERATIONS

        operation: Operation[Any, Any] | None = OPERATIONS.get(name)
        if operation is None:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        return bound(self, operation)
