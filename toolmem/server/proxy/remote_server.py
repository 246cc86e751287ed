"""The proxy between a host's pipes and a server with an address: streamable HTTP, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import httpx
from mcp.shared.inbound import NAME_BEARING_METHODS, encode_header_value, mcp_param_headers, x_mcp_header_map

from toolmem.server.proxy.called import ProxiedCall
from toolmem.server.proxy.event_stream import EventChunks, message_in
from toolmem.server.proxy.frames import Frame, UnreadableFrame, written
from toolmem.server.proxy.interception import Shared, key_of
from toolmem.server.proxy.piped_client import PipedClient, own_output, stopped_by_signals
from toolmem.server.proxy.reverse_proxy import http_client

log = logging.getLogger("toolmem.proxy")

_ACCEPT = "application/json, text/event-stream"
_LAST_POSTS = 3.0  # seconds that requests under way get once the host has gone
_AGAIN = 1.0  # seconds until a stream that broke off is asked for again, where the server does not say
_MOST_AGAIN = 5  # times that it brings nothing
_UNREACHABLE = -32000


class RemoteProxy(PipedClient):
    """One host, one server; each message is a request of its own."""

    def __init__(self, url: str, shared: Shared, headers: Mapping[str, str], *, read_from: int, write_to: int) -> None:
        super().__init__(shared, read_from=read_from, write_to=write_to)
        self._url = url
        self._headers = dict(headers)
        self._http = http_client(url)
        self._session = ""
        self._version = ""  # of the protocol, as `initialize` settled it
        self._posts: dict[Any, asyncio.Task[None]] = {}  # stateless requests, which are cancelled by being dropped
        self._listening: asyncio.Task[None] | None = None

    async def run(self) -> int:
        self._shared.memory.warm_up()
        requests = asyncio.create_task(self._relay_requests())
        ends = [asyncio.create_task(each.wait()) for each in (self._stopping, self._answers.gone)]
        await asyncio.wait([requests, *ends], return_when=asyncio.FIRST_COMPLETED)
        if self._posts and requests.done():
            await asyncio.wait(list(self._posts.values()), timeout=_LAST_POSTS)
        listening = [self._listening] if self._listening is not None else []
        await self._leave(requests, *ends, *listening, *self._posts.values())
        await self._end_session()
        await self._http.aclose()
        return 0

    async def _end_session(self) -> None:
        if self._session:
            try:
                async with asyncio.timeout(_LAST_POSTS):
                    await self._http.delete(self._url, headers=self._common())
            except (httpx.HTTPError, TimeoutError):
                log.debug("the session was not ended at the server")

    # -- one message

    async def to_server(self, frame: bytes) -> None:
        try:
            value = Frame(frame).value
        except UnreadableFrame:
            value = None
        message = value if isinstance(value, dict) else {}
        call = ProxiedCall.of(message)
        if message.get("method") == "notifications/cancelled" and self._is_dropped(message):
            return
        task = asyncio.create_task(self._posted(frame, message, call))
        key = key_of(message["id"]) if "id" in message and "method" in message else object()
        self._posts[key] = task
        task.add_done_callback(lambda _: self._posts.pop(key, None))
        if "id" not in message or message.get("method") == "initialize":
            await asyncio.wait([task])  # what follows builds on it

    def _is_dropped(self, message: Mapping[str, Any]) -> bool:
        """A stateless request is cancelled by closing its stream, and not by a message."""
        params = message.get("params")
        task = self._posts.get(key_of(params.get("requestId"))) if isinstance(params, dict) else None
        if task is None or self._version:
            return False
        task.cancel()
        return True

    def _common(self) -> dict[str, str]:
        told = {"accept": _ACCEPT, **self._headers}
        if self._session:
            told["mcp-session-id"] = self._session
        if self._version:
            told["mcp-protocol-version"] = self._version
        return told

    def _headers_of(self, message: Mapping[str, Any], call: ProxiedCall) -> dict[str, str]:
        """What a server is told in headers; of a stateless request that is what its body says."""
        told = {**self._common(), "content-type": "application/json"}
        if not call.is_stateless:
            return told
        method = str(message.get("method", ""))
        told["mcp-protocol-version"] = str(call.meta["io.modelcontextprotocol/protocolVersion"])
        told["mcp-method"] = method
        name = call.params.get(NAME_BEARING_METHODS.get(method, ""))
        if isinstance(name, str):
            told["mcp-name"] = encode_header_value(name)
        schema = self._shared.descriptions.declared(call.tool) if method == "tools/call" else None
        if schema is not None and isinstance(call.arguments, dict):
            told |= mcp_param_headers(x_mcp_header_map(schema.parameters), call.arguments)
        return told

    async def _posted(self, frame: bytes, message: Mapping[str, Any], call: ProxiedCall) -> None:
        asks = "id" in message and "method" in message
        try:
            headers = self._headers_of(message, call)
            async with self._http.stream("POST", self._url, content=frame, headers=headers) as response:
                answered = await self._taken(response, message)
        except httpx.HTTPError as error:
            answered = False
            log.warning("the server cannot be reached (%s)", type(error).__name__)
            why = f"the server cannot be reached ({type(error).__name__})"
        else:
            why = f"the server answered HTTP {response.status_code} and no message"
        if asks and not answered:
            said = written({"id": message["id"], "error": {"code": _UNREACHABLE, "message": f"toolmem: {why}"}})
            await self._interception.from_server(said, self)
        if message.get("method") == "notifications/initialized" and self._listening is None:
            self._listening = asyncio.create_task(self._listened())

    async def _taken(self, response: httpx.Response, message: Mapping[str, Any]) -> bool:
        """Pass on what the server answers. Was the message answered?"""
        if message.get("method") == "initialize":
            self._session = response.headers.get("mcp-session-id", "")
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            stream = _EventStream(self, message)
            await stream.read(response)
            while not stream.is_answered and stream.last and await self._resumed(stream):
                pass
            return stream.is_answered
        body = await response.aread()
        if kind != "application/json" or not body.strip():
            return False
        return await self.taken(b" ".join(body.splitlines()), message)

    async def taken(self, frame: bytes, message: Mapping[str, Any]) -> bool:
        """Pass one message on. Is it the answer?"""
        try:
            value = Frame(frame).value
        except UnreadableFrame:
            return False
        told = value if isinstance(value, dict) else {}
        is_answer = "method" not in told and key_of(told.get("id")) == key_of(message.get("id"))
        result = told.get("result")
        if is_answer and message.get("method") == "initialize" and isinstance(result, dict):
            self._version = str(result.get("protocolVersion", ""))
        if "method" in told or "result" in told or is_answer:
            await self._interception.from_server(frame, self)
        return is_answer

    # -- streams

    async def _resumed(self, stream: _EventStream) -> bool:
        """Ask for the rest of a stream that ended early; False where there is none."""
        await asyncio.sleep(stream.wait)
        try:
            headers = {**self._common(), "accept": "text/event-stream", "last-event-id": stream.last}
            async with self._http.stream("GET", self._url, headers=headers) as response:
                if response.status_code != 200:
                    return False
                return await stream.read(response) or stream.is_patient()
        except httpx.HTTPError:
            return stream.is_patient()

    async def _listened(self) -> None:
        """What the server says of its own accord, where it offers a stream for that."""
        stream = _EventStream(self, {})
        while True:
            headers = {**self._common(), "accept": "text/event-stream"}
            headers |= {"last-event-id": stream.last} if stream.last else {}
            try:
                async with self._http.stream("GET", self._url, headers=headers) as response:
                    kind = response.headers.get("content-type", "")
                    if response.status_code != 200 or not kind.startswith("text/event-stream"):
                        return
                    await stream.read(response)
            except httpx.HTTPError as error:
                log.debug("the server's stream broke off (%s)", type(error).__name__)
            await asyncio.sleep(stream.wait)


class _EventStream:
    """The events that answer one message, over as many connections as it takes."""

    def __init__(self, proxy: RemoteProxy, message: Mapping[str, Any]) -> None:
        self._proxy, self._message = proxy, message
        self.last = ""
        self.wait = _AGAIN
        self.is_answered = False
        self._tries = 0

    def is_patient(self) -> bool:
        self._tries += 1
        return self._tries <= _MOST_AGAIN

    async def read(self, response: httpx.Response) -> bool:
        """Until its end. Did it bring anything?"""
        events, brought = EventChunks(), False
        async for chunk in response.aiter_bytes():
            for event in events.feed(chunk):
                brought = True
                self._note(event)
                if (carried := message_in(event)).strip():
                    frame = b" ".join(carried.splitlines())
                    self.is_answered |= await self._proxy.taken(frame, self._message)
        return brought

    def _note(self, event: bytes) -> None:
        for line in event.splitlines():
            name, _, value = line.decode("utf-8", "replace").partition(":")
            if name == "id":
                self.last = value.strip()
            elif name == "retry" and value.strip().isdecimal():
                self.wait = min(int(value) / 1000, 60.0)


async def serve_remote(url: str, shared: Shared, headers: Mapping[str, str]) -> int:
    """Relay between this process's stdin and stdout and a server with an address."""
    async with own_output() as wire:
        proxy = RemoteProxy(url, shared, headers, read_from=0, write_to=wire)
        stopped_by_signals(proxy)
        try:
            return await proxy.run()
        finally:
            await shared.memory.close()
