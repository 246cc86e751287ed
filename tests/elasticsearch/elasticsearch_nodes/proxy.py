"""A loopback proxy before a real server, which loses answers, rejects requests or goes silent when a test says so."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import ClientSession, web

# What a fault answers: None (not mine), "drop before", "drop after" (the server did it, nobody hears of it), "silence",
# a reply of its own, or what to make of the server's reply.
Answer = str | web.Response | Callable[[bytes], bytes] | None
Fault = Callable[[str, bytes], Answer]


@dataclass
class Proxy:
    """`seen`: "METHOD path" of every request, without query. `faults`: asked in turn, the first that answers wins.
    `tls`: its certificate, where it is to speak https."""

    upstream: str
    seen: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    url: str = ""
    tls: ssl.SSLContext | None = None

    async def __aenter__(self) -> Proxy:
        self._client = ClientSession()
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self.tls)
        await site.start()
        (address,) = self._runner.addresses
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{address[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        name = f"{request.method} {request.path}"
        self.seen.append(name)
        answer: Answer = None
        for fault in list(self.faults):
            answer = fault(name, body)
            if answer is not None:
                break
        if isinstance(answer, web.Response):
            return answer
        if answer == "drop before":
            return self._cut(request)
        if answer == "silence":
            await asyncio.sleep(3600)
        headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
        async with self._client.request(
            request.method, self.upstream + str(request.rel_url), data=body, headers=headers, skip_auto_headers=("*",)
        ) as reply:
            content = await reply.read()
        if callable(answer):
            content = answer(content)
        if answer == "drop after":
            return self._cut(request)
        kept = {name: reply.headers[name] for name in ("X-elastic-product", "Content-Type") if name in reply.headers}
        return web.Response(body=content, status=reply.status, headers=kept)

    @staticmethod
    def _cut(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()


def once(pattern: str, answer: str | Callable[[], Answer], *, times: int = 1) -> Fault:
    """A fault for the first `times` requests whose name holds the pattern."""
    left = times

    def fault(name: str, body: bytes) -> Answer:
        nonlocal left
        if pattern in name and left > 0:
            left -= 1
            return answer if isinstance(answer, str) else answer()
        return None

    return fault


def rejection(status: int = 429, reason: str = "es_rejected_execution_exception") -> Callable[[], web.Response]:
    """As the server answers under load."""

    def answer() -> web.Response:
        return reply({"error": {"type": reason, "reason": "rejected execution"}, "status": status}, status)

    return answer


def reply(body: object, status: int = 200) -> web.Response:
    return web.Response(
        body=json.dumps(body),
        status=status,
        headers={"X-elastic-product": "Elasticsearch", "Content-Type": "application/json"},
    )
