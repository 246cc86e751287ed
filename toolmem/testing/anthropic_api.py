"""Anthropic's Messages API, as agents speak it (`/v1/messages`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from toolmem.testing.agent_turns import AgentApi, AgentRequest, AskedCall, ModelTurn, ToolAnswer, dicts, texts_of


class AnthropicMessages(AgentApi):
    """Text, tool calls, results of tools; no thinking, no images."""

    name = "anthropic"
    id_prefix = "toolu_"

    def serves(self, path: str) -> bool:
        return path.endswith("/messages")

    def read(self, request: AgentRequest) -> None:
        body = request.body
        request.model, request.streams = str(body.get("model", "")), bool(body.get("stream"))
        request.tools = [str(tool.get("name", "")) for tool in dicts(body.get("tools"))]
        request.texts = texts_of(body.get("system"))
        for message in dicts(body.get("messages")):
            request.texts += texts_of(message.get("content"))
            for part in dicts(message.get("content")):
                if part.get("type") == "tool_result":
                    text = "\n".join(texts_of(part.get("content")))
                    request.answers.append(
                        ToolAnswer(str(part.get("tool_use_id")), text, bool(part.get("is_error", False)))
                    )
                    request.texts.append(text)

    def whole(self, request: AgentRequest, turn: ModelTurn) -> dict[str, Any]:
        return {
            **_message(request, turn),
            "content": list(_blocks(turn)),
            "stop_reason": _stop_reason(turn),
            "usage": {"input_tokens": turn.input_tokens, "output_tokens": 10},
        }

    def stream(self, request: AgentRequest, turn: ModelTurn) -> Iterable[bytes]:
        yield _event("message_start", {"message": _message(request, turn)})
        for index, block in enumerate(_blocks(turn)):
            yield _event("content_block_start", {"index": index, "content_block": _emptied(block)})
            yield _event("content_block_delta", {"index": index, "delta": _delta(block)})
            yield _event("content_block_stop", {"index": index})
        ending = {"delta": {"stop_reason": _stop_reason(turn), "stop_sequence": None}, "usage": {"output_tokens": 10}}
        yield _event("message_delta", ending)
        yield _event("message_stop", {})


def _message(request: AgentRequest, turn: ModelTurn) -> dict[str, Any]:
    return {
        "id": f"msg_loopback_{request.number}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": turn.input_tokens, "output_tokens": 1},
    }


def _blocks(turn: ModelTurn) -> Iterator[dict[str, Any]]:
    if turn.text or not turn.calls:
        yield {"type": "text", "text": turn.text}
    yield from (_tool_use(call) for call in turn.calls)


def _tool_use(call: AskedCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments}


def _emptied(block: dict[str, Any]) -> dict[str, Any]:
    return {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}


def _delta(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "text":
        return {"type": "text_delta", "text": block["text"]}
    return {"type": "input_json_delta", "partial_json": json.dumps(block["input"], ensure_ascii=False)}


def _stop_reason(turn: ModelTurn) -> str:
    return "tool_use" if turn.calls else "end_turn"


def _event(kind: str, data: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data}, ensure_ascii=False)}\n\n".encode()
