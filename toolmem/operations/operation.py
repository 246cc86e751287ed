"""An operation is a decorated function.

Its signature is the request, its docstring the documentation, and its return type the result:

    @operation(rpc="memory.tool_rule_list", reads_only=True)
    def tool_rule_list(memory: Memory, tool_name: Annotated[str, "The tool."]) -> list[Rule]:
        \"\"\"Return the rules of a tool by priority.\"\"\"

The decorated name is a method, which `Methods` adds to memories and clients. A function with `ops`
has no body: its flow is run, which consists of these ops unless a configuration changes it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, wraps
from inspect import Parameter
from typing import Annotated, Any, Concatenate, ParamSpec, Protocol, TypeVar, get_type_hints

import msgspec
from msgspec import Meta, Struct

from toolmem.config.check import explain
from toolmem.config.names import hint
from toolmem.errors import RequestError, wrong
from toolmem.flow.checks import check_flow
from toolmem.flow.op import Op, Sequential, known_ops
from toolmem.flow.runner import OLD_NAMES
from toolmem.flow.services import Memory

P = ParamSpec("P")
R = TypeVar("R")
ConversationId = Annotated[str | None, "The id of the conversation."]
Count = Annotated[int, Meta(ge=1)]

OPERATIONS: dict[str, Operation] = {}


class AgentTool(Struct, frozen=True):
    """How an operation is offered to agents over MCP."""

    name: str
    description: str
    hidden: tuple[str, ...] = ()  # parameters that agents are not offered


class Operation:
    """Reads requests and runs them. Servers call `read`, then `run`; methods call `bind` first."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        rpc: str = "",
        flow: str = "",
        ops: tuple[type[Op], ...] = (),
        agent: AgentTool | None = None,
        reads_only: bool = False,
    ) -> None:
        """Raises TypeError unless the parameters of the function are the keys that the ops read."""
        self.function = function
        self.name = function.__name__
        self.rpc = rpc  # the method's name over JSON-RPC; "": not offered
        self.flow = flow  # the name of the flow with the same request; "": none
        self.ops = ops  # the ops of that flow, which do the work; (): the function does it
        self.agent = agent
        self.reads_only = reads_only
        self.__doc__ = inspect.getdoc(function)
        whole = inspect.signature(function, eval_str=True)
        self.signature = whole.replace(parameters=list(whole.parameters.values())[1:])  # no memory
        if ops:
            self._check_keys(ops)

    def _check_keys(self, ops: tuple[type[Op], ...]) -> None:
        names = self.signature.parameters
        problems = check_flow(Sequential(*(op() for op in ops)), names, known_ops())
        read = {key for op in ops for key in (*op.reads, *op.optional)}
        problems += [f"no op reads {name!r}" for name in names if name not in read]
        if problems:
            raise TypeError(f"operation {self.name!r}: {'; '.join(problems)}")

    @property
    def summary(self) -> str:
        """The first paragraph of its documentation."""
        return (self.__doc__ or "").partition("\n\n")[0]

    @cached_property
    def request(self) -> type[Struct]:
        """The type of its requests: a Struct with a field for each parameter, and no other."""
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
        """Make a request from arguments. None counts as missing. Raises RequestError."""
        present = {key: value for key, value in arguments.items() if value is not None}
        try:
            return msgspec.convert(present, self.request)
        except msgspec.ValidationError as error:
            raise _explained(error, self.request) from None

    def run(self, memory: Memory, request: Struct) -> Any:
        """Run a request, as `read` returned it, in the workspace `memory`. Returns its result."""
        arguments = {name: getattr(request, name) for name in request.__struct_fields__}
        if not self.ops:
            return self.function(memory, **arguments)
        # A flag that is False leaves the choice to the params of the flow's ops.
        given = {name: None if each is False else each for name, each in arguments.items()}
        response = memory.run_flow(self.flow, **given)
        answer = {"answer": response.answer, "success": response.success, **response.metadata}
        return msgspec.convert(answer, self.signature.return_annotation)

    def bind(self, *args: Any, **kwargs: Any) -> Mapping[str, Any]:
        """Return the arguments of a Python call by name. Raises TypeError if they do not fit."""
        known = self.signature.parameters
        given = {}
        for name, value in kwargs.items():
            new = name if name in known else OLD_NAMES.get(name, name)
            if new not in known:
                raise TypeError(f"{self.name}() has no argument {name!r} ({hint(name, known)})")
            if new != name and new in kwargs:
                raise TypeError(f"{self.name}(): {name}: `{new}` says the same; give one of them")
            given[new] = value
        try:
            return self.signature.bind(*args, **given).arguments
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None

    def schema(self, hidden: Collection[str] = ()) -> dict[str, Any]:
        """JSON Schema of the request, without the parameters in `hidden`."""
        (_,), components = msgspec.json.schema_components([self.request])
        schema: dict[str, Any] = components[self.request.__name__]
        properties = {
            name: {"description": description_of(each), **schema["properties"][name]}
            for name, each in self.signature.parameters.items()
            if name not in hidden
        }
        return {**schema, "properties": properties}


