"""OpenAI's Chat Completions API, as agents speak it (`/v1/chat/completions`): streaming, and with tools."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from toolmem.testing.agent_turns import AgentApi, AgentRequest, AskedCall, ModelTurn, ToolAnswer, dicts, texts_of


class OpenAIChat(AgentApi):
    """Messages, calls of functions, their results."""

    name = "chat"
    id_prefix = "call_"

    def serves(self, path: str) -> bool:
        return path.endswith("/chat/completions")

    def read(self, request: AgentRequest) -> None:
        body = request.body
        request.model, request.streams = str(body.get("model", "")), bool(body.get("stream"))
        functions = [tool.get("function") for tool in dicts(body.get("tools"))]
        request.tools = [str(function.get("name", "")) for function in dicts(functions)]
        for message in dicts(body.get("messages")):
            texts = texts_of(message.get("content"))
            request.texts += texts
            if message.get("role") == "tool":
                request.answers.append(ToolAnswer(str(message.get("tool_call_id")), "\n".join(texts)))

    def whole(self, request: AgentRequest, turn: ModelTurn) -> dict[str, Any]:
        calls = {"tool_calls": [_call(call) for call in turn.calls]} if turn.calls else {}
        message = {"role": "assistant", "content": turn.text or None, **calls}
        choice = {"index": 0, "message": message, "finish_reason": _finish_reason(turn)}
        return {**_common(request, "chat.completion"), "choices": [choice], "usage": _usage(turn)}

    def stream(self, request: AgentRequest, turn: ModelTurn) -> Iterable[bytes]:
        common = _common(request, "chat.completion.chunk")
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": turn.text}]
        deltas += [{"tool_calls": [{"index": index, **_call(call)}]} for index, call in enumerate(turn.calls)]
        for delta in deltas:
            yield _data({**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        last = {"index": 0, "delta": {}, "finish_reason": _finish_reason(turn)}
        yield _data({**common, "choices": [last]})
        yield _data({**common, "choices": [], "usage": _usage(turn)})
        yield b"data: [DONE]\n\n"


def _common(request: AgentRequest, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-loopback-{request.number}", "object": kind, "created": 0, "model": request.model}


def _usage(turn: ModelTurn) -> dict[str, int]:
    return {
        "prompt_tokens": turn.input_tokens,
        "completion_tokens": 10,
        "total_tokens": turn.input_tokens + 10,
    }


def _call(call: AskedCall) -> dict[str, Any]:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": arguments}}


def _finish_reason(turn: ModelTurn) -> str:
    return "tool_calls" if turn.calls else "stop"


def _data(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
