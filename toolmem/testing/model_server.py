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
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from toolmem.testing.model_answers import Asked, error_body, read_body, reply_body, route
from toolmem.testing.model_http import HttpAnswer, HttpConnection, HttpRequest
from toolmem.testing.model_script import Behaviour, Script

BACKLOG = 256  # connections that may wait to be accepted; with the usual 100 a burst of clients gets resets
SECRET_HEADERS = ("authorization", "api-key", "x-api-key")


@dataclass(slots=True)
class ModelRequest:
    """One request as the server saw it. Times are in seconds of `time.monotonic`."""

    number: int  # from 1, in order of arrival
    started: float  # when it had arrived whole
    path: str
    kind: str  # "chat" or "embedding"
    protocol: str  # "dashscope" or "openai"
    model: str
    prompt: str
    texts: list[str]  # to embed
    body: dict[str, Any]
    headers: dict[str, str]  # names in lower case, without those that hold a key
    in_flight: int  # requests being answered at its start, itself among them
    behaviour: str = "ok"  # name
    status: int | None = None  # None: not answered (yet)
    finished: float | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(slots=True)
class _State:
    """What belongs to the thread of a running server."""

    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event = field(default_factory=asyncio.Event)


class ModelServer:
    """Runs in a thread of its own, on 127.0.0.1, from `start` (or `with`) to `stop`. `port` 0: any free one."""

    def __init__(self, script: Script | None = None, *, port: int = 0) -> None:
        self.script = script or Script()
        self.requests: list[ModelRequest] = []
        self.most_in_flight = 0
        self.connections_made = 0
        self._port = port
        self._in_flight = 0
        self._numbers = itertools.count(1)
        self._connections: set[HttpConnection] = set()
        self._thread: threading.Thread | None = None
        self._state: _State | None = None

    # -- running

    def start(self) -> ModelServer:
        """Raises OSError where the port is taken."""
        listener = socket.create_server(("127.0.0.1", self._port), backlog=BACKLOG)
        self._port = listener.getsockname()[1]
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(listener, ready)), name="model server", daemon=True
        )
        self._thread.start()
        ready.wait()
        return self

    def stop(self) -> None:
        """Ends at once; requests that are being answered are cut."""
        if self._thread is not None and self._state is not None:
            self._state.loop.call_soon_threadsafe(self._state.stop.set)
            self._thread.join()
        self._thread = self._state = None

    def __enter__(self) -> ModelServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def _serve(self, listener: socket.socket, ready: threading.Event) -> None:
        loop = asyncio.get_running_loop()
        self._state = _State(loop)
        server = await loop.create_server(self._connection, sock=listener, backlog=BACKLOG)
        ready.set()
        await self._state.stop.wait()
        server.close()
        for connection in list(self._connections):
            connection.close()
        await server.wait_closed()

    def _connection(self) -> HttpConnection:
        self.connections_made += 1
        return HttpConnection(self._handle, self._connections)

    # -- addresses and figures

    @property
    def port(self) -> int:
        return self._port

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

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    def starts(self) -> list[float]:
        """When requests came, in seconds after the first one."""
        times = [request.started for request in self.requests]
        return [moment - times[0] for moment in times]

    def shortest_gap(self) -> float:
        """Seconds between the two requests that came closest after each other; infinite with fewer than two."""
        times = [request.started for request in self.requests]
        return min((later - earlier for earlier, later in itertools.pairwise(times)), default=float("inf"))

    # -- answering

    async def _handle(self, http: HttpRequest) -> HttpAnswer:
        served = route(http.path)
        if served is None or http.method != "POST":
            there = ", ".join(("POST .../services/aigc/text-generation/generation", ".../chat/completions"))
            return _error(
                "dashscope", 404, "InvalidURL", f"{http.method} {http.path}: not served; there are {there}, ..."
            )
        body = http.json()
        asked = read_body(*served, body)
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        record = ModelRequest(
            number=next(self._numbers),
            started=time.monotonic(),
            path=http.path,
            kind=asked.kind,
            protocol=asked.protocol,
            model=asked.model,
            prompt=asked.prompt,
            texts=asked.texts,
            body=body if isinstance(body, dict) else {},
            headers={name: value for name, value in http.headers.items() if name not in SECRET_HEADERS},
            in_flight=self._in_flight,
        )
        self.requests.append(record)
        try:
            answer = await self._answer(asked, record, http.headers.get("authorization", ""))
            record.status = answer.status
            return answer
        finally:
            self._in_flight -= 1
            record.finished = time.monotonic()

    async def _answer(self, asked: Asked, record: ModelRequest, authorization: str) -> HttpAnswer:
        key = authorization.removeprefix("Bearer ").strip()
        if (not key and self.script.key is None) or (self.script.key is not None and key != self.script.key):
            record.behaviour = "unauthorized"
            return _error(asked.protocol, 401, "InvalidApiKey", "Invalid API-key provided.")
        if asked.problem:
            record.behaviour = "bad_request"
            return _error(asked.protocol, 400, "InvalidParameter", asked.problem)
        behaviour = self.script.behaviour(asked.kind, asked.prompt)
        record.behaviour = behaviour.name
        if behaviour.hang:
            await asyncio.Event().wait()  # until the client leaves or the server stops
        if self.script.latency + behaviour.delay > 0:
            await asyncio.sleep(self.script.latency + behaviour.delay)
        return self._scripted(asked, behaviour, record)

    def _scripted(self, asked: Asked, behaviour: Behaviour, record: ModelRequest) -> HttpAnswer:
        request_id = f"loopback-{record.number}"
        headers = dict(behaviour.headers)
        if behaviour.retry_after is not None:
            headers["Retry-After"] = str(behaviour.retry_after)
        if behaviour.body is not None:
            body = behaviour.body
            headers["Content-Type"] = "text/html" if body.startswith(b"<") else "application/json"
        elif behaviour.error is not None:
            body = error_body(asked.protocol, *behaviour.error, request_id)
        else:
            body, record.prompt_tokens, record.completion_tokens = reply_body(asked, behaviour, self.script, request_id)
        return HttpAnswer(behaviour.status, body, headers, behaviour.cut)


def _error(protocol: Any, status: int, code: str, message: str) -> HttpAnswer:
    return HttpAnswer(status, error_body(protocol, code, message, "loopback"), {})


def serve(
    port: int = 8765, script: Script | None = None, on_start: Callable[[ModelServer], None] | None = None
) -> None:
    """Serve until interrupted (KeyboardInterrupt is raised again). `on_start` gets the running server, to print its
    addresses. Raises OSError where the port is taken."""
    with ModelServer(script, port=port) as server:
        if on_start is not None:
            on_start(server)
        threading.Event().wait()
