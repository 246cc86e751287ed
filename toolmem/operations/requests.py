"""The check of what a caller gives to an RPC operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolmem.flow.checks import check_arguments, check_workspace
from toolmem.operations.operation import DEFAULT_WORKSPACE, WORKSPACE, Operation


def checked(operation: Operation[Any, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name. Raises RequestError, whose `field` is the argument that is missing, unknown or wrong."""
    accepted = check_arguments(given, operation.arguments)
    accepted[WORKSPACE] = check_workspace(accepted.get(WORKSPACE, DEFAULT_WORKSPACE))
    return accepted
