"""The requests to a service: a flow, a JSON-RPC method, or a batch of them. `call_of` makes one of an operation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar
from urllib.parse import quote

from toolmem.client.answers import HttpAnswer, flow_value, get_value, rpc_value, rpc_values
from toolmem.errors import RequestError
from toolmem.light_models import ToolCall
from toolmem.operations.operation import DEFAULT_WORKSPACE, WORKSPACE, Operation

if TYPE_CHECKING:
    from toolmem.models import FlowResponse

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServiceRequest(Generic[T]):
    """One HTTP request, and how its answer is read."""

    name: str  # in messages
    method: str
    path: str
    body: Any  # None: there is none
    read: Callable[[HttpAnswer], T]  # raises ToolMemError
    repeatable: bool = False  # sent twice, it does no more than sent once
    value: Callable[[Any], T] | None = None  # of a JSON-RPC method: reads its result alone

    @property
    def content(self) -> bytes | None:
        """Raises RequestError."""
        return None if self.body is None else as_json(self.body)


def flow_call(
    flow: str,
    request: Mapping[str, Any],
    read: Callable[[FlowResponse], T],
    workspace: str | None,
    repeatable: bool = False,
) -> ServiceRequest[T]:
    """`POST /<flow>`. `workspace`: the client's, for a request that names none."""
    if not flow or not isinstance(flow, str) or "/" in flow or flow in (".", ".."):
        raise RequestError(f"flow: expected the name of a flow, got {flow!r}"[:200], field="flow")
    path, body = "/" + quote(flow, safe=""), _given(request, workspace)
    return ServiceRequest(flow, "POST", path, body, lambda answer: flow_value(answer, flow, read), repeatable)


def rpc_call(
    method: str,
    params: Mapping[str, Any],
    read: Callable[[Any], T],
    workspace: str | None,
    repeatable: bool = False,
) -> ServiceRequest[T]:
    """One method of `POST /rpc`."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": _given(params, workspace)}
    return ServiceRequest(
        method, "POST", "/rpc", body, lambda answer: rpc_value(answer, method, read), repeatable, read
    )


def batch_call(calls: Sequence[ServiceRequest[Any]]) -> ServiceRequest[list[Any]]:
    """Several methods in one request, one after the other; a failed one is an error in the list of results."""
    name = f"a batch of {len(calls)}"
    bodies = [{**call.body, "id": number} for number, call in enumerate(calls, start=1)]
    readers = [call.value or as_it_is for call in calls]
    again = all(call.repeatable for call in calls)
    return ServiceRequest(name, "POST", "/rpc", bodies, lambda answer: rpc_values(answer, name, readers), again)


def call_of(operation: Operation[P, T], workspace: str | None, *args: P.args, **kwargs: P.kwargs) -> ServiceRequest[T]:
    """The call that asks a service for an operation. Raises TypeError as a call of the operation would."""
    request = operation.request(workspace or DEFAULT_WORKSPACE, *args, **kwargs)
    again, read = operation.repeatable(request), operation.from_json
    if operation.flow and not operation.method:
        return flow_call(operation.flow, request, lambda answer: operation.read(answer, *args, **kwargs), None, again)
    if operation.address:
        name = operation.name
        return ServiceRequest(name, "GET", operation.address, None, lambda answer: get_value(answer, name, read), again)
    return rpc_call(operation.method, request, read, None, again)


def _given(request: Mapping[str, Any], workspace: str | None) -> dict[str, Any]:
    given = {name: value for name, value in request.items() if value is not None}
    return given if workspace is None else {WORKSPACE: workspace, **given}


def as_it_is(value: T) -> T:
    """The value, for answers that need no reading."""
    return value


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
    if isinstance(value, ToolCall):
        return value.record()
    if hasattr(value, "model_dump"):
        # What a record does not say is better not said: the service knows its own defaults.
        return value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise TypeError(f"a value is of type {type(value).__name__}")
