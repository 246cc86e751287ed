"""A Python function as a tool: its name, and what a call of it is given."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolmem.errors import RequestError
from toolmem.models import ToolSchema

_GATHERING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_OWNERS = ("self", "cls")  # a method's first parameter, which is no argument of the tool


@dataclass(frozen=True, slots=True)
class ToolFunction:
    """What is known of a function whose calls are recorded."""

    name: str
    runs_async: bool
    signature: inspect.Signature
    preset: tuple[Any, ...] = ()  # of a functools.partial
    preset_names: Mapping[str, Any] = field(default_factory=dict)
    owner: str = ""  # the first parameter of a method
    description: str = ""  # the first paragraph of its docstring

    @classmethod
    def of(cls, function: Callable[..., Any]) -> ToolFunction:
        """Raises RequestError for a function whose call returns before it has run."""
        partial = function if isinstance(function, functools.partial) else None
        plain: Callable[..., Any] = partial.func if partial else function
        called = plain if inspect.isroutine(plain) else getattr(plain, "__call__", plain)  # noqa: B004  # an object
        if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
            raise RequestError(
                f"tool: {_name(plain)} is a generator function, whose call returns before it has run: decorate the "
                "function that reads it to its end",
                field="function",
            )
        signature = inspect.signature(plain)
        return cls(
            _name(plain),
            inspect.iscoroutinefunction(called),
            signature,
            partial.args if partial else (),
            partial.keywords if partial else {},
            _owner(plain, signature),
            " ".join((inspect.getdoc(called) or "").partition("\n\n")[0].split()),
        )

    @property
    def schema(self) -> ToolSchema:
        """What the signature and the docstring declare, by which a sentence about the tool is read."""
        named = [each.name for each in self.signature.parameters.values() if each.kind not in _GATHERING]
        parameters = {"type": "object", "properties": {name: {} for name in named if name != self.owner}}
        return ToolSchema(name=self.name, description=self.description, parameters=parameters if named else {})

    def given(self, args: tuple[Any, ...], names: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, as JSON has them; what is left to a default is not among them."""
        return as_json(self._bound(args, names))

    def whole(self, args: tuple[Any, ...], names: Mapping[str, Any]) -> dict[str, Any]:
        """All that the function will work with: defaults too, and what is given beside its parameters, by its name."""
        told = {**self._defaults(), **self._bound(args, names)}
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD and isinstance(told.get(name), Mapping):
                told = {**told.pop(name), **told}
        return as_json(told)

    def _bound(self, args: tuple[Any, ...], names: Mapping[str, Any]) -> dict[str, Any]:
        args, names = (*self.preset, *args), {**self.preset_names, **names}
        try:
            bound = self.signature.bind(*args, **names).arguments
        except TypeError:  # a wrong call is a call as well: the function itself will say so
            return {**{str(position): value for position, value in enumerate(args)}, **names}
        return {name: value for name, value in bound.items() if name != self.owner}

    def _defaults(self) -> dict[str, Any]:
        known = [each for each in self.signature.parameters.values() if each.default is not each.empty]
        return {each.name: each.default for each in known if each.default is not None}


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", "") or type(function).__name__)


def _owner(function: Callable[..., Any], signature: inspect.Signature) -> str:
    """`self` or `cls` where a function stands in a class and is not bound yet."""
    first = next(iter(signature.parameters), "")
    inside = getattr(function, "__qualname__", "").rpartition(".")[0]
    return first if first in _OWNERS and inside and not inside.endswith("<locals>") else ""


def as_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Each argument as JSON has it; what JSON has no word for becomes its text."""
    return {str(name): _json_value(value) for name, value in arguments.items()}


def _json_value(value: Any) -> Any:
    try:
        return json.loads(as_text(value))
    except (ValueError, RecursionError):
        return shown_safely(value)


def as_text(value: Any) -> str:
    """The value as JSON text."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)
    except Exception:  # whatever the objects of a program raise when they are shown
        return json.dumps(shown_safely(value), ensure_ascii=False)


def shown_safely(value: Any) -> str:
    """The text of any object; its type where it cannot be shown."""
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"
