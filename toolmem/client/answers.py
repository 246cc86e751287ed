"""Reads what a service answered: a value, or the `toolmem.errors` exception that the same call would raise there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from toolmem import errors
from toolmem.errors import (
    LiftProposed,
    ModelError,
    Refused,
    ReplyUnreadable,
    RequestError,
    RunStopped,
    ServiceDenied,
    ServiceError,
    ServiceUnreachable,
    StoreError,
    ToolMemError,
)

if TYPE_CHECKING:
    from toolmem.models import FlowResponse

T = TypeVar("T")

TOKEN_VARIABLE = "TOOLMEM_TOKEN"
_SHOWN = 200  # characters of a foreign answer
_BY_STATUS: dict[int, type[ToolMemError]] = {502: ModelError, 503: StoreError}


class HttpAnswer(NamedTuple):
    """One HTTP answer. `url` is the client's, for messages."""

    status: int
    content: bytes
    url: str
    token_sent: bool

    def body(self, what: str) -> dict[str, Any]:
        """The JSON object of a good answer. Raises ToolMemError."""
        body = self._json()
        if self.status == 200 and isinstance(body, dict):
            return body
        raise self.error(what, body)

    def values(self, what: str) -> list[Any]:
        """The JSON array of a good answer to a batch. Raises ToolMemError."""
        body = self._json()
        if self.status == 200 and isinstance(body, list):
            return body
        if self.status == 200 and isinstance(body, dict) and "error" in body:
            raise _rpc_error(body["error"])
        raise self.error(what, body)

    def _json(self) -> Any:
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError):
            return None

    def error(self, what: str, body: Any) -> ToolMemError:
        """What went wrong, by status and the body's own words."""
        if self.status == 401:
            return ServiceDenied(self._denied())
        said = body.get("answer") if isinstance(body, dict) else None
        if not isinstance(said, str) or body.get("success") is not False:
            return ServiceError(self._foreign(what))
        if self.status == 403:
            return ServiceDenied(said)
        told = _first_error(body)
        if told.get("type") == "Busy":  # refused before anything was begun
            return ServiceUnreachable(f"{self.url} is busy: {said}", sent=False)
        if told.get("type") == "Stopping":
            return ServiceUnreachable(f"{self.url}: {said}", sent=True)
        if told.get("type") == LiftProposed.__name__:
            return _proposed(said, told)
        if named := _named(told.get("type"), said):
            return named
        if self.status in _BY_STATUS:
            return _BY_STATUS[self.status](said)
        if 400 <= self.status < 500:
            field = told.get("field")
            return RequestError(said, field=field if isinstance(field, str) else None)
        return ServiceError(f"{self.url} failed at {what} (status {self.status}): {said}")

    def _denied(self) -> str:
        remedy = f"set {TOKEN_VARIABLE}, or give `token`, to what the service was started with"
        if self.token_sent:
            return f"{self.url} does not accept the token that was sent: {remedy}"
        return f"{self.url} asks for a token: {remedy}"

    def _foreign(self, what: str) -> str:
        shown = self.content[:_SHOWN].decode("utf-8", "replace")
        return (
            f"{self.url} answered {what} with status {self.status} and a body that is not toolmem's: {shown!r}; "
            "is this the address of `toolmem serve`?"
        )


def _first_error(body: dict[str, Any]) -> dict[str, Any]:
    metadata = body.get("metadata")
    told = metadata.get("errors") if isinstance(metadata, dict) else None
    return told[0] if isinstance(told, list) and told and isinstance(told[0], dict) else {}


def _proposed(said: str, told: Mapping[str, Any]) -> LiftProposed:
    return LiftProposed(said, rule_id=str(told.get("rule_id", "")), code=str(told.get("code", "")))


def _named(kind: Any, said: str) -> ToolMemError | None:
    """The error that the service gave this name, where a message alone makes it."""
    found = getattr(errors, str(kind), None)
    if not isinstance(found, type) or not issubclass(found, (Refused, StoreError, ModelError, RunStopped)):
        return None
    return None if issubclass(found, (RequestError, ReplyUnreadable)) else found(said)


def flow_value(answer: HttpAnswer, flow: str, read: Callable[[FlowResponse], T]) -> T:
    """Partial results and things not found are answers (`success` is false), not errors."""
    from toolmem.models import FlowResponse

    body = answer.body(flow)
    if not isinstance(body.get("answer"), str) or not isinstance(body.get("success"), bool):
        raise answer.error(flow, None)
    with _understood(answer, flow):
        return read(FlowResponse.model_validate(body))


def get_value(answer: HttpAnswer, name: str, read: Callable[[Any], T]) -> T:
    """The value in the answer to a plain GET. Raises ToolMemError."""
    body = answer.body(name)
    with _understood(answer, name):
        return read(body)


def rpc_value(answer: HttpAnswer, method: str, read: Callable[[Any], T]) -> T:
    """The result in the answer of a JSON-RPC method. Raises ToolMemError."""
    body = answer.body(method)
    if "error" in body:
        raise _rpc_error(body["error"])
    if "result" not in body:
        raise answer.error(method, None)
    with _understood(answer, method):
        return read(body["result"])


def rpc_values(answer: HttpAnswer, name: str, readers: Sequence[Callable[[Any], Any]]) -> list[Any]:
    """In the order of the calls, whatever order they came in. Raises where the batch as a whole was refused."""
    by_id = {str(each.get("id")): each for each in answer.values(name) if isinstance(each, dict)}
    results: list[Any] = []
    for number, read in enumerate(readers, start=1):
        each = by_id.get(str(number), {"error": {"message": f"request {number} of the batch was not answered"}})
        if "error" in each:
            results.append(_rpc_error(each["error"]))
        else:
            with _understood(answer, name):
                results.append(read(each.get("result")))
    return results


@contextmanager
def _understood(answer: HttpAnswer, name: str) -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ServiceError(
            f"{answer.url} answered {name} with values that this client does not know ({type(error).__name__}); "
            "are client and service of one version?"
        ) from error


def _rpc_error(problem: Any) -> ToolMemError:
    told = problem if isinstance(problem, dict) else {}
    code, message = told.get("code"), str(told.get("message", problem))
    data = told.get("data")
    parameter = data.get("parameter") if isinstance(data, dict) else None
    if code == -32602:
        return RequestError(message.removeprefix("Invalid params: "), field=parameter)
    if code == -32601:
        return RequestError(message, field="method")
    if code == -32000 and isinstance(data, dict) and data.get("reason") == "proposed":
        return _proposed(message.removeprefix("Server error: "), data)
    if code == -32000:
        return StoreError(message.removeprefix("Server error: "))
    if code in (-32700, -32600):
        return RequestError(message)
    return ServiceError(message)
