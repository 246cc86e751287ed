"""Read a Python function as a tool: its name, its schema, and the arguments of a call."""

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
    """A function as a tool. Raises RequestError for a generator, which returns before it runs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._partial = (
            function if isinstance(function, functools.partial) else functools.partial(function)
        )
        plain: Callable[..., Any] = self._partial.func
        called = plain if inspect.isroutine(plain) else type(plain).__call__
        self.name = str(getattr(plain, "__name__", "") or type(plain).__name__)
        if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
            problem = "its call returns before it has run; decorate the function that reads it"
            raise RequestError(f"tool: {self.name} is a generator function: {problem}", "function")
        self.is_async = inspect.iscoroutinefunction(called)
        self._signature = inspect.signature(plain)
        first = next(iter(self._signature.parameters), "")
        inside = getattr(plain, "__qualname__", "").rpartition(".")[0]
        is_in_class = bool(inside) and not inside.endswith("<locals>")
        self._owner = first if first in _OWNERS and is_in_class else ""  # of a method not bound yet
        self._doc = " ".join((inspect.getdoc(called) or "").partition("\n\n")[0].split())

    @property
    def schema(self) -> ToolSchema:
        """The schema that the signature and the docstring declare."""
        properties = {
            each.name: {"type": _TYPES[each.annotation]} if each.annotation in _TYPES else {}
            for each in self._signature.parameters.values()
            if each.kind not in _GATHERING and each.name != self._owner
        }
        parameters = {"type": "object", "properties": properties} if properties else {}
        return ToolSchema(self.name, self._doc, parameters)

    def arguments(
        self, args: tuple[Any, ...], names: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments by name, as JSON: with defaults, and as the call gave them.

        The first has each `**kwargs` argument under its own name.
        """
        args, names = (*self._partial.args, *args), {**self._partial.keywords, **names}
        try:
            given = dict(self._signature.bind(*args, **names).arguments)
        except TypeError:  # record a wrong call too; the function itself raises for it
            given = {**{str(at): value for at, value in enumerate(args)}, **names}
        given.pop(self._owner, None)
        parameters = self._signature.parameters.values()
        defaults = {
            each.name: each.default
            for each in parameters
            if each.default is not each.empty and each.default is not None
        }
        whole = {**defaults, **given}
        for each in parameters:
            if each.kind is each.VAR_KEYWORD and isinstance(whole.get(each.name), Mapping):
                whole = {**whole.pop(each.name), **whole}
        return as_json(whole), as_json(given)


def as_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Each argument as a JSON value; other values become text."""
    return {str(name): json.loads(as_text(value)) for name, value in arguments.items()}


def as_text(value: Any) -> str:
    """The value as JSON text. Never raises."""
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
