"""A scripted model on loopback: Anthropic Messages, OpenAI Responses and Chat, Gemini; streaming.

Turns are answered in order to requests that offer tools; then the model says "Done.". Requests
without tools (titles, summaries) use up no turn.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Asked(NamedTuple):
    """A tool call that the model asks for."""

    tool: str
    arguments: dict[str, Any]


Turn = str | Asked | list[Asked]


class Request(NamedTuple):
    """What an agent sent: all that the model reads, and the results of tools by call id."""

    texts: list[str]
    results: dict[str, str]
    tools: bool
    calls: list[str] = []  # ids of the calls that it was answered with

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


class Model:
    """The server; `requests` holds those that used up a turn or were answered "Done."."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._turns: deque[Turn] = deque()
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                self._send(200, b'{"object": "list", "data": [], "models": []}')

            def do_HEAD(self) -> None:
                self._send(200, b"")

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                raw = self.rfile.read(length) if length else self._chunks()
                body = json.loads(raw or b"{}")
                path = self.path.partition("?")[0]
                if "count" in path.lower():
                    self._send(200, b'{"input_tokens": 100, "totalTokens": 100}')
                    return
                status, kind, answer = model.answer(path, body)
                self._send(status, answer, kind)

            def _chunks(self) -> bytes:
                found = b""
                if self.headers.get("transfer-encoding") == "chunked":
                    while size := int(self.rfile.readline(), 16):
                        found += self.rfile.read(size)
                        self.rfile.readline()
                    self.rfile.readline()
                return found

            def _send(self, status: int, data: bytes, kind: str = "application/json") -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def then(self, *turns: Turn) -> None:
        """What the model does next; a list of calls is asked for at once."""
        self._turns = deque(turns)

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, str, bytes]:
        """Status, content type and body."""
        form = next((form for end, form in _FORMS.items() if end in path), None)
        if form is None:
            return 404, "application/json", b'{"error": {"message": "not served"}}'
        read, write, stream = form
        request = read(body)
        with self._lock:
            number = next(self._ids)
            text, calls = "A summary.", []
            if request.tools:
                turn = self._turns.popleft() if self._turns else "Done."
                text = turn if isinstance(turn, str) else ""
                prefix = "toolu_" if "messages" in path else "call_"
                asked = [turn] if isinstance(turn, Asked) else [] if text else list(turn)
                calls = [(f"{prefix}loop{number}_{n}", each) for n, each in enumerate(asked)]
                self.requests.append(request._replace(calls=[each for each, _ in calls]))
        if body.get("stream") or "stream" in path:
            data = stream(number, body.get("model", "scripted"), text, calls)
            return 200, "text/event-stream", "".join(data).encode()
        value = write(number, body.get("model", "scripted"), text, calls)
        return 200, "application/json", json.dumps(value).encode()


Calls = list[tuple[str, Asked]]


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, dict) and "text" in part]


def _sse(kind: str, **data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"


# ---------------------------------------------------------------- Anthropic Messages


def _read_messages(body: dict[str, Any]) -> Request:
    texts, results = _texts(body.get("system")), {}
    for message in body.get("messages", []):
        texts += _texts(message["content"])
        for part in message["content"] if isinstance(message["content"], list) else []:
            if part.get("type") == "tool_result":
                results[part["tool_use_id"]] = "\n".join(_texts(part.get("content")))
    return Request(texts, results, bool(body.get("tools")))


def _write_message(number: int, model: str, text: str, calls: Calls) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    blocks += [
        {"type": "tool_use", "id": key, "name": call.tool, "input": call.arguments}
        for key, call in calls
    ]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }


def _stream_message(number: int, model: str, text: str, calls: Calls) -> list[str]:
    whole = _write_message(number, model, text, calls)
    begun = {**whole, "content": [], "stop_reason": None}
    found = [_sse("message_start", message=begun)]
    for index, block in enumerate(whole["content"]):
        delta = {"type": "text_delta", "text": block.get("text", "")}
        empty = {**block, "text": ""}
        if block["type"] == "tool_use":
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            empty = {**block, "input": {}}
        found.append(_sse("content_block_start", index=index, content_block=empty))
        found.append(_sse("content_block_delta", index=index, delta=delta))
        found.append(_sse("content_block_stop", index=index))
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    found.append(_sse("message_delta", delta=end, usage={"output_tokens": 10}))
    return [*found, _sse("message_stop")]


# ---------------------------------------------------------------- OpenAI Responses


