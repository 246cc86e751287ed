"""What a `ModelServer` is asked and what it answers, in DashScope's protocol and in OpenAI's."""

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
USAGE = {"dashscope": ("input_tokens", "output_tokens"), "openai": ("prompt_tokens", "completion_tokens")}


def route(path: str) -> tuple[Protocol, Kind] | None:
    """By the end of the path, so that every base address works; None: not served."""
    return next((served for end, served in PATHS.items() if path.partition("?")[0].endswith(end)), None)


def read_object(body: bytes) -> dict[str, Any]:
    """The body's JSON object; {} where it is none."""
    try:
        read = json.loads(body)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


@dataclass(slots=True, kw_only=True)
class ModelRequest:
    """One request as the server saw it. Times are in seconds of `time.monotonic`."""

    number: int  # from 1, in order of arrival
    started: float  # when it had arrived whole
    path: str
    kind: Kind
    protocol: Protocol
    body: dict[str, Any]
    headers: dict[str, str]  # names in lower case, without those that hold a key
    in_flight: int  # requests being answered at its start, itself among them
    model: str = ""
    prompt: str = ""  # all message texts, or the texts to embed, one per line
    texts: list[str] = field(default_factory=list)  # to embed
    dimension: int | None = None
    problem: str = ""  # why it cannot be served
    behaviour: str = "ok"  # name
    status: int | None = None  # None: not answered (yet)
    finished: float | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __post_init__(self) -> None:
        """Understands what toolmem and the SDKs send; what is missing or not served is a `problem`."""
        dashscope = self.protocol == "dashscope"
        inner, parameters = ((self.body.get(name) if dashscope else self.body) for name in ("input", "parameters"))
        inner, parameters = (value if isinstance(value, dict) else {} for value in (inner, parameters))
        if self.kind == "chat":
            self._read_messages(inner, streams=bool(parameters.get("stream")))
        else:
            self._read_texts(inner.get("texts" if dashscope else "input"))
            self.dimension = parameters.get("dimension" if dashscope else "dimensions")
        self.model = str(self.body.get("model") or "")
        if not self.body:
            self.problem = "the body is no JSON object"
        elif not self.model:
            self.problem = self.problem or "no model"

    def _read_messages(self, inner: dict[str, Any], *, streams: bool) -> None:
        messages = inner.get("messages")
        self.prompt = "\n".join(_text(each.get("content")) for each in messages or () if isinstance(each, dict))
        self.prompt = self.prompt or str(inner.get("prompt") or "")
        if not self.prompt:
            self.problem = "no messages"
        elif streams:
            self.problem = "streaming is not provided by this server"

    def _read_texts(self, texts: Any) -> None:
        self.texts = [texts] if isinstance(texts, str) else [text for text in texts or () if isinstance(text, str)]
        self.prompt = "\n".join(self.texts)
        if not self.texts or not all(text.strip() for text in self.texts):
            self.problem = "texts to embed cannot be missing or empty"


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def error_body(protocol: Protocol, code: str, message: str, request_id: str) -> bytes:
    """The body of an error, as the protocol words it."""
    if protocol == "dashscope":
        return _json({"code": code, "message": message, "request_id": request_id})
    return _json({"error": {"message": message, "type": code, "param": None, "code": code}, "request_id": request_id})


def reply_body(asked: ModelRequest, behaviour: Behaviour, script: Script, request_id: str) -> bytes:
    """The body of a good answer. `asked` gets its tokens as the Qwen tokenizer counts them."""
    tokenizer = QwenTokenizer()
    if asked.kind == "embedding":
        asked.prompt_tokens = sum(tokenizer.count(text) for text in asked.texts)
        return _json(_embeddings(asked, script, behaviour.usage, request_id))
    text = script.reply(asked.prompt) if behaviour.text is None else behaviour.text
    asked.prompt_tokens, asked.completion_tokens = tokenizer.count(asked.prompt), tokenizer.count(text)
    return _json(_chat(asked, text, behaviour, request_id))


def _chat(asked: ModelRequest, text: str, behaviour: Behaviour, request_id: str) -> dict[str, Any]:
    choice = {"finish_reason": behaviour.finish_reason, "message": {"role": "assistant", "content": text}}
    names = USAGE[asked.protocol]
    spent = (asked.prompt_tokens, asked.completion_tokens)
    usage = {**dict(zip(names, spent, strict=True)), "total_tokens": sum(spent)}
    if asked.protocol == "dashscope":
        told = usage if behaviour.usage else {}
        return {"output": {"choices": [choice]}, "usage": told, "request_id": request_id}
    return {
        "id": f"chatcmpl-{request_id}",
        "object": "chat.completion",
        "created": 0,
        "model": asked.model,
        "choices": [{"index": 0, **choice}],
        **({"usage": usage} if behaviour.usage else {}),
    }


def _embeddings(asked: ModelRequest, script: Script, usage: bool, request_id: str) -> dict[str, Any]:
    tokens = asked.prompt_tokens
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
