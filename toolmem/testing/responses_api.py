"""OpenAI's Responses API, as agents speak it (`/v1/responses`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from toolmem.testing.agent_turns import AgentApi, AgentRequest, AskedCall, ModelTurn, ToolAnswer, dicts, texts_of


class OpenAIResponses(AgentApi):
    """Messages, calls of functions and of tools that take free text, their results; no reasoning."""

    name = "responses"
    id_prefix = "call_"

    def serves(self, path: str) -> bool:
        return path.endswith("/responses")

    def read(self, request: AgentRequest) -> None:
        body = request.body
        request.model, request.streams = str(body.get("model", "")), bool(body.get("stream"))
        request.tools = [str(tool.get("name") or tool.get("type", "")) for tool in dicts(body.get("tools"))]
        request.texts = texts_of(body.get("instructions"))
        asked = body.get("input")
        if isinstance(asked, str):
            request.texts.append(asked)
        for item in dicts(asked):
            request.texts += texts_of(item.get("content"))
            if str(item.get("type")).endswith("_call_output"):
                text = "\n".join(texts_of(item.get("output")))
                request.answers.append(ToolAnswer(str(item.get("call_id")), text))
                request.texts.append(text)

    def whole(self, request: AgentRequest, turn: ModelTurn) -> dict[str, Any]:
        return _response(request, turn, "completed", list(_items(request, turn)))

    def stream(self, request: AgentRequest, turn: ModelTurn) -> Iterable[bytes]:
        yield _event("response.created", {"response": _response(request, turn, "in_progress", [])})
        items = list(_items(request, turn))
        for index, item in enumerate(items):
            yield _event("response.output_item.added", {"output_index": index, "item": _begun(item)})
            yield from _deltas(index, item)
            yield _event("response.output_item.done", {"output_index": index, "item": item})
        yield _event("response.completed", {"response": _response(request, turn, "completed", items)})


def _response(request: AgentRequest, turn: ModelTurn, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {
        "input_tokens": turn.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": turn.input_tokens + 10,
    }
    return {
        "id": f"resp_loopback_{request.number}",
        "object": "response",
        "created_at": 0,
        "model": request.model,
        "status": status,
        "output": output,
        "usage": usage if status == "completed" else None,
    }


def _items(request: AgentRequest, turn: ModelTurn) -> Iterator[dict[str, Any]]:
    if turn.text or not turn.calls:
        said = {"type": "output_text", "text": turn.text, "annotations": []}
        yield {
            "type": "message",
            "id": f"msg_loopback_{request.number}",
            "status": "completed",
            "role": "assistant",
            "content": [said],
        }
    yield from (_call(call) for call in turn.calls)


def _call(call: AskedCall) -> dict[str, Any]:
    common = {"id": f"item_{call.id}", "call_id": call.id, "name": call.tool, "status": "completed"}
    if isinstance(call.arguments, str):
        return {"type": "custom_tool_call", **common, "input": call.arguments}
    namespace = {"namespace": call.namespace} if call.namespace else {}
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"type": "function_call", **common, **namespace, "arguments": arguments}


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, dict[str, Any]] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "custom_tool_call": {"input": ""},
    }
    return {**item, "status": "in_progress", **empty[item["type"]]}


def _deltas(index: int, item: dict[str, Any]) -> Iterator[bytes]:
    place = {"item_id": item["id"], "output_index": index}
    if item["type"] == "message":
        part, text = item["content"][0], item["content"][0]["text"]
        place["content_index"] = 0
        yield _event("response.content_part.added", {**place, "part": {**part, "text": ""}})
        yield _event("response.output_text.delta", {**place, "delta": text})
        yield _event("response.output_text.done", {**place, "text": text})
        yield _event("response.content_part.done", {**place, "part": part})
    elif item["type"] == "function_call":
        yield _event("response.function_call_arguments.delta", {**place, "delta": item["arguments"]})
        yield _event("response.function_call_arguments.done", {**place, "arguments": item["arguments"]})


def _event(kind: str, data: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data}, ensure_ascii=False)}\n\n".encode()
