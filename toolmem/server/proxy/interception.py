"""What a proxy does with each message of one connection, whatever carries it.

Calls of tools are held against the memory before they run and kept when they ended; descriptions of tools gain what is
known of them. Everything else passes as it came.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import OrderedDict
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from toolmem.guard.decision import STOPPED
from toolmem.server.proxy.called import CANCELLED, NO_ANSWER, CallEnd, ProxiedCall, can_elicit
from toolmem.server.proxy.consents import Consents, agrees, question
from toolmem.server.proxy.descriptions import ToolDescriptions
from toolmem.server.proxy.frames import Frame, UnreadableFrame, id_at_head, written
from toolmem.session.consent import Consent

if TYPE_CHECKING:
    from toolmem.guard.decision import GuardDecision
    from toolmem.server.proxy.memory import ProxyMemory

Rest = Coroutine[Any, Any, None] | None  # what is left to do once the user has answered

_INVALID_REQUEST, _INVALID_PARAMS = -32600, -32602
_MOST_UNDER_WAY = 10_000
_OUR_REQUEST = "toolmem-ask-"
_NOTE_META = {"toolmem/note": True}


class Link(Protocol):
    """Both ends of a connection."""

    async def to_client(self, frame: bytes, /) -> None: ...

    async def to_server(self, frame: bytes, /) -> None: ...


class Shared:
    """What the connections of a process have in common."""

    def __init__(self, memory: ProxyMemory) -> None:
        self.memory = memory
        self.descriptions = ToolDescriptions(memory)
        self.consents = Consents()


class _UnderWay:
    """A call that the server works on."""

    __slots__ = ("agreed", "call", "decision")

    def __init__(self, call: ProxiedCall, decision: GuardDecision, *, agreed: bool) -> None:
        self.call, self.decision, self.agreed = call, decision, agreed


class Interception:
    """One connection between a client and a server. `conversation`: "" where calls of one cannot be told apart."""

    def __init__(self, shared: Shared, conversation: str) -> None:
        self.conversation = conversation
        self._shared = shared
        self._memory = shared.memory
        self._capabilities: Any = None  # of the client, where it says so once
        self._calls: OrderedDict[Any, _UnderWay] = OrderedDict()
        self._tasks: OrderedDict[str, _UnderWay] = OrderedDict()  # calls that go on as a task of the server's
        self._lists: OrderedDict[Any, None] = OrderedDict()
        self._asked: dict[str, asyncio.Future[bool]] = {}  # our requests to the client
        self._asking: dict[Any, tuple[str, Link]] = {}  # calls that wait for the user -> our request, and where

    # -- from the client

    async def from_client(self, raw: bytes, link: Link) -> Rest:
        """Pass a message on, or answer it. What it answers is still to be awaited: the user is being asked."""
        try:
            frame = Frame(raw)
        except UnreadableFrame:
            await self._unreadable(raw, link)
            return None
        if isinstance(frame.value, list):
            await link.to_client(
                _error(None, _INVALID_REQUEST, "Invalid Request: MCP has no batches: one message each")
            )
            return None
        message = frame.value if isinstance(frame.value, dict) else {}
        method = message.get("method")
        if method == "tools/call":
            return await self._call(frame, link)
        if method == "notifications/cancelled" and await self._cancelled(message):
            return None
        if method is None and self._is_answered(message):
            return None
        self._note(method, message)
        await link.to_server(raw)
        return None

    async def _unreadable(self, raw: bytes, link: Link) -> None:
        """What a server might read as a call of a tool does not pass unread."""
        if b"tools/call" not in raw:
            await link.to_server(raw)
            return
        await link.to_client(_error(id_at_head(raw), _INVALID_REQUEST, f"{STOPPED}: the message cannot be read"))

    def _note(self, method: Any, message: Mapping[str, Any]) -> None:
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if method == "initialize":
            self._capabilities = params.get("capabilities")
        elif method == "tools/list":
            _put(self._lists, key_of(message.get("id")), None)
        elif method == "tasks/result" and (call := self._tasks.pop(str(params.get("taskId")), None)) is not None:
            _put(self._calls, key_of(message.get("id")), call)

    async def _cancelled(self, message: Mapping[str, Any]) -> bool:
        """Note that the client cancels a call. Is the server to hear nothing of it?

        It knows nothing of one that waited for the user. And without a conversation the id may be any client's.
        """
        params = message.get("params")
        key = key_of(params.get("requestId")) if isinstance(params, dict) else None
        if key in self._asking:
            asked, there = self._asking.pop(key)
            told = {"requestId": asked, "reason": "the call that this was asked for is cancelled"}
            await there.to_client(written({"method": "notifications/cancelled", "params": told}))
            if (answer := self._asked.pop(asked, None)) is not None:
                answer.cancel()
            return True
        if (under_way := self._calls.pop(key, None)) is not None:
            await self._keep(under_way, CANCELLED)
            return False
        return not self.conversation

    def _is_answered(self, message: Mapping[str, Any]) -> bool:
        """Is it the client's answer to a question of ours?"""
        told = message.get("id")
        if not isinstance(told, str) or not told.startswith(_OUR_REQUEST):
            return False
        asked = self._asked.pop(told, None)
        if asked is not None and not asked.done():
            asked.set_result(agrees(message.get("result")))
        return True

    # -- a call

    async def _call(self, frame: Frame, link: Link) -> Rest:
        message, raw = frame.value, frame.raw
        call = ProxiedCall.of(message)
        if not call.tool:
            await link.to_server(raw)  # the server says what is wrong with it
            return None
        consents = self._shared.consents
        answer = consents.answer(call)
        if answer == "forged":
            text = f"{STOPPED}: the requestState is not valid for this call, or was used before"
            await link.to_client(_error(message.get("id"), _INVALID_PARAMS, text))
            return None
        if answer:
            raw = frame.without("params", "requestState", "inputResponses")
        elif consents.goes_on(call):
            answer = "agreed"
        decision = await self._memory.decide(
            call, call.session or self.conversation, self._shared.descriptions.declared(call.tool)
        )
        if decision.action == "ask" and answer:
            decision = await _settled(decision, agreed=answer == "agreed")
        if decision.action == "ask" and "id" in message:
            if call.is_stateless and can_elicit(call.capabilities):
                form = question(call, decision, shows_arguments=self._memory.options.arguments)
                await link.to_client(written({"id": message["id"], "result": consents.asks(call, form)}))
                return None
            if not call.is_stateless and can_elicit(self._capabilities):
                return await self._ask(call, decision, message["id"], raw, link)
        await self._send(call, decision, message, raw, link, agreed=answer == "agreed")
        return None

    async def _ask(self, call: ProxiedCall, decision: GuardDecision, id: Any, raw: bytes, link: Link) -> Rest:
        """Ask the client's user; the call waits."""
        name = f"{_OUR_REQUEST}{secrets.token_hex(8)}"
        answer = self._asked[name] = asyncio.get_running_loop().create_future()
        self._asking[key_of(id)] = name, link
        form = question(call, decision, shows_arguments=self._memory.options.arguments)
        await link.to_client(written({"id": name, "method": "elicitation/create", "params": form}))

        async def rest() -> None:
            try:
                settled = await _settled(decision, agreed=await answer)
            except asyncio.CancelledError:
                if not answer.cancelled():
                    raise
                return
            finally:
                self._asking.pop(key_of(id), None)
            await self._send(call, settled, {"id": id}, raw, link)

        return rest()

    async def _send(
        self,
        call: ProxiedCall,
        decision: GuardDecision,
        message: Mapping[str, Any],
        raw: bytes,
        link: Link,
        *,
        agreed: bool = False,
    ) -> None:
        """Let a call run, or answer why it does not."""
        if not decision.stops:
            if "id" in message:
                _put(self._calls, key_of(message["id"]), _UnderWay(call, decision, agreed=agreed))
            await link.to_server(raw)
            return
        await self._memory.not_run(call, call.session or self.conversation, decision)
        if "id" in message:
            told: dict[str, Any] = {"content": [{"type": "text", "text": decision.reason}], "isError": True}
            more = {"resultType": "complete"} if call.is_stateless else {}
            await link.to_client(written({"id": message["id"], "result": {**more, **told}}))

    # -- from the server

    async def from_server(self, raw: bytes, link: Link) -> None:
        """Pass a message on, with what is added to it; what a call came to is kept before the client knows it."""
        await link.to_client(await self.seen(raw))

    async def seen(self, raw: bytes) -> bytes:
        """A message of the server as the client is to see it."""
        if not self._calls and not self._lists and b"list_changed" not in raw:
            return raw
        try:
            frame = Frame(raw)
        except UnreadableFrame:
            return raw
        message = frame.value if isinstance(frame.value, dict) else {}
        if message.get("method") == "notifications/tools/list_changed":
            self._shared.descriptions.list_changed()
        if "method" in message or "id" not in message:
            return raw
        key = key_of(message["id"])
        if key in self._lists:
            del self._lists[key]
            return await self._shared.descriptions.added_to(frame)
        under_way = self._calls.pop(key, None)
        return raw if under_way is None else await self._ended(under_way, frame)

    async def _ended(self, under_way: _UnderWay, frame: Frame) -> bytes:
        end = CallEnd.of(frame.value)
        if end is not None:
            await self._keep(under_way, end)
            advice = under_way.decision.advice if under_way.decision.action == "advise" else ""
            if end.success is False:
                shown = await self._memory.told_of(under_way.call, under_way.call.session or self.conversation, end)
                advice = "\n".join(filter(None, (advice, shown)))
            return _with_note(frame, advice) if advice else frame.raw
        result = frame.value["result"]
        task = result.get("task")
        if isinstance(task, dict) and isinstance(task.get("taskId"), str):
            _put(self._tasks, task["taskId"], under_way)
        elif under_way.agreed:
            self._shared.consents.go_on(under_way.call, result)
        return frame.raw

    async def _keep(self, under_way: _UnderWay, end: CallEnd) -> None:
        call = under_way.call
        await self._memory.keep(call, call.session or self.conversation, under_way.decision, end)

    async def left(self, end: CallEnd = NO_ANSWER) -> None:
        """The connection is over: what was not answered never will be."""
        waiting = [*self._calls.values(), *self._tasks.values()]
        self._calls.clear()
        self._tasks.clear()
        for each in waiting:
            await self._keep(each, end)
        for asked in self._asked.values():
            asked.cancel()


async def _settled(decision: GuardDecision, *, agreed: bool) -> GuardDecision:
    return await Consent(lambda _: agreed).settled(decision)


def _with_note(frame: Frame, advice: str) -> bytes:
    """The result with what the guard advised, in a block of its own that says whose it is."""
    block = {"type": "text", "text": f"[Added by toolmem] {advice}", "_meta": _NOTE_META}
    span = frame.span("result", "content")
    content = frame.value.get("result", {}).get("content") if span is not None else None
    if not isinstance(content, list) or span is None:
        return frame.raw
    end = span[1] - 1
    return frame.edited([(end, end, ("," if content else "") + json.dumps(block))])


def _error(id: Any, code: int, message: str) -> bytes:
    return written({"id": id, "error": {"code": code, "message": message}})


def key_of(id: Any) -> Any:
    """Ids that are equal as JSON, and no others."""
    return (isinstance(id, str), id) if isinstance(id, str | int | float) else (None, json.dumps(id))


def _put(known: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    known[key] = value
    if len(known) > _MOST_UNDER_WAY:
        known.popitem(last=False)
