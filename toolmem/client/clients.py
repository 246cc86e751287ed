"""Client and AsyncClient: the same methods over two kinds of connection."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar
from urllib.parse import urlsplit

from toolmem.client.answers import TOKEN_VARIABLE, HttpAnswer
from toolmem.client.requests import ServiceRequest, as_it_is, batch_call, call_of, flow_call, rpc_call
from toolmem.client.retrying import Arrival, failures_named, policy
from toolmem.errors import ClientClosed, RequestError
from toolmem.operations import tool_rules
from toolmem.operations.methods import AsyncRules, Methods, Rules
from toolmem.operations.operation import AsyncCaller, Collector, Operation, SyncCaller
from toolmem.readers.loopback import is_loopback

if TYPE_CHECKING:
    import httpx

    from toolmem.models import FlowResponse


P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8002"
CONNECT_TIMEOUT = 5.0  # seconds
# An idle connection is given up long before the service would close it (600 s) and well within what proxies keep:
# a request must not meet the moment in which the other side hangs up.
IDLE = 3.0  # seconds
MAX_CONNECTIONS = 100
TIMEOUT = 300.0  # seconds; a flow that asks a model for many calls takes its time
RETRIES = 2


class _Configured(Methods):
    """Raises RequestError for settings that cannot be used. Nothing is connected before the first call."""

    def __init__(
        self,
        base_url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        workspace_id: str | None = None,
        timeout: float | None = TIMEOUT,
        retries: int = RETRIES,
    ) -> None:
        self.base_url = _checked_url(base_url)
        self._timeout = _checked_timeout(timeout)
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise RequestError(f"retries: expected a whole number from 0, got {retries!r}", field="retries")
        self._retries = retries
        self.workspace_id = workspace_id
        token = _checked_token(_own_token(self.base_url) if token is None else token)
        self._sends_token = bool(token)
        self._connect(_http_options(self.base_url, token, self._timeout))

    def _connect(self, options: dict[str, Any]) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r}, workspace_id={self.workspace_id!r})"

    def _check_open(self, is_closed: bool, request: ServiceRequest[Any]) -> None:
        if is_closed:
            raise ClientClosed(f"{request.name}: this {type(self).__name__} is closed; make a new one")

    def _answer(self, response: httpx.Response) -> HttpAnswer:
        return HttpAnswer(response.status_code, response.content, self.base_url, self._sends_token)


class Client(_Configured, SyncCaller):
    """A `toolmem serve` as Python calls; threads may share one.

        with Client(workspace_id="team") as client:
            client.add([{"tool_name": "search", "input": {"query": "rain"}, "output": "[]"}])
            client.summarize("search")
            print(client.retrieve("search")[0].content)

    `token`: None takes TOOLMEM_TOKEN from the environment, else, for a service on this machine, this user's own.
    `workspace_id` is used where a call names none. `timeout`: seconds without a sign of the service, None for ever.
    `retries`: further attempts, made only where a request did not reach the service or does no more when it is done
    twice.

    Raises ServiceUnreachable, ServiceDenied or ServiceError, ClientClosed after `close`, and what the service raised
    there: RequestError with its `field`, NotProvided, StoreError, ModelError. Partial results and things not found are
    answers: `success` is false.
    """

    def _connect(self, options: dict[str, Any]) -> None:
        import httpx

        self._http = httpx.Client(**options)

    def batch(self) -> Batch:
        """Rule calls in one request."""
        return Batch(self)

    @property
    def rules(self) -> Rules:
        """The methods of rules: `client.rules.put(...)`."""
        return Rules(self)

    def perform(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask the service for the operation's result. Raises ToolMemError."""
        return self._send(call_of(operation, self.workspace_id, *args, **kwargs))

    def run(self, flow: str, /, **request: Any) -> FlowResponse:
        """Run a flow by name, one of your own configuration as well. Never sent twice once it may have arrived."""
        return self._send(flow_call(flow, request, as_it_is, self.workspace_id))

    def call(self, method: str, /, **params: Any) -> Any:
        """Any JSON-RPC method by name. Never sent twice once it may have arrived."""
        return self._send(rpc_call(method, params, as_it_is, self.workspace_id))

    def _send(self, request: ServiceRequest[T]) -> T:
        from tenacity import Retrying

        value: T = Retrying(**policy(request, self._retries))(self._attempt, request, Arrival())
        return value

    def _attempt(self, request: ServiceRequest[T], arrival: Arrival) -> T:
        self._check_open(self._http.is_closed, request)
        with arrival.attempt():
            with failures_named(request, self.base_url, self._timeout):
                response = self._http.request(request.method, self.base_url + request.path, content=request.content)
            return request.read(self._answer(response))

    def close(self) -> None:
        """Close the connections; a call after this raises ClientClosed."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(_Configured, AsyncCaller):
    """As `Client`, for async code; use one in one event loop.

    async with AsyncClient(workspace_id="team") as client:
        memories = await client.retrieve("search")
    """

    def _connect(self, options: dict[str, Any]) -> None:
        import httpx

        self._http = httpx.AsyncClient(**options)

    def batch(self) -> AsyncBatch:
        """Rule calls in one request."""
        return AsyncBatch(self)

    @property
    def rules(self) -> AsyncRules:
        """The methods of rules: `await client.rules.put(...)`."""
        return AsyncRules(self)

    async def perform(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask the service for the operation's result. Raises ToolMemError."""
        return await self._send(call_of(operation, self.workspace_id, *args, **kwargs))

    async def run(self, flow: str, /, **request: Any) -> FlowResponse:
        """Run a flow by name, one of your own configuration as well. Never sent twice once it may have arrived."""
        return await self._send(flow_call(flow, request, as_it_is, self.workspace_id))

    async def call(self, method: str, /, **params: Any) -> Any:
        """Any JSON-RPC method by name. Never sent twice once it may have arrived."""
        return await self._send(rpc_call(method, params, as_it_is, self.workspace_id))

    async def _send(self, request: ServiceRequest[T]) -> T:
        from tenacity import AsyncRetrying

        value: T = await AsyncRetrying(**policy(request, self._retries))(self._attempt, request, Arrival())
        return value

    async def _attempt(self, request: ServiceRequest[T], arrival: Arrival) -> T:
        self._check_open(self._http.is_closed, request)
        with arrival.attempt():
            with failures_named(request, self.base_url, self._timeout):
                response = await self._http.request(
                    request.method, self.base_url + request.path, content=request.content
                )
            return request.read(self._answer(response))

    async def close(self) -> None:
        """Close the connections; a call after this raises ClientClosed."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Collected(Collector):
    put_rule = tool_rules.put_rule
    get_rule = tool_rules.get_rule
    list_rules = tool_rules.list_rules
    delete_rule = tool_rules.delete_rule
    rules_for_prompt = tool_rules.rules_for_prompt
    rules_json = tool_rules.rules_json

    def __init__(self, workspace: str | None) -> None:
        self._workspace = workspace
        self._calls: list[ServiceRequest[Any]] = []

    def perform(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> None:
        """Add a call."""
        self._calls.append(call_of(operation, self._workspace, *args, **kwargs))

    def call(self, method: str, /, **params: Any) -> None:
        """Add any JSON-RPC method by name."""
        self._calls.append(rpc_call(method, params, as_it_is, self._workspace))

    def __len__(self) -> int:
        return len(self._calls)


class Batch(_Collected):
    """Rule calls that go in one request; the service carries them out one after the other.

    batch = client.batch()
    batch.put_rule("send_email", "never email Sarah", priority="critical")
    batch.rules_for_prompt()
    rule, block = batch.results()
    """

    def __init__(self, client: Client) -> None:
        super().__init__(client.workspace_id)
        self._client = client

    def results(self) -> list[Any]:
        """Send them. One result per call, in order: its value, or the ToolMemError that it ended in."""
        return self._client._send(batch_call(self._calls)) if self._calls else []


class AsyncBatch(_Collected):
    """As `Batch`; `results` is awaited."""

    def __init__(self, client: AsyncClient) -> None:
        super().__init__(client.workspace_id)
        self._client = client

    async def results(self) -> list[Any]:
        """Send them. One result per call, in order: its value, or the ToolMemError that it ended in."""
        return await self._client._send(batch_call(self._calls)) if self._calls else []


# ---------------------------------------------------------------- settings


def _http_options(url: str, token: str, timeout: float | None) -> dict[str, Any]:
    """For httpx.Client and httpx.AsyncClient."""
    import httpx

    address = urlsplit(url)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return {
        "headers": headers,
        "timeout": httpx.Timeout(
            timeout, connect=CONNECT_TIMEOUT if timeout is None else min(CONNECT_TIMEOUT, timeout)
        ),
        "limits": httpx.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=IDLE),
        # What runs on this machine is not reached through a proxy, which would also see the token.
        "trust_env": not is_loopback(address.hostname or ""),
        "verify": address.scheme == "https",  # without TLS there is nothing to verify, and loading roots takes time
        "follow_redirects": False,
    }


def _checked_url(given: str) -> str:
    address = urlsplit(given) if isinstance(given, str) else urlsplit("")
    if address.scheme not in ("http", "https") or not address.hostname:
        raise RequestError(
            f"base_url: expected an address such as {DEFAULT_URL}, got {str(given)[:100]!r}", field="base_url"
        )
    if address.username is not None or address.query or address.fragment:
        raise RequestError(
            "base_url: expected scheme, host, port and path alone; a token goes into `token`", field="base_url"
        )
    return given.rstrip("/")


def _own_token(url: str) -> str:
    """From the environment; of a service on this machine, from the user's state folder."""
    if told := os.environ.get(TOKEN_VARIABLE):
        return told
    if not is_loopback(urlsplit(url).hostname or ""):
        return ""
    from toolmem.config.service_token import read_service_token

    return read_service_token()


def _checked_token(token: str | None) -> str:
    token = (token or "").strip()
    if not all("!" <= character <= "~" for character in token):
        raise RequestError(
            f"token (or {TOKEN_VARIABLE}): holds a character that no HTTP header can carry", field="token"
        )
    return token


def _checked_timeout(timeout: float | None) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
        raise RequestError(f"timeout: expected seconds above 0, or None, got {timeout!r}", field="timeout")
    return float(timeout)
