"""The JSON-RPC methods: the operations that have one, under its name and under that of the source system."""

from __future__ import annotations

from typing import Any

from toolmem.operations.operation import Operation
from toolmem.operations.table import rpc_operations

PREFIX = "memory."
ALIAS_PREFIX = "openhuman.memory_"  # memory.tool_rule_put is openhuman.memory_tool_rule_put there


def methods() -> dict[str, Operation[Any, Any]]:
    """By name, in the order of the table."""
    return {operation.method: operation for operation in rpc_operations()}


def alias(name: str) -> str:
    """The name that the source system gives a method."""
    return ALIAS_PREFIX + name.removeprefix(PREFIX)
