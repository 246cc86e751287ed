"""Client and AsyncClient: the methods of ToolMem over HTTP, answered by `toolmem serve`.

with Client(workspace="team") as client:
    client.add([{"tool_name": "search", "input": {"q": "rain"}, "output": "[]"}])
    print(client.guidance("search").text)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self, cast
from urllib.parse import urlsplit

import httpx
import msgspec

from toolmem.config.environment import is_local
from toolmem.errors import (
    Conflict,
    ModelError,
    RequestError,
    ServiceError,
    StoreClosed,
    StoreUnavailable,
    ToolMemError,
)
from toolmem.flow.runner import with_new_names
from toolmem.formats.chat import change_texts
from toolmem.models.decisions import Decision
from toolmem.models.tools import FlowResponse
from toolmem.operations.methods import AsyncMethods, Methods, signature_from
from toolmem.operations.operation import Operation
from toolmem.operations.results import NEXT_HEADER, Calls, Rows
from toolmem.text.forms import encodable

DEFAULT_URL = "http://127.0.0.1:8002"
TIMEOUT = 300.0  # seconds without a byte from the service, which may wait for a model
CONNECT_TIMEOUT = 5.0  # seconds
RETRIES = 2  # attempts to connect; a request that may have arrived is never sent again
TOKEN_VARIABLE = "TOOLMEM_TOKEN"


class Client(Methods):
    """A connection to `toolmem serve`. Threads may share one.

    `token`: None takes TOOLMEM_TOKEN from the environment. Methods raise the errors that the
    service raised, and ServiceError where it was not reached or refused the request.
    """

    def __init__(
        self,
        base_url: str = DEFAULT_URL,
        *,
        workspace: str = "default",
        token: str | None = None,
        timeout: float | None = TIMEOUT,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RequestError(f"base_url: expected http://..., got {base_url!r}", "base_url")
        self.base_url = base_url.rstrip("/")
        self.workspace_name = workspace
        token = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
        self._http: httpx.Client | None = httpx.Client(
            base_url=self.base_url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(timeout, connect=CONNECT_TIMEOUT),
            transport=httpx.HTTPTransport(retries=RETRIES) if is_local(base_url) else None,
            trust_env=not is_local(base_url),
        )

    def workspace(self, name: str) -> Client:
        """Return a client for another workspace of the service, over the same connections."""
        other = object.__new__(Client)
        other.__dict__.update(self.__dict__, workspace_name=name)
        return other

    def perform(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        """Let the service run an operation, and return what its method returns."""
        operation.read(arguments)  # an invalid request is not sent
        value, headers = self._post(f"operations/{operation.name}", arguments)
        kind = operation.signature.return_annotation
        if kind is Decision:  # answered as the flow `check_tool_call` answers it
            value = value["metadata"]["decision"]
        found = msgspec.convert(value, kind, dec_hook=Rows.read)
        if isinstance(found, Calls) and NEXT_HEADER in headers:
            found.next = int(headers[NEXT_HEADER])
        return found

    def run(self, flow: str, /, **request: Any) -> FlowResponse:
        """Run a flow by name. Raises RequestError for an operation that is no flow."""
        value, _ = self._post(flow, request)
        if not isinstance(value, dict) or "metadata" not in value:
            raise RequestError(f"{flow!r} is no flow; it is the method {flow} of a client", "flow")
        return msgspec.convert(value, FlowResponse)

    def health(self) -> dict[str, Any]:
        """The answer of `/health`."""
        return cast(dict[str, Any], self._send("GET", "/health", None)[0])

    def _post(self, name: str, arguments: Mapping[str, Any]) -> tuple[Any, httpx.Headers]:
        body = {"workspace": self.workspace_name, **with_new_names(arguments)}
        try:
            content = msgspec.json.encode(body)
        except UnicodeEncodeError:
            content = msgspec.json.encode(change_texts(msgspec.to_builtins(body), encodable))
        return self._send("POST", f"/{name}", content)

    def _send(self, method: str, path: str, body: bytes | None) -> tuple[Any, httpx.Headers]:
        """Send a request. Returns the decoded answer and its headers."""
        if self._http is None:
            raise StoreClosed(f"{path}: this client is closed; make a new one")
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            response = self._http.request(method, path, content=body, headers=headers)
        except httpx.HTTPError as error:
            problem = f"{_without_credentials(self.base_url)}: {type(error).__name__}"
            raise ServiceError(f"{problem}; is `toolmem serve` running there?") from None
        try:
            value = msgspec.json.decode(response.content)
        except msgspec.DecodeError:
            value = {"error": response.text[:300]}
        if response.status_code >= 400:
            raise _error_from(response.status_code, value)
        return value, response.headers

    def close(self) -> None:
        """Close the connections. Later calls raise StoreClosed."""
        if self._http is not None:
            self._http.close()
        self._http = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(AsyncMethods):
    """A Client with coroutines; its requests run in threads. Takes the arguments of Client."""

    @signature_from(Client)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(Client(*args, **kwargs))


def _without_credentials(url: str) -> str:
    """The URL without user, password and query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _error_from(status: int, answer: Any) -> ToolMemError:
    """The error that the service raised, by the status of its answer."""
    body = answer if isinstance(answer, dict) else {}
    message = str(body.get("error", "")) or f"HTTP {status}"
    match status:
        case 422:
            return RequestError(message, str(body.get("field", "")))
        case 409:
            return Conflict(message)
        case 502:
            return ModelError(message)
        case 503:
            return StoreUnavailable(message)
    return ServiceError(message, status)
