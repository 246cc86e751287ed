"""What becomes of each message of one connection, whatever carries it.

`from_client` and `from_server` may be called from two threads. What a call came to is kept before
the client sees it.
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
    CANCELLED,
    CAPABILITIES,
    NO_ANSWER,
    PREFIX,
    CallOutcome,
    Consents,
    ToolCall,
    agrees,
    an_object,
    can_elicit,
    form,
    structured_text,
)
from toolmem.server.proxy.memory import ProxyMemory
from toolmem.text.stopped_calls import STOPPED

log = logging.getLogger("toolmem.proxy")
Send = Callable[[bytes], None]
NOTE = "[Added by toolmem]"
_PARSE_ERROR, _INVALID_REQUEST, _INVALID_PARAMS = -32700, -32600, -32602
_ID = re.compile(rb'"id"\s*:\s*("(?:[^"\\]|\\.){0,200}"|-?\d{1,20})')


class Relay:
    """One connection. `to_client` and `to_server` take a message without its line end."""

    def __init__(self, memory: ProxyMemory, to_client: Send, to_server: Send) -> None:
        self.memory, self.to_client, self.to_server = memory, to_client, to_server
        self._consents = Consents()
        self._capabilities: Any = None  # of the client, where it says so once
        # Both threads change these two, each time by one operation, which is atomic.
        self._calls: dict[str, ToolCall] = {}
        self._lists: set[str] = set()
        self._waiting: dict[str, ToolCall] = {}  # by our request to the user; the client's thread

    # ------------------------------------------------------------ from the client

    def from_client(self, line: bytes) -> None:
        """Pass a message on, or answer it."""
        if not line.strip():
            return
        try:
            message = json.loads(line.decode(), object_pairs_hook=_once_each)
        except (ValueError, RecursionError) as error:
            self._refuse(_id_of(line), _PARSE_ERROR, f"the message cannot be read: {error}")
            return
        if not isinstance(message, dict):
            self._refuse(None, _INVALID_REQUEST, "one message at a time: MCP has no batches")
            return
        method, params = message.get("method"), an_object(message.get("params"))
        if method == "tools/call" and (call := ToolCall.read(message)) is not None:
            self._call(call, line)
            return
        if method == "notifications/cancelled" and self._is_withdrawn(params.get("requestId")):
            return
        if method is None and self._is_our_answer(message):
            return
        if method == "initialize":
            self._capabilities = params.get("capabilities")
        elif method == "tools/list":
            self._lists.add(_key(message.get("id")))
        self.to_server(line)

    def _is_withdrawn(self, request_id: Any) -> bool:
        """Whether a cancelled call only waited for the user: the server knows nothing of it."""
        key = _key(request_id)
        for ours, call in self._waiting.items():
            if _key(call.message["id"]) == key:
                del self._waiting[ours]  # the loop ends here
                told = {"requestId": ours, "reason": "the call is cancelled"}
                self._tell({"method": "notifications/cancelled", "params": told})
                return True
        if (running := self._calls.pop(key, None)) is not None:
            self.memory.ended(running, CANCELLED)
        return False

    def _is_our_answer(self, message: Mapping[str, Any]) -> bool:
        """Whether the client answers what we asked; then the call goes on, or does not."""
        ours = message.get("id")
        if not isinstance(ours, str) or not ours.startswith(PREFIX):
            return False
        if (call := self._waiting.pop(ours, None)) is not None:
            yes = agrees(message.get("result"))
            call.decisions = [apply_answer(each, yes) for each in call.decisions]
            self._send(call, _encoded(call.message))
        return True

    def _call(self, call: ToolCall, line: bytes) -> None:
        request_id = call.message.get("id")
        try:
            call.agreed = self._consents.answer(call)
        except ValueError as error:
            self._refuse(request_id, _INVALID_PARAMS, str(error))
            return
        if str(call.params.get("requestState", "")).startswith(PREFIX):  # not the server's
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
            self._send(call, line)
        elif call.is_stateless:
            self._tell({"id": request_id, "result": self._consents.ask(call, decision)})
        else:
            ours = f"{PREFIX}{secrets.token_hex(8)}"
            self._waiting[ours] = call
            self._tell({"id": ours, "method": "elicitation/create", "params": form(call, decision)})

    def _send(self, call: ToolCall, line: bytes) -> None:
        """Let a call run, or answer why it does not."""
        is_asked, decision = "id" in call.message, strictest(call.decisions)
        if decision.action not in ("ask", "deny"):
            if is_asked:
                self._calls[_key(call.message["id"])] = call
            self.to_server(line)
        elif is_asked:
            text = {"type": "text", "text": decision.reason}
            more = {"resultType": "complete"} if call.is_stateless else {}
            result = {**more, "content": [text], "isError": True}
            self._tell({"id": call.message["id"], "result": result})

    # ------------------------------------------------------------ from the server

    def from_server(self, line: bytes) -> None:
        """Pass a message on, with what is added to it."""
        try:
            shown = self._seen(line)
        except Exception as error:  # the client waits for this message, whatever we make of it
            log.error("nothing is added to a message: %s", type(error).__name__)
            shown = b""
        self.to_client(shown or line)

    def _seen(self, line: bytes) -> bytes:
        """The message as the client is to see it; b"" where it stays as it is."""
        if not self._calls and not self._lists and b"list_changed" not in line:
            return b""
        try:
            message = an_object(json.loads(line))
        except (ValueError, RecursionError):
            return b""
        if message.get("method") == "notifications/tools/list_changed":
            self.memory.texts.clear()
        if "method" in message or "id" not in message:
            return b""
        key = _key(message["id"])
        if (call := self._calls.pop(key, None)) is not None:
            return self._ended(call, message)
        if key not in self._lists:
            return b""
        self._lists.discard(key)
        return self._described(message)

    def _ended(self, call: ToolCall, message: Mapping[str, Any]) -> bytes:
        """Keep the call; the message with a note, b"" where nothing is added."""
        outcome, result = CallOutcome.read(message), an_object(message.get("result"))
        if outcome is None:
            if call.agreed:
                self._consents.goes_on(call, result)
            return b""
        advice = [strictest(call.decisions).advice, self.memory.ended(call, outcome)]
        text = "\n".join(filter(None, advice))
        content = result.get("content", [])
        if not text or "result" not in message or not isinstance(content, list):
            return b""
        note = {"type": "text", "text": f"{NOTE} {text}", "_meta": {"toolmem/note": True}}
        data = structured_text(result)  # hosts that read text only must not lose it
        before = [{"type": "text", "text": data}] if data else content
        return _encoded({**message, "result": {**result, "content": [*before, note]}})

    def _described(self, message: Mapping[str, Any]) -> bytes:
        """A list of tools with what is known of each; b"" where nothing is."""
        result = an_object(message.get("result"))
        tools = result.get("tools")
        if not isinstance(tools, list):
            return b""
        known = self.memory.known_of(tools)
        described = []
        for tool in tools:
            name = an_object(tool).get("name")
            added = known.get(name) if isinstance(name, str) else None
            own = tool.get("description") if added else None
            if added and (own is None or isinstance(own, str)):
                text = "\n\n".join([*filter(None, [own]), f"{NOTE}\n{added}"])
                tool = {**tool, "description": text}
            described.append(tool)
        if described == tools:
            return b""
        scope = {"cacheScope": "private"} if result.get("cacheScope") == "public" else {}
        return _encoded({**message, "result": {**result, **scope, "tools": described}})

    def close(self) -> None:
        """The connection is over: what was not answered never will be."""
        for key in list(self._calls):
            if (call := self._calls.pop(key, None)) is not None:
                self.memory.ended(call, NO_ANSWER)
        self.memory.close()

    # ------------------------------------------------------------ answers of ours

    def _tell(self, message: Mapping[str, Any]) -> None:
        self.to_client(_encoded({"jsonrpc": "2.0", **message}))

    def _refuse(self, request_id: Any, code: int, why: str) -> None:
        self._tell({"id": request_id, "error": {"code": code, "message": f"{STOPPED}: {why}"}})


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Two readers may take different ones of a name that stands twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a name twice")
    return found


def _id_of(line: bytes) -> Any:
    """The id of a message that cannot be read."""
    try:
        return an_object(json.loads(line)).get("id")
    except (ValueError, RecursionError):
        found = _ID.search(line)
        return json.loads(found[1]) if found else None


def _key(request_id: Any) -> str:
    """Ids that are equal as JSON, and no others."""
    return json.dumps(request_id)


def _encoded(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()
