"""Connect this process's pipes to a server at a URL."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared import inbound
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

from toolmem.config.environment import is_local
from toolmem.server.proxy.call import PROTOCOL_VERSION
from toolmem.server.proxy.child import line_writer, relay_lines
from toolmem.server.proxy.memory import ProxyMemory
from toolmem.server.proxy.relay import Relay
from toolmem.text.forms import as_object

log = logging.getLogger("toolmem.proxy")
CONNECT_TIMEOUT = 30.0  # seconds
READ_TIMEOUT = 300.0  # seconds between two messages of a stream


def run_remote(url: str, headers: Mapping[str, str], memory: ProxyMemory) -> int:
    """Relay between the host and the server at `url` until the host ends. Returns 0."""
    anyio.run(_Remote(url, headers, memory).run)
    return 0


class _Remote:
    def __init__(self, url: str, headers: Mapping[str, str], memory: ProxyMemory) -> None:
        self.url = url
        self.headers = headers
        self.memory = memory
        self._version = ""  # of the protocol, as the server chose it for a session
        self._initialize: Any = None  # id of the open `initialize` request

    async def run(self) -> None:
        client = _Client(
            headers=dict(self.headers),
            timeout=httpx2.Timeout(CONNECT_TIMEOUT, read=READ_TIMEOUT),
            trust_env=not is_local(self.url),
        )
        async with (
            client,
            streamable_http_client(self.url, http_client=client, max_sse_event_size=None) as pipes,
            anyio.from_thread.BlockingPortal() as portal,
        ):
            from_server, to_server = pipes

            def send(message: bytes) -> None:
                parsed = jsonrpc_message_adapter.validate_json(message, by_name=False)
                metadata = ClientMessageMetadata(headers=self._headers_of(parsed))
                portal.call(to_server.send, SessionMessage(parsed, metadata=metadata))

            relay = Relay(self.memory, line_writer(sys.stdout.buffer), send)
            is_over = anyio.Event()

            def requests() -> None:
                relay_lines(sys.stdin.buffer, relay.from_client)
                portal.call(is_over.set)

            threading.Thread(target=requests, daemon=True).start()
            async with anyio.create_task_group() as group:
                group.start_soon(self._relay_answers, from_server, relay)
                await is_over.wait()
                group.cancel_scope.cancel()
            relay.close()

    async def _relay_answers(self, from_server: Any, relay: Relay) -> None:
        async for each in from_server:
            if isinstance(each, Exception):
                log.warning("the server's message cannot be read: %s", each)
                continue
            message = each.message
            if self._initialize is not None and getattr(message, "id", None) == self._initialize:
                self._version = str(as_object(message.result).get("protocolVersion", ""))
                self._initialize = None
            text = message.model_dump_json(by_alias=True, exclude_unset=True)
            await anyio.to_thread.run_sync(relay.from_server, text.encode())

    def _headers_of(self, message: JSONRPCMessage) -> dict[str, str]:
        """HTTP headers: the protocol version; since 2026-07-28 also the method and the name."""
        method = getattr(message, "method", "")
        params = as_object(getattr(message, "params", None))
        if method == "initialize":
            self._initialize = getattr(message, "id", None)
            return {}
        version = as_object(params.get("_meta")).get(PROTOCOL_VERSION)
        if not isinstance(version, str):
            return {inbound.MCP_PROTOCOL_VERSION_HEADER: self._version} if self._version else {}
        headers = {inbound.MCP_PROTOCOL_VERSION_HEADER: version, inbound.MCP_METHOD_HEADER: method}
        name = params.get(inbound.NAME_BEARING_METHODS.get(method, ""))
        if isinstance(name, str):
            headers[inbound.MCP_NAME_HEADER] = inbound.encode_header_value(name)
        return headers


class _Client(httpx2.AsyncClient):
    """Answers with an error, instead of raising one, if the server cannot be reached."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            return await super().send(request, **options)
        except httpx2.TransportError as error:
            message = f"the server cannot be reached: {type(error).__name__}: {error}"
            log.error("%s", message)
            body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": message}}
            return httpx2.Response(502, json=body, request=request)
