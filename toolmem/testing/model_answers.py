"""The bodies of a `ModelServer`'s answers, in DashScope's protocol and in OpenAI's."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from toolmem.providers.hashing import HashingEmbedder
from toolmem.providers.tokenizer import QwenTokenizer
from toolmem.testing.model_script import Behaviour, Kind, Script

Protocol = Literal["dashscope", "openai"]

PATHS: dict[str, tuple[Protocol, Kind]] = {
    "/services/aigc/text-generation/generation": ("dashscope", "chat"),
    "/services/embeddings/text-embedding/text-embedding": ("dashscope", "embedding"),
    "/chat/completions": ("openai", "chat"),
    "/embeddings": ("openai", "embedding"),
}


def route(path: str) -> tuple[Protocol, Kind] | None:
    """By the end of the path, so that every base address works; None: not served."""
    return next((served for end, served in PATHS.items() if path.partition("?")[0].endswith(end)), None)


@dataclass(slots=True)
class Asked:
    """A request's body as it was understood."""

    protocol: Protocol
    kind: Kind
    model: str
    prompt: str  # all message texts, or the texts to embed, one per line
    texts: list[str] = field(default_factory=list)  # to embed
    dimension: int | None = None
    problem: str = ""  # why it cannot be served


def read_body(protocol: Protocol, kind: Kind, body: Any) -> Asked:
    """Understands what toolmem and the SDKs send; what is missing or not served is a `problem`."""
    if not isinstance(body, dict):
        return Asked(protocol, kind, "", "", problem="the body is no JSON object")
    asked = Asked(protocol, kind, str(body.get("model") or ""), "")
    inner = body.get("input") if protocol == "dashscope" else body
    parameters = body.get("parameters") if protocol == "dashscope" else body
    inner, parameters = (value if isinstance(value, dict) else {} for value in (inner, parameters))
    if kind == "chat":
        messages = inner.get("messages")
        asked.prompt = "\n".join(_text(m.get("content")) for m in messages or () if isinstance(m, dict))
        asked.prompt = asked.prompt or str(inner.get("prompt") or "")
        if not asked.prompt:
            asked.problem = "no messages"
        elif parameters.get("stream"):
            asked.problem = "streaming is not provided by this server"
    else:
        texts = inner.get("texts") if protocol == "dashscope" else inner.get("input")
        asked.texts = [texts] if isinstance(texts, str) else [t for t in texts or () if isinstance(t, str)]
        asked.prompt = "\n".join(asked.texts)
        asked.dimension = parameters.get("dimension" if protocol == "dashscope" else "dimensions")
        if not asked.texts or not all(text.strip() for text in asked.texts):
            asked.problem = "texts to embed cannot be missing or empty"
    return asked if asked.model or asked.problem else Asked(protocol, kind, "", "", problem="no model")


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def error_body(protocol: Protocol, code: str, message: str, request_id: str) -> bytes:
    if protocol == "dashscope":
        return _json({"code": code, "message": message, "request_id": request_id})
    return _json({"error": {"message": message, "type": code, "param": None, "code": code}, "request_id": request_id})


def reply_body(asked: Asked, behaviour: Behaviour, script: Script, request_id: str) -> tuple[bytes, int, int]:
    """The body of a good answer, with its prompt and completion tokens as the Qwen tokenizer counts them."""
    tokenizer = QwenTokenizer()
    if asked.kind == "embedding":
        tokens = sum(tokenizer.count(text) for text in asked.texts)
        return _json(_embeddings(asked, script, tokens, behaviour.usage, request_id)), tokens, 0
    text = script.reply(asked.prompt) if behaviour.text is None else behaviour.text
    prompt_tokens, completion_tokens = tokenizer.count(asked.prompt), tokenizer.count(text)
    body = _chat(asked, text, behaviour, prompt_tokens, completion_tokens, request_id)
    return _json(body), prompt_tokens, completion_tokens


def _chat(
    asked: Asked, text: str, behaviour: Behaviour, prompt_tokens: int, completion_tokens: int, request_id: str
) -> dict[str, Any]:
    choice = {"finish_reason": behaviour.finish_reason, "message": {"role": "assistant", "content": text}}
    total = prompt_tokens + completion_tokens
    if asked.protocol == "dashscope":
        usage = {"input_tokens": prompt_tokens, "output_tokens": completion_tokens, "total_tokens": total}
        return {
            "output": {"choices": [choice]},
            "usage": usage if behaviour.usage else {},
            "request_id": request_id,
        }
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens, "total_tokens": total}
    return {
        "id": f"chatcmpl-{request_id}",
        "object": "chat.completion",
        "created": 0,
        "model": asked.model,
        "choices": [{"index": 0, **choice}],
        **({"usage": usage} if behaviour.usage else {}),
    }


def _embeddings(asked: Asked, script: Script, tokens: int, usage: bool, request_id: str) -> dict[str, Any]:
    vectors = HashingEmbedder(asked.dimension or script.dimension).vectors(asked.texts).tolist()
    if asked.protocol == "dashscope":
        items = [{"text_index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        told = {"total_tokens": tokens} if usage else {}
        return {"output": {"embeddings": items}, "usage": told, "request_id": request_id}
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    told = {"prompt_tokens": tokens, "total_tokens": tokens} if usage else {}
    return {"object": "list", "data": data, "model": asked.model, **({"usage": told} if usage else {})}


def _json(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
