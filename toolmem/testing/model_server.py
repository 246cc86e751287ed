"""A stand-in for a paid model: a local server with DashScope's and OpenAI's protocols.

    with ModelServer([Fault("cut", every=5)]) as server:
        ...  # llm.default.params.base_url=server.openai_url

Replies are plausible and deterministic; vectors are those of the hashing embedder. `requests` has
every request, without its key.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

import msgspec
from msgspec import Struct

from toolmem.llm.hashing import HashingEmbedder
from toolmem.llm.tokens import estimated_tokens
from toolmem.testing.faults import FAULTS, Behaviour, Fault
from toolmem.testing.scripted import plausible_reply

Protocol = Literal["dashscope", "openai"]
PATHS: dict[str, tuple[Protocol, bool]] = {  # end of the path -> protocol, and whether it embeds
    "/services/aigc/text-generation/generation": ("dashscope", False),
    "/services/embeddings/text-embedding/text-embedding": ("dashscope", True),
    "/chat/completions": ("openai", False),
    "/embeddings": ("openai", True),
}
DIMENSION = 1024


class ModelRequest(Struct):
    """A request as the server saw it."""

    number: int  # from 1
    protocol: Protocol
    body: dict[str, Any]
    prompt: str  # all message texts, or the texts to embed
    texts: list[str]
    parameters: dict[str, Any]
    embeds: bool
    under_way: int  # requests under way at its start, this one included


class ModelServer:
    """A local server that runs inside its `with` block. `key`: the only accepted key; "": any.

    `reply` answers a prompt. `agent` answers the messages of a request that offers tools.
    """

    def __init__(
        self,
        faults: Sequence[Fault] = (),
        *,
        key: str = "",
        reply: Callable[[str], str] = plausible_reply,
        agent: Callable[[list[Any]], dict[str, Any]] | None = None,
        latency: float = 0.0,
        port: int = 0,
    ) -> None:
        self.requests: list[ModelRequest] = []
        self.faults = list(faults)
        self.key = key
        self.reply = reply
        self.agent = agent
        self.latency = latency  # seconds that each answer takes
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._applied = [0] * len(self.faults)
        self._under_way = 0
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.model_server = self
        self.port = int(self._server.server_address[1])
        self.openai_url = f"http://127.0.0.1:{self.port}/v1"
        self.dashscope_url = f"http://127.0.0.1:{self.port}/api/v1"
        serve = partial(self._server.serve_forever, poll_interval=0.02)
        self._thread = threading.Thread(target=serve, daemon=True)

    @property
    def most_under_way(self) -> int:
        return max((each.under_way for each in self.requests), default=0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()

    def take(self, protocol: Protocol, embeds: bool, body: dict[str, Any]) -> ModelRequest:
        """Add a new request to `requests`."""
        inner = body
        parameters = body
        name = "input"
        if protocol == "dashscope":
            inner = body.get("input", {})
            parameters = body.get("parameters", {})
            name = "texts"
        texts = inner.get(name, []) if embeds else []
        contents = [str(each.get("content")) for each in inner.get("messages", [])]
        prompt = "\n".join(texts if embeds else contents)
        with self._lock:
            self._under_way += 1
            number = len(self.requests) + 1
            request = ModelRequest(
                number, protocol, body, prompt, texts, parameters, embeds, self._under_way
            )
            self.requests.append(request)
        return request

    def end(self) -> None:
        """Count a request as answered."""
        with self._lock:
            self._under_way -= 1

    def behaviour(self, request: ModelRequest) -> Behaviour:
        """The behaviour of the first fault that applies, else the default: a plausible reply."""
        with self._lock:
            for index, fault in enumerate(self.faults):
                if fault.applies(request.number, request.prompt, self._applied[index]):
                    self._applied[index] += 1
                    return FAULTS[fault.name]
        return Behaviour()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # with fewer, a burst of clients is refused
    model_server: ModelServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves is no error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        served = next((kind for end, kind in PATHS.items() if self.path.endswith(end)), None)
        if served is None:
            return self._send(404, b"{}")
        server = self.server.model_server
        request = server.take(*served, msgspec.json.decode(content))
        try:
            given = self.headers.get("Authorization", "").removeprefix("Bearer ").strip()
            behaviour = server.behaviour(request)
            if server.key and given != server.key:
                behaviour = FAULTS["unauthorized"]
            self._answer(request, behaviour, server)
        finally:
            server.end()

    def _answer(self, request: ModelRequest, behaviour: Behaviour, server: ModelServer) -> None:
        if behaviour.hangs:
            server.stopping.wait()
        time.sleep(server.latency)
        if behaviour.cut == "before" or behaviour.hangs:
            return self._cut()
        error = behaviour.error
        status = behaviour.status
        refused = behaviour.refuses
        if refused in request.parameters:
            message = f"Unsupported parameter: '{refused}' is not supported with this model"
            instead = ", use max_completion_tokens instead" if refused == "max_tokens" else ""
            status = 400
            error = ("InvalidParameter", message + instead)
        headers = {"Retry-After": behaviour.retry_after} if behaviour.retry_after else {}
        if behaviour.body is not None:
            return self._send(status, behaviour.body, headers)
        if error is not None:
            code, message = error
            if request.protocol == "openai":
                answer: Any = {"error": {"message": message, "type": code, "code": code}}
            else:
                answer = {"code": code, "message": message, "request_id": "loopback"}
            return self._send(status, msgspec.json.encode(answer), headers)
        if request.parameters.get("stream"):
            return self._stream(server.reply(request.prompt))
        body = msgspec.json.encode(_reply(request, behaviour, server))
        self._send(status, body, headers, is_whole=behaviour.cut != "within")

    def _send(
        self, status: int, body: bytes, headers: Mapping[str, str] = {}, is_whole: bool = True
    ) -> None:
        kind = "text/html" if body.startswith(b"<") else "application/json"
        lines = {"Content-Type": kind, "Content-Length": str(len(body)), **headers}
        head = f"HTTP/1.1 {status} -\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items())
        self.wfile.write(f"{head}\r\n".encode() + (body if is_whole else body[: len(body) // 2]))
        if not is_whole:
            self._cut()

    def _stream(self, text: str) -> None:
        """The reply in pieces, as server-sent events."""
        pieces: list[Any] = [
            {"choices": [{"delta": {"content": text[start : start + 20]}}]}
            for start in range(0, len(text), 20)
        ]
        pieces.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        events = "".join(f"data: {msgspec.json.encode(each).decode()}\n\n" for each in pieces)
        body = f"{events}data: [DONE]\n\n".encode()
        self._send(200, body, {"Content-Type": "text/event-stream"})

    def _cut(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


def _reply(request: ModelRequest, behaviour: Behaviour, server: ModelServer) -> dict[str, Any]:
    is_openai = request.protocol == "openai"
    if request.embeds:
        dimension = request.parameters.get("dimensions" if is_openai else "dimension") or DIMENSION
        vectors = HashingEmbedder(dimension).embed(request.texts).tolist()
        name = "index" if is_openai else "text_index"
        items = [{name: place, "embedding": vector} for place, vector in enumerate(vectors)]
        unit = "prompt_tokens" if is_openai else "total_tokens"
        body = {"data": items} if is_openai else {"output": {"embeddings": items}}
        return {**body, "usage": {unit: estimated_tokens(request.prompt)}}
    text = server.reply(request.prompt) if behaviour.text is None else behaviour.text
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if server.agent is not None and request.body.get("tools"):
        message = {"role": "assistant", **server.agent(request.body["messages"])}
    answer = {"choices": [{"finish_reason": behaviour.finish_reason, "message": message}]}
    prompt_tokens = estimated_tokens(request.prompt)
    reply_tokens = estimated_tokens(text)
    usage = {"input_tokens": prompt_tokens, "output_tokens": reply_tokens}
    if is_openai:
        usage = {"prompt_tokens": prompt_tokens, "completion_tokens": reply_tokens}
    body = answer if is_openai else {"output": answer}
    return {**body, "usage": usage if behaviour.has_usage else {}}
