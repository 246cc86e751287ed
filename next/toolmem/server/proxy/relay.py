"""What becomes of each message of one connection, whatever carries it.

`from_client` and `from_server` may be called from two threads. What a call came to is kept before
the client sees it.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from toolmem.guard.decision import settled, strictest
from toolmem.models.decisions import Decision
from toolmem.server.proxy.call import (
    CANCELLED,
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


class _UnderWay(Struct):
    """A call that the server works on, or that waits for the user."""

    call: ToolCall
    decisions: list[Decision]
    agreed: bool
    message: Mapping[str, Any]


class Relay:
    """One connection. `to_client` and `to_server` take a message without its line end."""

    def __init__(self, memory: ProxyMemory, to_client: Send, to_server: Send) -> None:
        self.memory, self.to_client, self.to_server = memory, to_client, to_server
        self._consents = Consents()
        self._capabilities: Any = None  # of the client, where it says so once
        self._lock = threading.Lock()
        self._calls: dict[str, _UnderWay] = {}
        self._waiting: dict[str, tuple[str, _UnderWay]] = {}  # by our request: the call's id
        self._lists: set[str] = set()

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
            self._call(call, message, line)
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
        with self._lock:
            ours = next((ours for ours, (held, _) in self._waiting.items() if held == key), "")
            self._waiting.pop(ours, None)
            under_way = self._calls.pop(key, None)
        if ours:
            told = {"requestId": ours, "reason": "the call is cancelled"}
            self._tell({"method": "notifications/cancelled", "params": told})
        if under_way is not None:
            self.memory.keep(under_way.call, under_way.decisions, CANCELLED)
        return bool(ours)

    def _is_our_answer(self, message: Mapping[str, Any]) -> bool:
        """Whether the client answers what we asked; then the call goes on, or does not."""
        ours = message.get("id")
        if not isinstance(ours, str) or not ours.startswith(PREFIX):
            return False
        with self._lock:
            _, waited = self._waiting.pop(ours, ("", None))
        if waited is not None:
            yes = agrees(message.get("result"))
            waited.decisions = [settled(each, yes) for each in waited.decisions]
            self._send(waited, _encoded(waited.message))
        return True

    def _call(self, call: ToolCall, message: dict[str, Any], line: bytes) -> None:
        try:
            agreed = self._consents.answer(call)
        except ValueError as error:
            self._refuse(message.get("id"), _INVALID_PARAMS, str(error))
            return
        if str(call.params.get("requestState", "")).startswith(PREFIX):  # not the server's
            own = ("requestState", "inputResponses")
            params = {key: value for key, value in call.params.items() if key not in own}
            message = {**message, "params": params}
            line = _encoded(message)
        decisions = self.memory.decide(call)
        if agreed is not None:
            decisions = [settled(each, agreed) for each in decisions]
        under_way = _UnderWay(call, decisions, agreed is True, message)
        decision = strictest(decisions)
        capabilities = call.capabilities if call.is_stateless else self._capabilities
        if decision.action != "ask" or "id" not in message or not can_elicit(capabilities):
            self._send(under_way, line)
        elif call.is_stateless:
            self._tell({"id": message["id"], "result": self._consents.ask(call, decision)})
        else:
            ours = f"{PREFIX}{secrets.token_hex(8)}"
            with self._lock:
                self._waiting[ours] = _key(message["id"]), under_way
            self._tell({"id": ours, "method": "elicitation/create", "params": form(call, decision)})

    def _send(self, under_way: _UnderWay, line: bytes) -> None:
        """Let a call run, or answer why it does not."""
        message, decision = under_way.message, strictest(under_way.decisions)
        if decision.action not in ("ask", "deny"):
            if "id" in message:
                with self._lock:
                    self._calls[_key(message["id"])] = under_way
            self.to_server(line)
        elif "id" in message:
            text = {"type": "text", "text": decision.reason}
            more = {"resultType": "complete"} if under_way.call.is_stateless else {}
            result = {**more, "content": [text], "isError": True}
            self._tell({"id": message["id"], "result": result})

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
            self.memory.forget_descriptions()
        if "method" in message or "id" not in message:
            return b""
        key = _key(message["id"])
        with self._lock:
            under_way = self._calls.pop(key, None)
            is_list = key in self._lists
            self._lists.discard(key)
        if under_way is not None:
            return self._ended(under_way, message)
        return self._described(message) if is_list else b""

    def _ended(self, under_way: _UnderWay, message: Mapping[str, Any]) -> bytes:
        """Keep the call; the message with a note, b"" where nothing is added."""
        outcome, result = CallOutcome.read(message), an_object(message.get("result"))
        if outcome is None:
            if under_way.agreed:
                self._consents.goes_on(under_way.call, result)
            return b""
        advice = [strictest(under_way.decisions).advice]
        if outcome.success is False:  # before the call itself is among those that are known
            advice.append(self.memory.advice_after(under_way.call, outcome))
        self.memory.keep(under_way.call, under_way.decisions, outcome)
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
        with self._lock:
            left, self._calls = list(self._calls.values()), {}
        for each in left:
            self.memory.keep(each.call, each.decisions, NO_ANSWER)
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
