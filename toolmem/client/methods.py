"""The methods that both clients have, made of the descriptions in `flows` and `rules`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar, overload

from toolmem.client import flows, rules

if TYPE_CHECKING:
    from toolmem.client.calls import Call
    from toolmem.client.clients import AsyncBatch, AsyncClient, Batch, Client

P = ParamSpec("P")
T = TypeVar("T")


class Method(Generic[P, T]):
    """A method with the signature of `describe`: on a Client it answers the call's value, on an AsyncClient it is
    awaited for it, on a batch it adds the call."""

    def __init__(self, describe: Callable[P, Call[T]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: Client, kind: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, owner: AsyncClient, kind: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, owner: Batch | AsyncBatch, kind: type) -> Callable[P, None]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self
        describe = self.describe

        @functools.wraps(describe)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return owner.send(describe(*args, **kwargs))

        return method


class RuleMethods:
    """Over JSON-RPC; `workspace_id` is the client's where none is given, and "default" where that has none."""

    put_rule = Method(rules.put_rule)
    get_rule = Method(rules.get_rule)
    list_rules = Method(rules.list_rules)
    delete_rule = Method(rules.delete_rule)
    rules_for_prompt = Method(rules.rules_for_prompt)
    rules_json = Method(rules.rules_json)
    call = Method(rules.call)


class FlowMethods:
    """Over `POST /<flow>`; a flow needs a workspace, the client's or one that is given."""

    run = Method(flows.run)
    add_tool_call_results = Method(flows.add_tool_call_results)
    summarize = Method(flows.summarize)
    retrieve = Method(flows.retrieve)
    list_memories = Method(flows.list_memories)
    copy_workspace = Method(flows.copy_workspace)
    delete_workspace = Method(flows.delete_workspace)
    delete_tools = Method(flows.delete_tools)
    delete_memories = Method(flows.delete_memories)
    dump = Method(flows.dump)
    load = Method(flows.load)
    retry_evaluations = Method(flows.retry_evaluations)
    rejudge = Method(flows.rejudge)
    capture_rules = Method(flows.capture_rules)
    health = Method(flows.health)