class Owner(Protocol):
    """A class that has operations as methods."""

    def perform(self, operation: Any, arguments: Mapping[str, Any]) -> Any: ...


def operation(
    *,
    rpc: str = "",
    flow: str = "",
    ops: tuple[type[Op], ...] = (),
    agent: AgentTool | None = None,
    reads_only: bool = False,
) -> Callable[[Callable[Concatenate[Memory, P], R]], Callable[Concatenate[Owner, P], R]]:
    """Decorator: add the function to OPERATIONS, and make it a method of ToolMem and Workspace.

    With `ops`, these do the work as the flow named `flow`, and the function's body never runs.
    The other options are those of `Operation`.
    """

    def describe(function: Callable[Concatenate[Memory, P], R]) -> Callable[..., R]:
        described = Operation(
            function, rpc=rpc, flow=flow, ops=ops, agent=agent, reads_only=reads_only
        )
        if described.name in OPERATIONS:
            raise TypeError(f"there is an operation {described.name!r} already")
        OPERATIONS[described.name] = described

        @wraps(function)
        def method(self: Owner, *args: P.args, **kwargs: P.kwargs) -> R:
            result: R = self.perform(described, described.bind(*args, **kwargs))
            return result

        _document(method, described)
        return method

    return describe


def _document(method: Any, operation: Operation) -> None:
    """Give a method the signature of its operation, and a docstring with the arguments."""
    parameters = operation.signature.parameters.values()
    answer = operation.signature.return_annotation
    method.__annotations__ = {**{p.name: p.annotation for p in parameters}, "return": answer}
    types = method.__annotations__ = get_type_hints(method)  # without descriptions
    own = [p.replace(annotation=types[p.name]) for p in parameters]
    owner = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    method.__signature__ = inspect.Signature([owner, *own], return_annotation=answer)
    arguments = [f"    {p.name}: {description_of(p)}" for p in parameters]
    lines = ["", "Args:", *arguments] if arguments else []
    method.__doc__ = "\n".join([operation.__doc__ or "", *lines])


def description_of(parameter: Parameter) -> str:
    """Return a parameter's text, such as "Again." of `Annotated[bool, "Again."]`; "" if none."""
    metadata = getattr(parameter.annotation, "__metadata__", ())
    return next((each for each in metadata if isinstance(each, str)), "")


_UNKNOWN = re.compile(r"unknown field `(.*)`")
_MISSING = re.compile(r"missing required field `(.*)`")


def _explained(error: msgspec.ValidationError, request: type[Struct]) -> RequestError:
    """Reword msgspec's message, and name the field that it is about."""
    message = str(error)
    if found := _UNKNOWN.search(message):
        return wrong(found[1], f"unknown ({hint(found[1], request.__struct_fields__)})")
    if found := _MISSING.search(message):
        return wrong(found[1], "missing")
    what, _, path = message.partition(" - at `$")
    place = path.rstrip("`").lstrip(".")
    field = re.split(r"[.\[]", place)[0]
    return RequestError(f"{place}: {explain(what, get_type_hints(request).get(field))}", field)