def _read_responses(body: dict[str, Any]) -> Request:
    texts, results = _texts(body.get("instructions")), {}
    for item in body.get("input", []):
        texts += _texts(item.get("content"))
        if str(item.get("type")).endswith("_call_output"):
            results[item["call_id"]] = "\n".join(_texts(item.get("output")))
    return Request(texts, results, bool(body.get("tools")))


def _items(number: int, text: str, calls: Calls) -> list[dict[str, Any]]:
    said = {"type": "output_text", "text": text, "annotations": []}
    message = {"type": "message", "id": f"msg_{number}", "status": "completed"}
    found = [{**message, "role": "assistant", "content": [said]}] if text else []
    for key, call in calls:
        arguments = json.dumps(call.arguments)
        about = {"id": f"item_{key}", "call_id": key, "name": call.tool, "status": "completed"}
        found.append({"type": "function_call", **about, "arguments": arguments})
    return found


def _write_response(number: int, model: str, text: str, calls: Calls) -> dict[str, Any]:
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    usage |= {"input_tokens_details": {"cached_tokens": 0}}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}}
    about = {"id": f"resp_{number}", "object": "response", "created_at": 0, "model": model}
    return {**about, "status": "completed", "output": _items(number, text, calls), "usage": usage}


def _stream_response(number: int, model: str, text: str, calls: Calls) -> list[str]:
    whole = _write_response(number, model, text, calls)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    found = [_sse("response.created", response=begun)]
    for index, item in enumerate(whole["output"]):
        found.append(_sse("response.output_item.done", output_index=index, item=item))
    return [*found, _sse("response.completed", response=whole)]


# ---------------------------------------------------------------- OpenAI Chat Completions


def _read_chat(body: dict[str, Any]) -> Request:
    texts: list[str] = []
    results = {}
    for message in body.get("messages", []):
        texts += _texts(message.get("content"))
        if message.get("role") == "tool":
            results[message["tool_call_id"]] = "\n".join(_texts(message.get("content")))
    return Request(texts, results, bool(body.get("tools")))


def _chat_calls(calls: Calls) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "id": key,
            "type": "function",
            "function": {"name": call.tool, "arguments": json.dumps(call.arguments)},
        }
        for index, (key, call) in enumerate(calls)
    ]


def _write_chat(number: int, model: str, text: str, calls: Calls) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    message |= {"tool_calls": _chat_calls(calls)} if calls else {}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    about = {"id": f"chat_{number}", "object": "chat.completion", "created": 0, "model": model}
    return {**about, "choices": [choice], "usage": usage}


def _stream_chat(number: int, model: str, text: str, calls: Calls) -> list[str]:
    whole = _write_chat(number, model, text, calls)
    about = {**whole, "object": "chat.completion.chunk", "usage": None}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": text}]
    deltas += [{"tool_calls": [call]} for call in _chat_calls(calls)]
    chunks = [[{"index": 0, "delta": each, "finish_reason": None}] for each in deltas]
    reason = whole["choices"][0]["finish_reason"]
    chunks.append([{"index": 0, "delta": {}, "finish_reason": reason}])
    values = [{**about, "choices": each} for each in chunks]
    values.append({**about, "choices": [], "usage": whole["usage"]})
    return [*(f"data: {json.dumps(each)}\n\n" for each in values), "data: [DONE]\n\n"]


# ---------------------------------------------------------------- Gemini


def _read_gemini(body: dict[str, Any]) -> Request:
    texts: list[str] = []
    results = {}
    for content in [body.get("systemInstruction") or {}, *body.get("contents", [])]:
        texts += _texts(content.get("parts"))
        for part in content.get("parts", []):
            if told := part.get("functionResponse"):
                said = told.get("response", {})
                text = said.get("error") or said.get("output") or json.dumps(said)
                results[told.get("id") or told["name"]] = str(text)
    return Request(texts, results, bool(body.get("tools")))


def _write_gemini(number: int, model: str, text: str, calls: Calls) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    parts += [
        {"functionCall": {"id": key, "name": call.tool, "args": call.arguments}}
        for key, call in calls
    ]
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
    content = {"role": "model", "parts": parts}
    candidates = [{"index": 0, "content": content, "finishReason": "STOP"}]
    return {"candidates": candidates, "usageMetadata": usage, "modelVersion": model}


def _stream_gemini(number: int, model: str, text: str, calls: Calls) -> list[str]:
    return [f"data: {json.dumps(_write_gemini(number, model, text, calls))}\n\n"]


_FORMS = {
    "/messages": (_read_messages, _write_message, _stream_message),
    "/responses": (_read_responses, _write_response, _stream_response),
    "/chat/completions": (_read_chat, _write_chat, _stream_chat),
    "enerateContent": (_read_gemini, _write_gemini, _stream_gemini),
}
