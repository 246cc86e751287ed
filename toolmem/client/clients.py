"""Client and AsyncClient: the same methods over two kinds of connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from toolmem.client.answers import HttpAnswer
from toolmem.client.client_settings import DEFAULT_URL, ClientSettings
from toolmem.client.requests import ServiceRequest, as_it_is, batch_call, call_of, flow_call, rpc_call
from toolmem.client.retrying import Arrival, failures_named, policy
from toolmem.errors import ClientClosed
from toolmem.operations import add, tool_rules, workspace_actions
from toolmem.operations.methods import AsyncRules, Methods, Rules
from toolmem.operations.operation import AsyncCaller, Collector, Operation, SyncCaller

if TYPE_CHECKING:
    import httpx

    from toolmem.models import FlowResponse


class FormerRuleMethods:
    """`put_rule` is `rules.put` now, and so on."""

    put_rule = tool_rules.put_rule
    get_rule = tool_rules.get_rule
    list_rules = tool_rules.list_rules
    delete_rule = tool_rules.delete_rule
    rules_for_prompt = tool_rules.rules_for_prompt
    rules_json = tool_rules.rules_json


class FormerMethods(FormerRuleMethods):
    """`add_tool_call_results` is `add` now, `list_memories` is `memories`."""

    add_tool_call_results = add.add
    list_memories = workspace_actions.memories


P = ParamSpec("P")
T = TypeVar("T")

TIMEOUT = 300.0  # seconds; a flow that asks a model for many calls takes its time
RETRIES = 2


class _Configured(FormerMethods, Methods):
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
        self._settings = ClientSettings(base_url, token, timeout, retries)
        self.workspace_id = workspace_id
        self._open(self._settings.options())

    def _open(self, options: dict[str, Any]) -> None:
        raise NotImplementedError

    @property
    def base_url(self) -> str:
        return self._settings.url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r}, workspace_id={self.workspace_id!r})"

    def _check_open(self, is_closed: bool, exchange: ServiceRequest[Any]) -> None:
        if is_closed:
            raise ClientClosed(f"{exchange.name}: this {type(self).__name__} is closed; make a new one")

    def _answer(self, response: httpx.Response) -> HttpAnswer:
        return HttpAnswer(response.status_code, response.content, self.base_url, token_sent=self._settings.has_token)


class Client(_Configured, SyncCaller):
    """A `toolmem serve` as Python calls; threads may share one.

        with Client(workspace_id="team") as client:
            client.add([{"tool_name": "search", "input": {"query": "rain"}, "output": "[]"}])
            client.summarize("search")
            print(client.retrieve("search")[0].content)

    `token`: None takes TOOLMEM_TOKEN from the environment. `workspace_id` is used where a call names none. `timeout`:
    seconds without a sign of the service, None for ever. `retries`: further attempts, made only where a request did not
    reach the service or does no more when it is done twice.

    Raises ServiceUnreachable, ServiceDenied or ServiceError, ClientClosed after `close`, and what the service raised
    there: RequestError with its `field`, NotProvided, StoreError, ModelError. Partial results and things not found are
    answers: `success` is false.
    """

    def _open(self, options: dict[str, Any]) -> None:
        import httpx

        self._http = httpx.Client(**options)

    def batch(self) -> Batch:
        """Rule calls in one request."""
        return Batch(self)

    @property
    def rules(self) -> Rules:
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

    def _send(self, exchange: ServiceRequest[T]) -> T:
        from tenacity import Retrying

        value: T = Retrying(**policy(exchange, self._settings.retries))(self._attempt, exchange, Arrival())
        return value

    def _attempt(self, exchange: ServiceRequest[T], arrival: Arrival) -> T:
        self._check_open(self._http.is_closed, exchange)
        with arrival.attempt():
            with failures_named(exchange, self.base_url, self._settings.timeout):
                response = self._http.request(exchange.method, self.base_url + exchange.path, content=exchange.content)
            return exchange.read(self._answer(response))

    def close(self) -> None:
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

    def _open(self, options: dict[str, Any]) -> None:
        import httpx

        self._http = httpx.AsyncClient(**options)

    def batch(self) -> AsyncBatch:
        """Rule calls in one request."""
        return AsyncBatch(self)

    @property
    def rules(self) -> AsyncRules:
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

    async def _send(self, exchange: ServiceRequest[T]) -> T:
        from tenacity import AsyncRetrying

        value: T = await AsyncRetrying(**policy(exchange, self._settings.retries))(self._attempt, exchange, Arrival())
        return value

    async def _attempt(self, exchange: ServiceRequest[T], arrival: Arrival) -> T:
        self._check_open(self._http.is_closed, exchange)
        with arrival.attempt():
            with failures_named(exchange, self.base_url, self._settings.timeout):
                response = await self._http.request(
                    exchange.method, self.base_url + exchange.path, content=exchange.content
                )
            return exchange.read(self._answer(response))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Collected(FormerRuleMethods, Collector):
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
