"""An operation: what a caller gives and what it gets, described once by one function and its docstring.

    @flow_operation("summary_tool_memory")
    def summarize(answer: FlowResponse, /, tool_names: Annotated[Names, "Names, or a list."], ...) -> Summarized:
        "Distil guidance ..."
        return Summarized.of(answer)

    @rpc_operation("memory.tool_rule_get", reads_only=True)
    async def get_rule(services: Services, /, tool_name: str, id: str, ...) -> ToolMemoryRule | None: ...

A flow operation runs the flow of that name, and its function reads the flow's answer; the function of an RPC operation
does the work, and a flow of the name `flow` may do the same for who composes flows or asks over HTTP. Behind the first
parameter stands what every caller gives: from there come the request's arguments with their types and descriptions, and
through them the HTTP routes with their document, the JSON-RPC methods, the MCP tools, the agent's tools, the methods of
`ToolMem` and `Client`, and the reference pages.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from pydantic import Field

from toolmem.config.settings import Argument
from toolmem.flow.checks import check_arguments, check_workspace
from toolmem.models import FlowResponse
from toolmem.protocols import Services

P = ParamSpec("P")
T = TypeVar("T")

WORKSPACE = "workspace_id"
DEFAULT_WORKSPACE = "default"  # that of a caller who names none
_JSON_TYPES: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}


class Parameter(Argument):
    """An argument that a function's signature describes."""

    more: dict[str, Any] = Field(default_factory=dict)  # `minimum`, `maximum` and `default`, as JSON Schema has them

    def as_json_schema(self) -> dict[str, Any]:
        """As an argument of a configuration, with bounds and default."""
        return super().as_json_schema() | self.more

    def as_settings(self) -> dict[str, Any]:
        """As a flow's `input_schema` has it."""
        return {"type": self.type} | self.model_dump(exclude_defaults=True, exclude={"more"})


@dataclass(frozen=True, slots=True)
class AgentTool:
    """How an operation is offered to an agent: under which name, said in which words, without which arguments."""

    name: str
    description: str
    without: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of arguments that have none in the signature
    tells_arguments: bool = False  # its description says what each is: they are declared without words of their own
    listed: str = ""  # a shorter description for MCP, whose list of all tools goes to every session


