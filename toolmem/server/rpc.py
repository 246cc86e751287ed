"""JSON-RPC 2.0 over the rules and memories: text in, text out.

    rpc = RpcService(app.services)
    answer = await rpc.dispatch('{"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rule_list", "params": {...}}')

Under `openhuman.*` names a result is `{"result": ..., "logs": [...]}`, as OpenHuman's own clients read it; `params`
that are null are none.

Error codes: -32700 not JSON (or not UTF-8), -32600 no request (why: `data.reason`), -32601 unknown method, -32602 a
parameter (its name in `data.parameter`), -32000 the store failed, -32603 anything else. Requests of a batch run one
after the other.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from pjrpc.common import UNSET, Request, Response
from pjrpc.server import AsyncDispatcher, MethodRegistry
from pjrpc.server import exceptions as rpc_errors

from toolmem.config.names import hint
from toolmem.errors import RequestError, ToolMemError
from toolmem.operations.operation import WORKSPACE, Operation
from toolmem.operations.table import rpc_operations
from toolmem.protocols import Services
from toolmem.server.json_text import read_aside, read_json, write_json

PREFIX = "memory."
ALIAS_PREFIX = "openhuman.memory_"  # memory.tool_rule_put is openhuman.memory_tool_rule_put there


def methods() -> dict[str, Operation[Any, Any]]:
    """By name, in the order of the table."""
    return {operation.method: operation for operation in rpc_operations()}


def alias(name: str) -> str:
    """The name that the source system gives a method."""
    return ALIAS_PREFIX + name.removeprefix(PREFIX)


logger = logging.getLogger("toolmem.service")

MAX_BATCH = 1000  # requests
_NULL_ID = "\0null"  # stands for an id that is null: such a request is answered, one without an id is not


class RpcService:
    """Serves requests over a ToolMemApp's services; one instance may serve any number of them at once."""

    def __init__(self, services: Services, *, max_batch: int = MAX_BATCH) -> None:
        self._max_batch = max_batch
        self._methods = {name: method for known, method in methods().items() for name in (known, alias(known))}
        registry = MethodRegistry()
        for name, method in self._methods.items():
            registry.add_method(_bound(name, method, services), name)
        # The dispatcher gets values instead of texts: reading the text and taking a batch apart is done here, because
        # one bad request must not spoil the others of its batch.
        self._dispatcher = AsyncDispatcher(json_loader=_as_it_is, json_dumper=_as_it_is, middlewares=[self._guarded])
        self._dispatcher.add_methods(registry)

    async def dispatch(self, text: str | bytes, workspaces: set[str] | None = None) -> str | None:
        """The answer, or None where nothing is to be answered (notifications). Never raises for what `text` holds.

        `workspaces` is told whose memories the requests asked for.
        """
        asked = set() if workspaces is None else workspaces
        try:
            value = await read_aside(text, functools.partial(read_json, text))
        except ValueError as error:
            return write_json(_error(None, rpc_errors.ParseError(f"Parse error: {error}")))
        if not isinstance(value, list):
            answer = await self._answer(value, asked)
            return None if answer is None else write_json(answer)
        if not value or len(value) > self._max_batch:
            problem = f"a batch holds 1 to {self._max_batch} requests, this one {len(value)}"
            return write_json(_no_request(problem))
        answers = [answer for each in value if (answer := await self._answer(each, asked)) is not None]
        return write_json(answers) if answers else None

    async def _answer(self, request: Any, workspaces: set[str]) -> dict[str, Any] | None:
        if isinstance(request, list):
            return _no_request("a batch inside a batch")
        if isinstance(request, dict) and "id" in request and request["id"] is None:
            request = {**request, "id": _NULL_ID}
        if isinstance(request, dict) and "params" in request and request["params"] is None:
            request = {**request, "params": {}}
        answered = await self._dispatcher.dispatch(request, workspaces)
        if answered is None:
            return None
        answer: dict[str, Any] = answered[0]
        problem = answer.get("error")
        if problem is not None and isinstance(problem.get("data"), str):  # as pjrpc says what is no request
            answer = _no_request(problem["data"], answer.get("id"))
        if answer.get("id") == _NULL_ID:
            answer["id"] = None
        return answer

    async def _guarded(self, request: Request, workspaces: set[str], handler: Callable[..., Awaitable[Any]]) -> Any:
        """Check the parameters before the method is called, and turn what it raises into an answer."""
        try:
            method = self._methods.get(request.method)
            if method is None:
                known = hint(request.method, self._methods)
                raise rpc_errors.MethodNotFoundError(f"Method not found: {request.method[:100]!r} ({known})")
            given = _checked(method, request.params or {})
            workspaces.add(given[WORKSPACE])
            return await handler(Request(request.method, {"given": given}, request.id), workspaces)
        except rpc_errors.JsonRpcError as error:
            problem = error
        # Returned instead of raised: pjrpc would log the parameters, which hold the user's words.
        return Response(id=request.id, error=problem) if request.id is not None else _unanswered(problem)


def _unanswered(problem: Any) -> Any:
    """A notification is not answered, whatever became of it."""
    logger.warning("a notification failed: %s", problem.code)
    return UNSET


def _checked(method: Operation[Any, Any], params: Any) -> dict[str, Any]:
    """`params`: an object, or a list of positional ones, `workspace_id` last."""
    try:
        if isinstance(params, list):
            known = [*method.arguments, WORKSPACE]
            if len(params) > len(known):
                problem = f"{len(params)} parameters; there are {len(known)}: {', '.join(known)}"
                raise RequestError(problem, field="params")
            params = dict(zip(known, params, strict=False))
        return method.checked(params)
    except RequestError as error:
        raise _invalid(error) from error


def _invalid(error: RequestError) -> Any:
    return rpc_errors.InvalidParamsError(f"Invalid params: {error}", data={"parameter": error.field})


def _bound(name: str, method: Operation[Any, Any], services: Services) -> Callable[..., Awaitable[Any]]:
    """Under OpenHuman's names a result comes in its envelope."""

    async def call(given: dict[str, Any]) -> Any:
        try:
            result = method.to_json(await method.run(services, given))
            return result if name == method.method else {"result": result, "logs": []}
        except RequestError as error:
            raise _invalid(error) from error
        except ToolMemError as error:
            raise rpc_errors.ServerError(f"Server error: {error}") from error
        except Exception as error:
            logger.error("a method failed: %s", type(error).__name__)
            logger.debug("how it failed", exc_info=True)
            raise rpc_errors.InternalError(f"Internal error: {type(error).__name__}") from error

    return call


def _error(request_id: Any, problem: Any) -> dict[str, Any]:
    answer: dict[str, Any] = Response(id=request_id, error=problem).to_json()
    return answer


def _no_request(reason: str, request_id: Any = None) -> dict[str, Any]:
    problem = rpc_errors.InvalidRequestError(f"Invalid Request: {reason}", data={"reason": reason})
    return _error(request_id, problem)


def _as_it_is(value: Any, **_: Any) -> Any:
    return value
