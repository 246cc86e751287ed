"""Google's Gemini API, as agents speak it (`/v1beta/models/NAME:streamGenerateContent`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from toolmem.testing.agent_turns import AgentApi, AgentRequest, AskedCall, ModelTurn, ToolAnswer, dicts, texts_of

_METHOD = re.compile(r"/models/([^/:]+):(generateContent|streamGenerateContent)$")


class Gemini(AgentApi):
    """Text, calls of functions, their results. A result's `call_id` is the function's name where it has no id."""

    name = "gemini"
    id_prefix = "call_"

    def serves(self, path: str) -> bool:
        return _METHOD.search(path) is not None

    def read(self, request: AgentRequest) -> None:
        asked = _METHOD.search(request.path.partition("?")[0])
        request.model, method = asked.groups() if asked else ("", "")
        request.streams = method == "streamGenerateContent"
        offered = [dicts(tool.get("functionDeclarations")) for tool in dicts(request.body.get("tools"))]
        request.tools = [str(function.get("name", "")) for functions in offered for function in functions]
        system = request.body.get("systemInstruction") or request.body.get("system_instruction")
        for content in (system, *dicts(request.body.get("contents"))):
            parts = content.get("parts") if isinstance(content, dict) else None
            request.texts += texts_of(parts)
            for part in dicts(parts):
                if isinstance(part.get("functionResponse"), dict):
                    request.answers.append(_answer(part["functionResponse"]))
                    request.texts.append(request.answers[-1].text)

    def whole(self, request: AgentRequest, turn: ModelTurn) -> dict[str, Any]:
        text = [{"text": turn.text}] if turn.text or not turn.calls else []
        content = {"role": "model", "parts": [*text, *(_call(call) for call in turn.calls)]}
        return {
            "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
            "usageMetadata": {
                "promptTokenCount": turn.input_tokens,
                "candidatesTokenCount": 10,
                "totalTokenCount": turn.input_tokens + 10,
            },
            "modelVersion": request.model,
            "responseId": f"loopback-{request.number}",
        }

    def stream(self, request: AgentRequest, turn: ModelTurn) -> Iterable[bytes]:
        yield f"data: {json.dumps(self.whole(request, turn), ensure_ascii=False)}\n\n".encode()


def _answer(response: dict[str, Any]) -> ToolAnswer:
    """Under `output` or `error`, as the API's reference has it; anything else as JSON."""
    told = response.get("response")
    told = told if isinstance(told, dict) else {}
    failed = "error" in told
    said = told.get("error" if failed else "output")
    text = said if isinstance(said, str) else json.dumps(told, ensure_ascii=False)
    return ToolAnswer(str(response.get("id") or response.get("name")), text, failed)


def _call(call: AskedCall) -> dict[str, Any]:
    return {"functionCall": {"id": call.id, "name": call.tool, "args": call.arguments}}
