"""Handle each message of one connection, over any transport.

`from_client` and `from_server` may be called from two threads. The outcome of a call is stored
before the client sees it.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from toolmem.guard.decision import apply_answer, strictest
from toolmem.server.proxy.call import (
    ASK_PREFIX,
    CANCELLED,
    CAPABILITIES,
    NO_ANSWER,
    CallOutcome,
    Consents,
    ToolCall,
    agrees,
    can_elicit,
    form,
    structured_text,
)
from toolmem.server.proxy.memory import ProxyMemory
from toolmem.text.forms import as_object
from toolmem.text.stopped_calls import STOPPED

log = logging.getLogger("toolmem.proxy")
Send = Callable[[bytes], None]
ADDED = "[Added by toolmem]"
_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600
_INVALID_PARAMS = -32602
_ENVELOPE = frozenset(("jsonrpc", "id", "method", "params", "name", "arguments", "_meta"))
_ID = re.compile(rb'"id"\s*:\s*("(?:[^"\\]|\\.){0,200}"|-?\d{1,20})')


class Relay:
    """Handles one connection. Gives `to_client` and `to_server` messages without a line end."""

    def __init__(self, memory: ProxyMemory, to_client: Send, to_server: Send) -> None:
        self.memory = memory
        self.to_client = to_client
        self.to_server = to_server
        self._consents = Consents()
        self._capabilities: Any = None  # of the client, from `initialize`
        # Both threads change these two, only by single atomic operations.
        self._calls: dict[str, ToolCall] = {}  # at the server, by request id
        self._lists: set[str] = set()  # ids of open tools/list requests
        self._waiting: dict[str, ToolCall] = {}  # for the user, by our request; client's thread

    # ------------------------------------------------------------ from the client

    def from_client(self, line: bytes) -> None:
        """Pass a message of the client to the server, or answer it."""
        if not line.strip():
            return
        try:
            message = json.loads(line.decode(), object_pairs_hook=_unique_keys)
            _require_exact_names(message)
        except (ValueError, RecursionError) as error:
            self._refuse(_id_of(line), _PARSE_ERROR, f"the message cannot be read: {error}")
            return
        if not isinstance(message, dict):
            self._refuse(None, _INVALID_REQUEST, "one message at a time: MCP has no batches")
            return
        method = message.get("method")
        params = as_object(message.get("params"))
        if method == "tools/call" and (call := ToolCall.read(message)) is not None:
            self._call(call, line)
            return
        if method == "notifications/cancelled" and self._cancel(params.get("requestId")):
            return
        if method is None and self._take_answer(message):
            return
        if method == "initialize":
            self._capabilities = params.get("capabilities")
        elif method == "tools/list":
            self._lists.add(_key(message.get("id")))
        self.to_server(line)

    def _cancel(self, request_id: Any) -> bool:
        """Cancel a call. True if it waited for the user, so that the server did not receive it."""
        key = _key(request_id)
        for ours, call in self._waiting.items():
            if _key(call.message["id"]) == key:
                del self._waiting[ours]  # the loop ends here
                params = {"requestId": ours, "reason": "the call is cancelled"}
                self._send_own({"method": "notifications/cancelled", "params": params})
                return True
        if (running := self._calls.pop(key, None)) is not None:
            self.memory.keep(running, CANCELLED)
        return False

    def _take_answer(self, message: Mapping[str, Any]) -> bool:
        """Read an answer to our form, and send or refuse the call. False for other messages."""
        ours = message.get("id")
        if not isinstance(ours, str) or not ours.startswith(ASK_PREFIX):
            return False
        if (call := self._waiting.pop(ours, None)) is not None:
            yes = agrees(message.get("result"))
            call.decisions = [apply_answer(each, yes) for each in call.decisions]
            self._forward(call, _encoded(call.message))
        return True

    def _call(self, call: ToolCall, line: bytes) -> None:
        request_id = call.message.get("id")
        try:
            call.agreed = self._consents.answer(call)
        except ValueError as error:
            self._refuse(request_id, _INVALID_PARAMS, str(error))
            return
        if str(call.params.get("requestState", "")).startswith(ASK_PREFIX):  # not the server's
            own = ("requestState", "inputResponses")
            params = {key: value for key, value in call.params.items() if key not in own}
            call.message = {**call.message, "params": params}
            line = _encoded(call.message)
        call.decisions = self.memory.decide(call)
        if call.agreed is not None:
            call.decisions = [apply_answer(each, call.agreed) for each in call.decisions]
        decision = strictest(call.decisions)
        capabilities = call.meta.get(CAPABILITIES) if call.is_stateless else self._capabilities
        if decision.action != "ask" or "id" not in call.message or not can_elicit(capabilities):
            self._forward(call, line)
        elif call.is_stateless:
            self._send_own({"id": request_id, "result": self._consents.ask(call, decision)})
        else:
            ours = f"{ASK_PREFIX}{secrets.token_hex(8)}"
            self._waiting[ours] = call
            self._send_own(
                {"id": ours, "method": "elicitation/create", "params": form(call, decision)}
            )

    def _forward(self, call: ToolCall, line: bytes) -> None:
        """Send a call to the server, or answer why it does not run."""
        has_id = "id" in call.message
        decision = strictest(call.decisions)
        if decision.action not in ("ask", "deny"):
            if has_id:
                self._calls[_key(call.message["id"])] = call
            self.to_server(line)
        elif has_id:
            text = {"type": "text", "text": decision.reason}
            more = {"resultType": "complete"} if call.is_stateless else {}
            result = {**more, "content": [text], "isError": True}
            self._send_own({"id": call.message["id"], "result": result})

    # ------------------------------------------------------------ from the server

    def from_server(self, line: bytes) -> None:
        """Pass a message of the server to the client, with advice or descriptions added."""
        try:
            changed = self._changed(line)
        except Exception as error:  # the client waits for this message
            log.error("nothing is added to a message: %s", type(error).__name__)
            changed = b""
        self.to_client(changed or line)

    def _changed(self, line: bytes) -> bytes:
        """Return a server's message as changed for the client; b"" if it passes unchanged."""
        if not self._calls and not self._lists and b"list_changed" not in line:
            return b""
        try:
            message = as_object(json.loads(line))
        except (ValueError, RecursionError):
            return b""
        if message.get("method") == "notifications/tools/list_changed":
            self.memory.descriptions.clear()
        if "method" in message or "id" not in message:
            return b""
        key = _key(message["id"])
        if (call := self._calls.pop(key, None)) is not None:
            return self._with_advice(call, message)
        if key not in self._lists:
            return b""
        self._lists.discard(key)
        return self._with_descriptions(message)

    def _with_advice(self, call: ToolCall, message: Mapping[str, Any]) -> bytes:
        """Store the call. Returns the message with advice added; b"" if there is none."""
        outcome = CallOutcome.read(message)
        result = as_object(message.get("result"))
        if outcome is None:
            if call.agreed:
                self._consents.renew(call, result)
            return b""
        advice = [strictest(call.decisions).advice, self.memory.keep(call, outcome)]
        text = "\n".join(filter(None, advice))
        content = result.get("content", [])
        if not text or "result" not in message or not isinstance(content, list):
            return b""
        block = {"type": "text", "text": f"{ADDED} {text}", "_meta": {"toolmem/note": True}}
        data = structured_text(result)  # hosts that read text only must not lose it
        before = [{"type": "text", "text": data}] if data else content
        return _encoded({**message, "result": {**result, "content": [*before, block]}})

    def _with_descriptions(self, message: Mapping[str, Any]) -> bytes:
        """A tools/list result with rules and guidance added; b"" if there are none."""
        result = as_object(message.get("result"))
        tools = result.get("tools")
        if not isinstance(tools, list):
            return b""
        additions = self.memory.describe(tools)
        described = []
        for tool in tools:
            name = as_object(tool).get("name")
            added = additions.get(name) if isinstance(name, str) else None
            own = tool.get("description") if added else None
            if added and (own is None or isinstance(own, str)):
                text = "\n\n".join([*filter(None, [own]), f"{ADDED}\n{added}"])
                tool = {**tool, "description": text}
            described.append(tool)
        if described == tools:
            return b""
        scope = {"cacheScope": "private"} if result.get("cacheScope") == "public" else {}
        return _encoded({**message, "result": {**result, **scope, "tools": described}})

    def close(self) -> None:
        """End the connection: open calls are stored without an answer."""
        for key in list(self._calls):
            if (call := self._calls.pop(key, None)) is not None:
                self.memory.keep(call, NO_ANSWER)
        self.memory.close()

    # ------------------------------------------------------------ our own messages

    def _send_own(self, message: Mapping[str, Any]) -> None:
        self.to_client(_encoded({"jsonrpc": "2.0", **message}))

    def _refuse(self, request_id: Any, code: int, why: str) -> None:
        self._send_own({"id": request_id, "error": {"code": code, "message": f"{STOPPED}: {why}"}})


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of a JSON object. Raises ValueError if a key occurs twice in it."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a name twice")
    return found


def _require_exact_names(message: Any) -> None:
    """Raises ValueError for a name of MCP's in another case, as servers in Go ignore case.

    Arguments may have any names.
    """
    for each in (as_object(message), as_object(as_object(message).get("params"))):
        for name in each:
            if name not in _ENVELOPE and name.casefold() in _ENVELOPE:
                raise ValueError(f"{name!r} has to be {name.casefold()!r}")


def _id_of(line: bytes) -> Any:
    """The id of a message that is refused; None if there is none."""
    try:
        return as_object(json.loads(line)).get("id")
    except (ValueError, RecursionError):
        found = _ID.search(line)
        return json.loads(found[1]) if found else None


def _key(request_id: Any) -> str:
    """Return an id as a dictionary's key, under which 1 and "1" differ as in JSON."""
    return json.dumps(request_id)


def _encoded(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()
