"""All operations, in the order in which they are shown: what every interface of toolmem loops over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from toolmem.operations import (
    add,
    call_advice,
    capture,
    demand_notes,
    evaluations,
    guard_checks,
    health,
    kept_calls,
    known_tools,
    notes,
    prompt,
    retrieve,
    rule_replays,
    spending,
    summarize,
    tool_rules,
    workspace_actions,
)
from toolmem.operations.operation import Operation, Parameter

OPERATIONS: dict[str, Operation[Any, Any]] = {
    operation.name: operation
    for module in (
        *(add, summarize, retrieve, workspace_actions, evaluations, capture, demand_notes, prompt),
        *(guard_checks, call_advice, tool_rules, rule_replays, notes, known_tools, kept_calls, spending, health),
    )
    for operation in vars(module).values()
    if isinstance(operation, Operation)
}


def register(operation: Operation[Any, Any]) -> Operation[Any, Any]:
    """Add an operation of one's own; from then on every interface has it. Raises ValueError where its name is taken."""
    known = OPERATIONS.setdefault(operation.name, operation)
    if known is not operation:
        raise ValueError(f"an operation {operation.name!r} exists already; give the function another name")
    return operation


def rpc_operations() -> Iterator[Operation[Any, Any]]:
    """Those that are methods of JSON-RPC."""
    return (each for each in OPERATIONS.values() if each.method)


def of_flow(flow: str) -> list[Operation[Any, Any]]:
    """Those that run this flow."""
    return [each for each in OPERATIONS.values() if each.flow == flow]


def described_flows() -> dict[str, dict[str, Any]]:
    """By flow: its `description` and `input_schema`, as a configuration has them."""
    flows = dict.fromkeys(each.flow for each in OPERATIONS.values() if each.flow)
    return {flow: _described(of_flow(flow)) for flow in flows}


def _described(operations: list[Operation[Any, Any]]) -> dict[str, Any]:
    first = operations[0]
    arguments: dict[str, Parameter] = {}
    if choices := _choices(operations):
        name = next(iter(first.always))
        arguments[name] = Parameter(type="string", description="What to do.", enum=choices)
    for operation in operations:
        for name, argument in operation.arguments.items():
            arguments.setdefault(name, argument.model_copy(update={"required": False}) if choices else argument)
    return {
        "description": first.about or first.description,
        "input_schema": {name: each.as_settings() for name, each in arguments.items()},
    }


def _choices(operations: Iterable[Operation[Any, Any]]) -> list[Any]:
    """What the operations of one flow give for the argument that tells them apart."""
    return [value for operation in operations for value in operation.always.values()]
