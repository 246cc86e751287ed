"""An operation is a decorated function: its signature is the request, its docstring the
documentation, and what it returns the result. With `flow` it has no body: that flow is run.

    @operation(rpc="memory.tools_list", reads_only=True)
    def tools(memory: Memory) -> list[ToolOverview]:
        \"\"\"Every tool of the workspace with its figures, by name.\"\"\"
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import cached_property, update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

import msgspec
from msgspec import Struct

from toolmem.config.names import hint, lower_first
from toolmem.errors import RequestError
from toolmem.flow.services import Memory

P = ParamSpec("P")
R = TypeVar("R")

OPERATIONS: dict[str, Operation[..., Any]] = {}


class AgentTool(Struct, frozen=True):
    """How an operation is offered to agents over MCP."""

    name: str
    description: str
    hidden: tuple[str, ...] = ()  # parameters that agents are not offered


class Operation(Generic[P, R]):
    """Works as a method of a class with `perform`. Servers call `read` and `run` themselves."""

    def __init__(
        self,
        function: Callable[Concatenate[Memory, P], R],
        *,
        rpc: str = "",
        flow: str = "",
        agent: AgentTool | None = None,
        reads_only: bool = False,
    ) -> None:
        self.function = function
        self.name = function.__name__
        self.rpc = rpc  # the method's name over JSON-RPC; "": not offered
        self.flow = flow  # that is run in place of the function, and answers its result; "": none
        self.agent = agent
        self.reads_only = reads_only
        self.__doc__ = inspect.getdoc(function)

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature of the function without its memory."""
        whole = inspect.signature(self.function, eval_str=True)
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    @cached_property
    def request(self) -> type[Struct]:
        """The request as a Struct. Unknown fields are refused."""
        fields: list[Any] = [
            (each.name, each.annotation)
            if each.default is each.empty
            else (each.name, each.annotation, each.default)
            for each in self.signature.parameters.values()
        ]
        return msgspec.defstruct(
            f"{self.name}_request", fields, kw_only=True, forbid_unknown_fields=True
        )

    def read(self, arguments: Mapping[str, Any]) -> Struct:
        """Check a request; None counts as left out. Raises RequestError."""
        present = {key: value for key, value in arguments.items() if value is not None}
        try:
            return msgspec.convert(present, self.request)
        except msgspec.ValidationError as error:
            raise _explained(error, self.request.__struct_fields__) from None

    def run(self, memory: Memory, request: Struct) -> R:
        """Run the operation in this workspace."""
        arguments = {name: getattr(request, name) for name in request.__struct_fields__}
        if not self.flow:
            function: Callable[..., R] = self.function
            return function(memory, **arguments)
        # The params of the flow's ops count where a flag is left out.
        given = {name: None if each is False else each for name, each in arguments.items()}
        response = memory.run_flow(self.flow, **given)
        answer = {"answer": response.answer, "success": response.success, **response.metadata}
        result: R = msgspec.convert(answer, self.signature.return_annotation)
        return result

    def schema(self, hidden: Collection[str] = ()) -> dict[str, Any]:
        """JSON Schema of the request, without the parameters in `hidden`."""
        (_,), components = msgspec.json.schema_components([self.request])
        schema: dict[str, Any] = components[self.request.__name__]
        properties = {k: v for k, v in schema["properties"].items() if k not in hidden}
        return {**schema, "properties": properties}

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...

    @overload
    def __get__(self, owner: AsyncOwner, kind: type) -> Callable[P, Awaitable[R]]: ...

    @overload
    def __get__(self, owner: Owner, kind: type) -> Callable[P, R]: ...

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self

        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return owner.perform(self, self.signature.bind(*args, **kwargs).arguments)

        update_wrapper(method, self.function)
        method.__signature__ = self.signature  # type: ignore[attr-defined]
        return method


class Owner(Protocol):
    """A class that has operations as methods."""

    def perform(self, operation: Any, arguments: Mapping[str, Any]) -> Any: ...


class AsyncOwner(Owner, Protocol):
    """Wraps a plain memory; its `perform` is a coroutine that works in a thread."""

    plain: Any


def operation(
    *, rpc: str = "", flow: str = "", agent: AgentTool | None = None, reads_only: bool = False
) -> Callable[[Callable[Concatenate[Memory, P], R]], Operation[P, R]]:
    """Decorator: describe an operation and add it to OPERATIONS."""

    def describe(function: Callable[Concatenate[Memory, P], R]) -> Operation[P, R]:
        described = Operation(function, rpc=rpc, flow=flow, agent=agent, reads_only=reads_only)
        if described.name in OPERATIONS:
            raise TypeError(f"there is an operation {described.name!r} already")
        OPERATIONS[described.name] = described
        return described

    return describe


_UNKNOWN = re.compile(r"unknown field `(.*)`")
_MISSING = re.compile(r"missing required field `(.*)`")


def _explained(error: msgspec.ValidationError, known: tuple[str, ...]) -> RequestError:
    """Reword msgspec's message, and name the field that it is about."""
    message = str(error)
    if found := _UNKNOWN.search(message):
        return RequestError(f"{found[1]}: unknown ({hint(found[1], known)})", found[1])
    if found := _MISSING.search(message):
        return RequestError(f"{found[1]}: missing", found[1])
    what, _, path = message.partition(" - at `$")
    place = path.rstrip("`").lstrip(".")
    field = re.split(r"[.\[]", place)[0]
    return RequestError(f"{place}: {lower_first(what)}", field)
