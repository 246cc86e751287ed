"""The check of what a caller gives to an RPC operation, in the words in which every road refuses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolmem.config.names import hint
from toolmem.errors import RequestError
from toolmem.flow.checks import check_workspace
from toolmem.operations.operation import WORKSPACE, Argument, Operation
from toolmem.operations.rules import DEFAULT_WORKSPACE

_ANY_WORKSPACE = Argument(("string",))
_KINDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "object": "an object",
}
_JSON_NAMES = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def checked(operation: Operation[Any, Any], given: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """The arguments by name; a list holds positional ones, `workspace_id` last. Null counts as left out.

    Raises RequestError, whose `field` is the argument that is missing, unknown or wrong.
    """
    known = {**operation.arguments, WORKSPACE: _ANY_WORKSPACE}
    if not isinstance(given, Mapping):
        if len(given) > len(known):
            raise RequestError(f"{len(given)} parameters; there are {len(known)}: {', '.join(known)}", field="params")
        given = dict(zip(known, given, strict=False))
    for name in given:
        if name not in known:
            raise RequestError(f"{name}: unknown ({hint(str(name), known)})"[:300], field=str(name)[:100])
    accepted = {name: value for name, value in given.items() if value is not None}
    for name, argument in known.items():
        if name not in accepted:
            if argument.required:
                raise RequestError(f"{name}: missing (expected {kind_of(argument)})", field=name)
        elif not any(_fits(accepted[name], kind, argument) for kind in argument.types):
            got = _JSON_NAMES.get(type(accepted[name]), "something else")
            raise RequestError(f"{name}: expected {kind_of(argument)}, got {got}", field=name)
    accepted[WORKSPACE] = check_workspace(accepted.get(WORKSPACE, DEFAULT_WORKSPACE))
    return accepted


def kind_of(argument: Argument) -> str:
    """The JSON types of an argument in words."""
    return " or ".join(_in_words(kind, argument) for kind in argument.types)


def _in_words(kind: str, argument: Argument) -> str:
    if kind != "array":
        return _KINDS[kind]
    return "a list of strings" if (argument.items or {}).get("type") == "string" else "a list"


def _fits(value: Any, kind: str, argument: Argument) -> bool:
    if kind == "array":
        strings = (argument.items or {}).get("type") == "string"
        return isinstance(value, list) and (not strings or all(isinstance(each, str) for each in value))
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "boolean": bool, "object": Mapping}[kind])
