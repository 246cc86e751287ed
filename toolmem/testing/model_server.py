"""A model service on this machine: DashScope's protocol and OpenAI's, chat and embeddings, without streaming.

    with ModelServer(Script.failing("cut", every=5)) as server:
        ...  # llm.default.params.base_url=server.dashscope_url
    assert server.most_in_flight <= 8

It is what toolmem's own tests run the real SDKs against. Replies are plausible and always alike, embeddings are those
of the hashing embedder, usage is counted with the Qwen tokenizer. Every request is kept, without its key.
"""

from __future__ import annotations

import asyncio
import itertools
import time

from aiohttp import web

from toolmem.testing.loopback_server import LoopbackServer
from toolmem.testing.model_answers import ModelRequest, Protocol, error_body, read_object, reply_body, route
from toolmem.testing.model_script import Behaviour, Script

SECRET_HEADERS = ("authorization", "api-key", "x-api-key")


class ModelServer(LoopbackServer):
    """Runs in a thread of its own, on 127.0.0.1, from `start` (or `with`) to `stop`. `port` 0: any free one."""

    def __init__(self, script: Script | None = None, *, port: int = 0) -> None:
        super().__init__(port=port)
        self.script = script or Script()
        self.requests: list[ModelRequest] = []
        self.most_in_flight = 0
        self._in_flight = 0
        self._numbers = itertools.count(1)

    # -- addresses and figures

    @property
    def dashscope_url(self) -> str:
        """For `base_url` of the backend `dashscope`."""
        return f"http://127.0.0.1:{self._port}/api/v1"

    @property
    def openai_url(self) -> str:
        """For `base_url` of the backend `openai_compatible`."""
        return f"http://127.0.0.1:{self._port}/compatible-mode/v1"

    @property
    def in_flight(self) -> int:
        return self._in_flight

    def starts(self) -> list[float]:
        """When requests came, in seconds after the first one."""
        times = [request.started for request in self.requests]
        return [moment - times[0] for moment in times]

    def shortest_gap(self) -> float:
        """Seconds between the two requests that came closest after each other; infinite with fewer than two."""
        times = [request.started for request in self.requests]
        return min((later - earlier for earlier, later in itertools.pairwise(times)), default=float("inf"))

    # -- answering

    async def handle(self, http: web.Request) -> web.StreamResponse:
        served = route(http.path)
        if served is None or http.method != "POST":
            there = "there are POST .../services/aigc/text-generation/generation, .../chat/completions, ..."
            return _error("dashscope", 404, "InvalidURL", f"{http.method} {http.path}: not served; {there}")
        body = await http.read()
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        headers = {name.lower(): value for name, value in http.headers.items()}
        key = headers.get("authorization", "").removeprefix("Bearer ").strip()
        asked = ModelRequest(
            number=next(self._numbers),
            started=time.monotonic(),
            path=http.path,
            protocol=served[0],
            kind=served[1],
            body=read_object(body),
            headers={name: value for name, value in headers.items() if name not in SECRET_HEADERS},
            in_flight=self._in_flight,
        )
        self.requests.append(asked)
        try:
            return await self._answer(asked, key, http)
        finally:
            self._in_flight -= 1
            asked.finished = time.monotonic()

    async def _answer(self, asked: ModelRequest, key: str, http: web.Request) -> web.StreamResponse:
        if (not key and self.script.key is None) or (self.script.key is not None and key != self.script.key):
            asked.behaviour, asked.status = "unauthorized", 401
            return _error(asked.protocol, 401, "InvalidApiKey", "Invalid API-key provided.")
        if asked.problem:
            asked.behaviour, asked.status = "bad_request", 400
            return _error(asked.protocol, 400, "InvalidParameter", asked.problem)
        behaviour = self.script.behaviour(asked.kind, asked.prompt)
        asked.behaviour = behaviour.name
        if behaviour.hang:
            await asyncio.Event().wait()  # until the client leaves or the server stops
        if self.script.latency + behaviour.delay > 0:
            await asyncio.sleep(self.script.latency + behaviour.delay)
        answer = self._scripted(asked, behaviour)
        asked.status = behaviour.status
        await _cut(behaviour, http, answer)
        return answer

    def _scripted(self, asked: ModelRequest, behaviour: Behaviour) -> web.Response:
        request_id = f"loopback-{asked.number}"
        headers = {"Content-Type": "application/json", **dict(behaviour.headers)}
        if behaviour.retry_after is not None:
            headers["Retry-After"] = str(behaviour.retry_after)
        if behaviour.body is not None:
            body = behaviour.body
            headers["Content-Type"] = "text/html" if body.startswith(b"<") else "application/json"
        elif behaviour.error is not None:
            body = error_body(asked.protocol, *behaviour.error, request_id)
        else:
            body = reply_body(asked, behaviour, self.script, request_id)
        return web.Response(status=behaviour.status, body=body, headers=headers)


async def _cut(behaviour: Behaviour, http: web.Request, answer: web.Response) -> None:
    """Reset the connection in place of (the end of) the answer."""
    if not behaviour.cut or http.transport is None:
        return
    if behaviour.cut == "within":
        body = answer.body
        assert isinstance(body, bytes)
        begun = web.StreamResponse(status=answer.status, headers=answer.headers)
        begun.content_length = len(body)
        await begun.prepare(http)
        await begun.write(body[: len(body) // 2])
        http.transport.close()
    else:
        http.transport.abort()


def _error(protocol: Protocol, status: int, code: str, message: str) -> web.Response:
    body = error_body(protocol, code, message, "loopback")
    return web.Response(status=status, body=body, content_type="application/json")
