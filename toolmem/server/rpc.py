"""JSON-RPC 2.0 over the operations, batches included.

Error codes: -32700 not JSON, -32600 not a request, -32601 unknown method, -32602 a wrong parameter
(its name in `data.parameter`), -32000 refused, or the store or model failed, -32603 anything else.
OpenHuman's names are aliases: `openhuman.memory_tool_rule_put` is `memory.tool_rule_put`, with the
result in OpenHuman's envelope. `next` beside `result`: send it as `before` to get older calls.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from toolmem.config.names import hint
from toolmem.errors import RequestError, ToolMemError
from toolmem.flow.checks import WORKSPACE_KEY
from toolmem.flow.runner import with_new_names
from toolmem.formats.files import read_json
from toolmem.memory.toolmem import Workspace
from toolmem.models.calls import with_all_fields
from toolmem.operations.operation import OPERATIONS, Operation
from toolmem.operations.results import Calls

log = logging.getLogger("toolmem.server")

MAX_BATCH = 1_000
READ_ONLY = "this service is read-only (it was started with --read-only)"
_ALIAS = "openhuman.memory_"


class RpcError(Exception):
    """The `error` object of a JSON-RPC response."""

    def __init__(self, code: int, message: str, **data: Any) -> None:
        super().__init__(message)
        self.fields = {"code": code, "message": message, **data}


class Rpc:
    """Answers JSON-RPC requests, single or in a batch."""

    def __init__(
        self, workspace_of: Callable[[str], Workspace], *, read_only: bool = False
    ) -> None:
        self._workspace_of = workspace_of
        self._read_only = read_only
        named = {operation.rpc: operation for operation in OPERATIONS.values() if operation.rpc}
        aliases = {f"{_ALIAS}{name.partition('.')[2]}": each for name, each in named.items()}
        self._methods = {**named, **aliases}

    def answer(self, text: bytes) -> bytes | None:
        """Answer a request or a batch, as JSON. Returns None if it has only notifications."""
        try:
            answer = self._answer_all(read_json(text))
        except RequestError as error:
            answer = _error_response(None, RpcError(-32700, f"Parse error: {error}"))
        return None if answer is None else msgspec.json.encode(answer)

    def _answer_all(self, value: Any) -> Any:
        if not isinstance(value, list):
            return self._answer(value)
        if not value or len(value) > MAX_BATCH:
            problem = f"Invalid Request: a batch holds 1 to {MAX_BATCH} requests"
            return _error_response(None, RpcError(-32600, problem))
        return [done for each in value if (done := self._answer(each)) is not None] or None

    def _answer(self, value: Any) -> dict[str, Any] | None:
        request = value if isinstance(value, dict) else {}
        request_id = request.get("id")
        method = request.get("method")
        is_notification = "id" not in request and isinstance(method, str)
        try:
            if not isinstance(request_id, str | int | float | None):
                request_id = None
                raise RpcError(-32600, "Invalid Request: id: expected a text or a number")
            if request.get("jsonrpc") != "2.0" or not isinstance(method, str):
                expected = 'an object with "jsonrpc": "2.0" and a method'
                raise RpcError(-32600, f"Invalid Request: expected {expected}")
            done = self._perform(method, request.get("params"))
        except RpcError as error:
            if not is_notification:
                return _error_response(request_id, error)
            log.warning("a notification failed: %s", error.fields["code"])
            return None
        return None if is_notification else {"jsonrpc": "2.0", "id": request_id, **done}

    def _perform(self, method: str, params: Any) -> dict[str, Any]:
        """Run a method. Returns its `result`, and `next` if there are older calls to ask for."""
        operation = self._methods.get(method)
        if operation is None:
            known = hint(method[:100], self._methods)
            raise RpcError(-32601, f"Method not found: {method[:100]!r} ({known})")
        if self._read_only and not operation.reads_only:
            raise RpcError(-32000, f"Server error: {method}: {READ_ONLY}")
        if not isinstance(params, dict | list | None):
            raise RpcError(-32600, "Invalid Request: params: expected an object or a list")
        try:
            named = _named_params(operation, params or {})
            workspace, arguments = split_workspace(named, "default")
            done = self._workspace_of(workspace).perform(operation, arguments)
            result = with_all_fields(done)
        except RequestError as error:
            message = f"Invalid params: {error}"
            raise RpcError(-32602, message, data={"parameter": error.field}) from None
        except ToolMemError as error:
            raise RpcError(-32000, f"Server error: {error}") from None
        except Exception as error:
            log.exception("a method failed")
            raise RpcError(-32603, f"Internal error: {type(error).__name__}") from None
        if method.startswith(_ALIAS):
            result = {"result": result, "logs": []}
        older = done.next if isinstance(done, Calls) else None
        return {"result": result} if older is None else {"result": result, "next": older}


def split_workspace(request: Mapping[str, Any], default: str = "") -> tuple[str, dict[str, Any]]:
    """Split a request into its workspace (else `default`) and the rest. Raises RequestError."""
    arguments = with_new_names(request)
    workspace = arguments.pop(WORKSPACE_KEY, None) or default
    if not isinstance(workspace, str) or not workspace:
        raise RequestError("workspace: expected the name of a workspace", WORKSPACE_KEY)
    return workspace, arguments


def _named_params(operation: Operation, params: dict[str, Any] | list[Any]) -> dict[str, Any]:
    """Parameters by name. In a list they are positional, the workspace last."""
    if isinstance(params, dict):
        return dict(params)
    names = [*operation.signature.parameters, WORKSPACE_KEY]
    if len(params) > len(names):
        raise RequestError(f"{len(params)} parameters; there are {len(names)}", "params")
    return dict(zip(names, params, strict=False))


def _error_response(request_id: Any, error: RpcError) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": error.fields}
