"""What is sent: a flow, or a JSON-RPC method (or a batch of them). `call_of` makes one of an operation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar
from urllib.parse import quote

from toolmem.client.answers import Answer, flow_value, get_value, rpc_value, rpc_values
from toolmem.errors import RequestError
from toolmem.operations.operation import WORKSPACE, Operation

if TYPE_CHECKING:
    from toolmem.models import FlowResponse

P = ParamSpec("P")
T = TypeVar("T")

_RPC_PATH = "/rpc"


@dataclass(frozen=True, slots=True)
class Exchange(Generic[T]):
    """One HTTP request, and how its answer is read."""

    name: str  # in messages
    method: str
    path: str
    content: bytes | None
    read: Callable[[Answer], T]  # raises ToolMemError
    repeatable: bool  # sent twice, it does no more than sent once


class Call(Protocol[T]):
    """A call that has not been sent; `workspace` is the client's, for a call that names none."""

    def exchange(self, workspace: str | None) -> Exchange[T]: ...


@dataclass(frozen=True, slots=True)
class FlowCall(Generic[T]):
    """`POST /<flow>`. What is None in the request is left out."""

    flow: str
    request: Mapping[str, Any]
    read: Callable[[FlowResponse], T]
    repeatable: bool = False

    def exchange(self, workspace: str | None) -> Exchange[T]:
        if not self.flow or not isinstance(self.flow, str) or "/" in self.flow or self.flow in (".", ".."):
            raise RequestError(f"flow: expected the name of a flow, got {self.flow!r}"[:200], field="flow")
        body = _given(self.request, workspace)
        return Exchange(
            self.flow,
            "POST",
            "/" + quote(self.flow, safe=""),
            as_json(body),
            lambda answer: flow_value(answer, self.flow, self.read),
            self.repeatable,
        )


@dataclass(frozen=True, slots=True)
class RpcCall(Generic[T]):
    """One method of `POST /rpc`, or a `GET` of its own address. A parameter that is None is left out."""

    method: str
    params: Mapping[str, Any]
    read: Callable[[Any], T]
    repeatable: bool = False
    address: str = ""

    def exchange(self, workspace: str | None) -> Exchange[T]:
        if self.address:
            name = self.address.strip("/")
            return Exchange(name, "GET", self.address, None, lambda answer: get_value(answer, name, self.read), True)
        return Exchange(
            self.method,
            "POST",
            _RPC_PATH,
            as_json(self.body(1, workspace)),
            lambda answer: rpc_value(answer, self.method, self.read),
            self.repeatable,
        )

    def body(self, request_id: int, workspace: str | None) -> dict[str, Any]:
        return {
            "jsonrpc": "2.0",
            "id": request_id,
            "method": self.method,
            "params": _given(self.params, workspace),
        }


@dataclass(frozen=True, slots=True)
class BatchCall:
    """Several methods in one request, one after the other; a failed one is an error in the list of results."""

    calls: Sequence[RpcCall[Any]]

    def exchange(self, workspace: str | None) -> Exchange[list[Any]]:
        name = f"a batch of {len(self.calls)}"
        return Exchange(
            name,
            "POST",
            _RPC_PATH,
            as_json([call.body(number, workspace) for number, call in enumerate(self.calls, start=1)]),
            lambda answer: rpc_values(answer, name, [call.read for call in self.calls]),
            all(call.repeatable for call in self.calls),
        )


def call_of(operation: Operation[P, T], workspace: str | None, *args: P.args, **kwargs: P.kwargs) -> Call[T]:
    """The call that asks a service for an operation. Raises TypeError as a call of the operation would."""
    request = operation.request(workspace, *args, **kwargs)
    again = operation.repeatable(request)
    if operation.flow:
        return FlowCall(operation.flow, request, lambda answer: operation.read(answer, *args, **kwargs), again)
    return RpcCall(operation.method, request, operation.from_json, again, operation.address)


def _given(request: Mapping[str, Any], workspace: str | None) -> dict[str, Any]:
    given = {name: value for name, value in request.items() if value is not None}
    if workspace is not None:
        given.setdefault(WORKSPACE, workspace)
    return given


def as_json(value: Any) -> bytes:
    """UTF-8; ASCII escapes only where a text holds a lone surrogate, which no UTF-8 can carry. Raises RequestError."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    except RecursionError:
        raise RequestError("the request is nested too deeply for JSON") from None
    except (TypeError, ValueError) as error:
        raise RequestError(f"the request is not JSON: {error}") from None
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":"), default=_plain).encode()


def _plain(value: Any) -> Any:
    """Times, and toolmem's own types, as they travel."""
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(value, "model_dump"):
        # What a record does not say is better not said: the service knows its own defaults.
        return value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise TypeError(f"a value is of type {type(value).__name__}")
