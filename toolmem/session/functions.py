"""Read a Python function as a tool: its name, its schema, and the arguments of a call."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from toolmem.errors import RequestError
from toolmem.models.tools import ToolSchema

_COLLECTS_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_RECEIVERS = ("self", "cls")  # first parameters of methods, which are no arguments of a tool
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


class ToolFunction:
    """A function as a tool. Raises RequestError for a generator: calling it does not run it."""

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
        scope = getattr(plain, "__qualname__", "").rpartition(".")[0]
        is_method = first in _RECEIVERS and bool(scope) and not scope.endswith("<locals>")
        self._receiver = first if is_method else ""  # of a method that is not bound yet
        self._doc = " ".join((inspect.getdoc(called) or "").partition("\n\n")[0].split())

    @property
    def schema(self) -> ToolSchema:
        """The schema that the signature and the docstring declare."""
        properties = {
            each.name: {"type": _TYPES[each.annotation]} if each.annotation in _TYPES else {}
            for each in self._signature.parameters.values()
            if each.kind not in _COLLECTS_REST and each.name != self._receiver
        }
        parameters = {"type": "object", "properties": properties} if properties else {}
        return ToolSchema(self.name, self._doc, parameters)

    def arguments(
        self, args: tuple[Any, ...], names: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return two dicts of a call's arguments, as JSON values: with defaults, and as given.

        What `**kwargs` collects is under its own names in the first, under `kwargs` in the second.
        """
        args, names = (*self._partial.args, *args), {**self._partial.keywords, **names}
        try:
            given = dict(self._signature.bind(*args, **names).arguments)
        except TypeError:  # a wrong call is recorded too; the function itself raises
            given = {**{str(at): value for at, value in enumerate(args)}, **names}
        given.pop(self._receiver, None)
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
    """The arguments as JSON values. What JSON cannot hold, such as a date, becomes text."""
    return {str(name): json.loads(as_text(value)) for name, value in arguments.items()}


def as_text(value: Any) -> str:
    """The value as JSON text. Never raises."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)
    except Exception:  # __str__ of an object may raise anything
        return json.dumps(_shown(value), ensure_ascii=False)


def _shown(value: Any) -> str:
    """The text of any object; its type if `str` fails."""
    try:
        return str(value)
    except Exception:  # as above
        return f"<{type(value).__name__}>"