@dataclass(frozen=True)
class Operation(Generic[P, T]):
    """One operation of toolmem. `run` by who serves it, `read` by who asks another process for it."""

    function: Callable[..., Any]
    flow: str = ""  # the flow that it runs
    method: str = ""  # of JSON-RPC; one that has a flow as well is performed by its function
    address: str = ""  # where the HTTP service answers it to a plain GET as well
    sends: Mapping[str, str] = field(default_factory=dict)  # parameter -> its name in a request, where they differ
    always: Mapping[str, Any] = field(default_factory=dict)  # arguments that the operation gives itself
    reads_only: bool = False
    repeats: Callable[[Mapping[str, Any]], bool] | bool = False  # sent twice, it does no more than sent once
    agent: AgentTool | None = None
    shown: Callable[[Any], Any] | None = None  # a result as JSON values, where the model's own dump is not meant
    about: str = ""  # what the flow does, where several operations run it
    confirms: str = ""  # the argument that says the workspace once more, because the operation destroys it

    @property
    def name(self) -> str:
        """The method of `ToolMem` and of `Client`."""
        return self.function.__name__

    @property
    def description(self) -> str:
        """The first paragraph of the docstring, on one line."""
        return " ".join((self.__doc__ or "").partition("\n\n")[0].split())

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", inspect.getdoc(self.function))

    # -- as an attribute of a class: a method of its instances

    @overload
    def __get__(self, owner: None, kind: type) -> Operation[P, T]: ...
    @overload
    def __get__(self, owner: SyncCaller, kind: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, owner: AsyncCaller, kind: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, owner: Collector, kind: type) -> Callable[P, None]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        return self if owner is None else bound(owner, self)

    # -- what a caller gives

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """Of the methods made of it: the function's, without the first parameter."""
        whole = inspect.signature(self.function)
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    @functools.cached_property
    def arguments(self) -> dict[str, Parameter]:
        """By their names in a request, in order; `workspace_id`, which every operation has, is not among them."""
        hints = typing.get_type_hints(self.function, include_extras=True)
        return {
            self.sends.get(name, name): _parameter(hints[name], parameter)
            for name, parameter in self.signature.parameters.items()
            if name != WORKSPACE
        }

    def request(self, workspace: str | None, /, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """What is sent for this call; what is None is left out. `workspace`: the caller's, where the call names none.

        Raises TypeError as a call of the function would.
        """
        given = self.signature.bind(*args, **kwargs).arguments
        named = {self.sends.get(name, name): _plain(value) for name, value in given.items() if value is not None}
        if workspace is not None:
            named.setdefault(WORKSPACE, workspace)
        if self.confirms and WORKSPACE in named:
            named.setdefault(self.confirms, named[WORKSPACE])
        return {**self.always, **named}

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of an RPC operation by name, `workspace_id` among them.

        Raises RequestError, whose `field` is the argument that is missing, unknown or wrong.
        """
        accepted = check_arguments(given, self.arguments)
        accepted[WORKSPACE] = check_workspace(accepted.get(WORKSPACE, DEFAULT_WORKSPACE))
        return accepted

    def repeatable(self, request: Mapping[str, Any]) -> bool:
        """Whether this request may be sent again after an answer was lost."""
        return self.reads_only or (self.repeats(request) if callable(self.repeats) else self.repeats)

    # -- what it gets

    @functools.cached_property
    def result_type(self) -> Any:
        """What the function is annotated to return."""
        return typing.get_type_hints(self.function)["return"]

    def read(self, answer: FlowResponse, *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of a flow operation, from the flow's answer."""
        result: T = self.function(answer, *args, **kwargs)
        return result

    async def run(self, services: Services, given: Mapping[str, Any]) -> T:
        """Do what an RPC operation does."""
        result: T = await self.function(services, **given)
        return result

    def to_json(self, result: T) -> Any:
        """The result of an RPC operation as JSON values."""
        if self.shown is not None:
            return self.shown(result)
        return _adapter(self.result_type).dump_python(result, mode="json")

    def from_json(self, value: Any) -> T:
        """The result of an RPC operation, as another process answered it. Raises ValueError."""
        result: T = _adapter(self.result_type).validate_python(value)
        return result


def flow_operation(flow: str, **details: Any) -> Callable[[Callable[Concatenate[FlowResponse, P], T]], Operation[P, T]]:
    """The function reads the answer of the flow. `details`: fields of Operation."""

    def described(function: Callable[Concatenate[FlowResponse, P], T]) -> Operation[P, T]:
        return Operation(function, flow=flow, **details)

    return described


def rpc_operation(
    method: str, **details: Any
) -> Callable[[Callable[Concatenate[Services, P], Awaitable[T]]], Operation[P, T]]:
    """The function does the work, over the services of its process. `details`: fields of Operation."""

    def described(function: Callable[Concatenate[Services, P], Awaitable[T]]) -> Operation[P, T]:
        return Operation(function, method=method, **details)

    return described


# ---------------------------------------------------------------- methods


class SyncCaller:
    """Whoever performs operations and answers their results."""

    def perform(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The operation's result. Raises ToolMemError."""
        raise NotImplementedError


class AsyncCaller:
    """Whoever performs operations and is awaited for their results."""

    async def perform(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The operation's result. Raises ToolMemError."""
        raise NotImplementedError


class Collector:
    """Whoever collects operations, to perform them together later."""

    def perform(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> None:
        """Add one."""
        raise NotImplementedError


def bound(owner: Any, operation: Operation[P, T]) -> Callable[P, Any]:
    """The operation as a function that `owner` performs, with the operation's name, docstring and signature."""

    def method(*args: P.args, **kwargs: P.kwargs) -> Any:
        return owner.perform(operation, *args, **kwargs)

    method.__name__ = method.__qualname__ = operation.name
    method.__doc__ = operation.__doc__
    method.__signature__ = operation.signature  # type: ignore[attr-defined]
    return method


# ---------------------------------------------------------------- types of arguments


def _parameter(hint: Any, parameter: inspect.Parameter) -> Parameter:
    description, more = "", {}
    if typing.get_origin(hint) is typing.Annotated:
        hint, *said = typing.get_args(hint)
        description = next((each for each in said if isinstance(each, str)), "")
        more = {name: value for each in said for name, value in _bounds(each)}
    kinds = _kinds(hint)
    types = list(dict.fromkeys(_json_type(each) for each in kinds))
    required = parameter.default is inspect.Parameter.empty
    if not required and parameter.default is not None:
        more["default"] = parameter.default
    return Parameter(
        type=types[0] if len(types) == 1 else types,
        description=" ".join(description.split()),
        required=required,
        enum=next((list(typing.get_args(each)) for each in kinds if typing.get_origin(each) is typing.Literal), None),
        items=_items(kinds),
        more=more,
    )


def _bounds(said: Any) -> Iterator[tuple[str, int]]:
    """Of pydantic's `Field(ge=..., le=...)`."""
    for each in getattr(said, "metadata", ()):
        for name, attribute in (("minimum", "ge"), ("maximum", "le")):
            if hasattr(each, attribute):
                yield name, getattr(each, attribute)


def _kinds(hint: Any) -> list[Any]:
    """The members of a union, None left out."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [kind for each in typing.get_args(hint) if each is not type(None) for kind in _kinds(each)]
    return [hint]


def _json_type(kind: Any) -> str:
    origin = typing.get_origin(kind) or kind
    if origin is typing.Literal:
        return "string"
    if origin in _JSON_TYPES:
        return _JSON_TYPES[origin]
    is_list = isinstance(origin, type) and issubclass(origin, Sequence)
    return "array" if is_list else "object"


def _items(kinds: Sequence[Any]) -> dict[str, Any] | None:
    """What an array holds, where that is said."""
    inside = [one for each in kinds if _json_type(each) == "array" for one in typing.get_args(each)]
    held = [kind for one in inside for kind in _kinds(one)]
    types = list(dict.fromkeys(_json_type(each) for each in held if each is not Any))
    return {"type": types[0] if len(types) == 1 else types} if types and Any not in held else None


def _plain(value: Any) -> Any:
    """A sequence of any kind as a list; JSON knows no other."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes | list) else value


@functools.cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
