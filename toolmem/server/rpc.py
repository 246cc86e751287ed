"""JSON-RPC 2.0 over the rules and memories: text in, text out.

    rpc = RpcService(app.services)
    answer = await rpc.dispatch('{"jsonrpc": "2.0", "id": 1, "method": "memory.tool_rule_list", "params": {...}}')

Under `openhuman.*` names a result is `{"result": ..., "logs": [...]}`, as OpenHuman's own clients read it; `params`
that are null are none.

Error codes: -32700 not JSON (or not UTF-8), -32600 no request (why: `data.reason`), -32601 unknown method, -32602 a
parameter (its name in `data.parameter`), -32000 the store failed, or only the user decides it (`data.reason` is then
`proposed`), -32603 anything else. Requests of a batch run one
after the other.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from pjrpc.common import Request, Response
from pjrpc.common.exceptions import DeserializationError, IdentityError
from pjrpc.server import exceptions as rpc_errors

from toolmem.config.nearest_names import hint
from toolmem.errors import LiftProposed, RequestError, ToolMemError
from toolmem.operations.operation import WORKSPACE, Operation
from toolmem.operations.table import rpc_operations
from toolmem.protocols import Services
from toolmem.server.json_text import read_aside, read_json, write_json

logger = logging.getLogger("toolmem.service")

PREFIX = "memory."
ALIAS_PREFIX = "openhuman.memory_"  # memory.tool_rule_put is openhuman.memory_tool_rule_put there


def methods() -> dict[str, Operation[Any, Any]]:
    """By name, in the order of the table."""
    return {operation.method: operation for operation in rpc_operations()}


def alias(name: str) -> str:
    """The name that the source system gives a method."""
    return ALIAS_PREFIX + name.removeprefix(PREFIX)


MAX_BATCH = 1000  # requests
CHANGES = frozenset(  # of rules, and what deletes
    ("memory.tool_rule_put", "memory.tool_rule_delete", "memory.tool_rule_set_status", "memory.forget")
)
Held = Callable[[], Awaitable[str]]  # why a request that changes rules, or deletes, is refused; "" where it is not


class RpcService:
    """Serves requests over a ToolMemApp's services; one instance may serve any number of them at once."""

    def __init__(self, services: Services, *, max_batch: int = MAX_BATCH) -> None:
        self._services = services
        self._max_batch = max_batch
        self._methods = {name: method for known, method in methods().items() for name in (known, alias(known))}

    async def dispatch(
        self, text: str | bytes, workspaces: set[str] | None = None, held: Held | None = None
    ) -> str | None:
        """The answer, or None where nothing is to be answered (notifications). Never raises for what `text` holds.

        `workspaces` is told whose memories the requests asked for.
        """
        asked = set() if workspaces is None else workspaces
        try:
            value = await read_aside(text, functools.partial(read_json, text))
        except ValueError as error:
            return write_json(_error(None, rpc_errors.ParseError(f"Parse error: {error}")))
        if not isinstance(value, list):
            answer = await self._answer(value, asked, held)
            return None if answer is None else write_json(answer)
        if not value or len(value) > self._max_batch:
            problem = f"a batch holds 1 to {self._max_batch} requests, this one {len(value)}"
            return write_json(_no_request(problem))
        answers = [answer for each in value if (answer := await self._answer(each, asked, held)) is not None]
        return write_json(answers) if answers else None

    async def _answer(self, value: Any, workspaces: set[str], held: Held | None) -> dict[str, Any] | None:
        """None where nothing is to be answered: an id that is null is one, no id is none."""
        if isinstance(value, list):
            return _no_request("a batch inside a batch")
        is_asked = isinstance(value, dict) and "id" in value
        if isinstance(value, dict):
            value = {name: each for name, each in value.items() if each is not None or name not in ("id", "params")}
        try:
            request = Request.from_json(value)
        except (DeserializationError, IdentityError) as error:
            return _no_request(str(error))
        try:
            result = await self._perform(request, workspaces, held)
        except rpc_errors.JsonRpcError as problem:
            if not is_asked:
                logger.warning("a notification failed: %s", problem.code)
            return _error(request.id, problem) if is_asked else None
        return Response(id=request.id, result=result).to_json() if is_asked else None

    async def _perform(self, request: Request, workspaces: set[str], held: Held | None) -> Any:
        """The result as JSON values; under OpenHuman's names in its envelope. Raises JsonRpcError."""
        method = self._methods.get(request.method)
        if method is None:
            known = hint(request.method, self._methods)
            raise rpc_errors.MethodNotFoundError(f"Method not found: {request.method[:100]!r} ({known})")
        if method.method in CHANGES and held is not None and (why := await held()):
            raise rpc_errors.ServerError(f"Server error: {why}", data={"reason": "token"})
        try:
            given = _checked(method, request.params or {})
            workspaces.add(given[WORKSPACE])
            result = method.to_json(await method.run(self._services, given))
        except RequestError as error:
            raise rpc_errors.InvalidParamsError(f"Invalid params: {error}", data={"parameter": error.field}) from error
        except LiftProposed as error:
            data = {"reason": "proposed", "rule_id": error.rule_id, "code": error.code}
            raise rpc_errors.ServerError(f"Server error: {error}", data=data) from error
        except ToolMemError as error:
            raise rpc_errors.ServerError(f"Server error: {error}") from error
        except Exception as error:
            logger.error("a method failed: %s", type(error).__name__)
            logger.debug("how it failed", exc_info=True)
            raise rpc_errors.InternalError(f"Internal error: {type(error).__name__}") from error
        return result if request.method == method.method else {"result": result, "logs": []}


def _checked(method: Operation[Any, Any], params: Any) -> dict[str, Any]:
    """`params`: an object, or a list of positional ones, `workspace_id` last."""
    if isinstance(params, list):
        known = [*method.arguments, WORKSPACE]
        if len(params) > len(known):
            problem = f"{len(params)} parameters; there are {len(known)}: {', '.join(known)}"
            raise RequestError(problem, field="params")
        params = dict(zip(known, params, strict=False))
    return method.checked(params)


def _error(request_id: Any, problem: Any) -> dict[str, Any]:
    answer: dict[str, Any] = Response(id=request_id, error=problem).to_json()
    return answer


def _no_request(reason: str) -> dict[str, Any]:
    return _error(None, rpc_errors.InvalidRequestError(f"Invalid Request: {reason}", data={"reason": reason}))
