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
from typing import Any

from toolmem.config.names import hint
from toolmem.errors import RequestError, ToolMemError
from toolmem.operations.operation import WORKSPACE, Operation
from toolmem.operations.requests import checked
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


class RpcService:
    """Serves requests over a ToolMemApp's services; one instance may serve any number of them at once."""

    def __init__(self, services: Services, *, max_batch: int = MAX_BATCH) -> None:
        self._services = services
        self._max_batch = max_batch
        self._methods = {name: method for known, method in methods().items() for name in (known, alias(known))}

    async def dispatch(self, text: str | bytes, workspaces: set[str] | None = None) -> str | None:
        """The answer, or None where nothing is to be answered (notifications). Never raises for what `text` holds.

        `workspaces` is told whose memories the requests asked for.
        """
        asked = set() if workspaces is None else workspaces
        try:
            value = await read_aside(text, functools.partial(read_json, text))
        except ValueError as error:
            return write_json(_failed(None, _Problem(-32700, f"Parse error: {error}")))
        if not isinstance(value, list):
            answer = await self._answer(value, asked)
            return None if answer is None else write_json(answer)
        if not value or len(value) > self._max_batch:
            problem = f"a batch holds 1 to {self._max_batch} requests, this one {len(value)}"
            return write_json(_failed(None, _no_request(problem)))
        answers = [answer for each in value if (answer := await self._answer(each, asked)) is not None]
        return write_json(answers) if answers else None

    async def _answer(self, request: Any, workspaces: set[str]) -> dict[str, Any] | None:
        if reason := _why_none(request):
            return _failed(None, _no_request(reason))
        is_notification = "id" not in request  # it is not answered, whatever becomes of it
        try:
            result = await self._result(request["method"], request.get("params") or {}, workspaces)
        except _Problem as problem:
            if is_notification:
                logger.warning("a notification failed: %s", problem.code)
            return None if is_notification else _failed(request["id"], problem)
        return None if is_notification else {"jsonrpc": "2.0", "id": request["id"], "result": result}

    async def _result(self, name: str, params: Any, workspaces: set[str]) -> Any:
        """Under OpenHuman's names a result comes in its envelope. Raises _Problem."""
        method = self._methods.get(name)
        if method is None:
            raise _Problem(-32601, f"Method not found: {name[:100]!r} ({hint(name, self._methods)})")
        try:
            given = checked(method, _by_name(method, params) if isinstance(params, list) else params)
            workspaces.add(given[WORKSPACE])
            result = method.to_json(await method.run(self._services, given))
        except RequestError as error:
            raise _Problem(-32602, f"Invalid params: {error}", parameter=error.field) from error
        except ToolMemError as error:
            raise _Problem(-32000, f"Server error: {error}") from error
        except Exception as error:
            logger.error("a method failed: %s", type(error).__name__)
            logger.debug("how it failed", exc_info=True)
            raise _Problem(-32603, f"Internal error: {type(error).__name__}") from error
        return result if name == method.method else {"result": result, "logs": []}


class _Problem(Exception):
    def __init__(self, code: int, message: str, **data: Any) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def _failed(request_id: Any, problem: _Problem) -> dict[str, Any]:
    data = {"data": problem.data} if problem.data else {}
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": problem.code, "message": str(problem), **data}}


def _no_request(reason: str) -> _Problem:
    return _Problem(-32600, f"Invalid Request: {reason}", reason=reason)


def _why_none(request: Any) -> str:
    """Why this is no request; "" where it is one."""
    if isinstance(request, list):
        return "a batch inside a batch"
    if not isinstance(request, dict):
        return "expected an object"
    if request.get("jsonrpc") != "2.0":
        return "jsonrpc: expected '2.0'"
    if not isinstance(request.get("method"), str):
        return "method: expected the name of a method"
    if not isinstance(request.get("id"), int | str | None):
        return "id: expected text, a whole number or null"
    if not isinstance(request.get("params"), dict | list | None):
        return "params: expected an object or a list"
    return ""


def _by_name(method: Operation[Any, Any], positional: list[Any]) -> dict[str, Any]:
    """`workspace_id` comes last. Raises RequestError."""
    known = [*method.arguments, WORKSPACE]
    if len(positional) > len(known):
        problem = f"{len(positional)} parameters; there are {len(known)}: {', '.join(known)}"
        raise RequestError(problem, field="params")
    return dict(zip(known, positional, strict=False))
