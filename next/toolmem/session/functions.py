"""A Python function as a tool: its name, and what a call of it is given."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from toolmem.errors import RequestError
from toolmem.models.tools import ToolSchema

_GATHERING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_OWNERS = ("self", "cls")  # a method's first parameter, which is no argument of the tool
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


class ToolFunction:
    """What is known of a function. Raises RequestError where a call returns before it has run."""

    def __init__(self, function: Callable[..., Any]) -> None:
        partial = function if isinstance(function, functools.partial) else None
        plain: Callable[..., Any] = partial.func if partial else function
        called = plain if inspect.isroutine(plain) else type(plain).__call__
        self.name = str(getattr(plain, "__name__", "") or type(plain).__name__)
        if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
            problem = "its call returns before it has run; decorate the function that reads it"
            raise RequestError(f"tool: {self.name} is a generator function: {problem}", "function")
        self.is_async = inspect.iscoroutinefunction(called)
        self._signature = inspect.signature(plain)
        self._preset = partial.args if partial else ()
        self._preset_names: Mapping[str, Any] = partial.keywords if partial else {}
        self._owner = _owner(plain, self._signature)
        self._doc = " ".join((inspect.getdoc(called) or "").partition("\n\n")[0].split())

    @property
    def schema(self) -> ToolSchema:
        """What the signature and the docstring declare."""
        properties = {
            each.name: {"type": _TYPES[each.annotation]} if each.annotation in _TYPES else {}
            for each in self._signature.parameters.values()
            if each.kind not in _GATHERING and each.name != self._owner
        }
        parameters = {"type": "object", "properties": properties} if properties else {}
        return ToolSchema(self.name, self._doc, parameters)

    def given(self, args: tuple[Any, ...], names: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, as JSON has them; what is left out is not among them."""
        return as_json(self._bound(args, names))

    def whole(self, args: tuple[Any, ...], names: Mapping[str, Any]) -> dict[str, Any]:
        """All that the function works with: defaults, and keyword arguments by their names."""
        defaults = {
            each.name: each.default
            for each in self._signature.parameters.values()
            if each.default is not each.empty and each.default is not None
        }
        told = {**defaults, **self._bound(args, names)}
        for name, parameter in self._signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD and isinstance(told.get(name), Mapping):
                told = {**told.pop(name), **told}
        return as_json(told)

    def _bound(self, args: tuple[Any, ...], names: Mapping[str, Any]) -> dict[str, Any]:
        args, names = (*self._preset, *args), {**self._preset_names, **names}
        try:
            bound = self._signature.bind(*args, **names).arguments
        except TypeError:  # a wrong call is a call as well: the function itself will say so
            return {**{str(at): value for at, value in enumerate(args)}, **names}
        return {name: value for name, value in bound.items() if name != self._owner}


def _owner(function: Callable[..., Any], signature: inspect.Signature) -> str:
    """`self` or `cls` where a function stands in a class and is not bound yet."""
    first = next(iter(signature.parameters), "")
    inside = getattr(function, "__qualname__", "").rpartition(".")[0]
    is_owner = first in _OWNERS and inside and not inside.endswith("<locals>")
    return first if is_owner else ""


def as_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Each argument as JSON has it; what JSON has no word for becomes its text."""
    return {str(name): json.loads(as_text(value)) for name, value in arguments.items()}


def as_text(value: Any) -> str:
    """The value as JSON text."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)
    except Exception:  # whatever the objects of a program raise when they are shown
        return json.dumps(_shown(value), ensure_ascii=False)


def _shown(value: Any) -> str:
    """The text of any object; its type where it cannot be shown."""
    try:
        return str(value)
    except Exception:  # the same
        return f"<{type(value).__name__}>"
