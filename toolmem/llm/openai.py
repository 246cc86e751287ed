"""Any service that speaks OpenAI's chat and embedding protocol, over httpx."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from toolmem.config.environment import is_local
from toolmem.errors import ModelError
from toolmem.llm.client import Endpoint, NoAnswer, Reading
from toolmem.llm.failures import Answer, PassingError
from toolmem.text.forms import as_object

if TYPE_CHECKING:
    import httpx

MAX_BYTES = 10_000_000  # the longest answer that is read


class OpenAIService:
    """Implements `Service` over HTTP. In another event loop it opens a new connection."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._opened: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None

    async def chat(self, prompt: str, parameters: dict[str, Any]) -> Answer:
        body = {"messages": [{"role": "user", "content": prompt}], **parameters}
        if body.get("stream"):
            body["stream_options"] = {"include_usage": True}
        return await self._post("/chat/completions", body)

    async def embed(self, texts: list[str], dimensions: int | None) -> Answer:
        given = {} if dimensions is None else {"dimensions": dimensions}
        body = {"input": texts, "encoding_format": "float", **given}
        return await self._post("/embeddings", body)

    async def _post(self, path: str, body: Mapping[str, Any]) -> Answer:
        import httpx

        content = msgspec.json.encode({"model": self._endpoint.model, **body})
        try:
            async with self._client().stream("POST", path, content=content) as response:
                if "event-stream" in response.headers.get("content-type", ""):
                    return Answer(response.status_code, await _joined(response.aiter_lines()))
                got = bytearray()
                async for chunk in response.aiter_bytes():
                    got += chunk
                    if len(got) > MAX_BYTES:
                        raise NoAnswer(f"an answer of over {MAX_BYTES} bytes", was_sent=True)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise NoAnswer(f"no connection ({error})", was_sent=False) from None
        except httpx.HTTPError as error:
            kind = type(error).__name__
            raise NoAnswer(f"the connection was cut ({kind})", was_sent=True) from None
        return Answer(response.status_code, _read_json(bytes(got)), response.headers)

    def _client(self) -> httpx.AsyncClient:
        import httpx

        loop = asyncio.get_running_loop()
        if self._opened is None or self._opened[0] is not loop:
            headers = {"Content-Type": "application/json"}
            if self._endpoint.key:
                headers["Authorization"] = f"Bearer {self._endpoint.key}"
            url = self._endpoint.base_url
            client = httpx.AsyncClient(
                base_url=url, headers=headers, timeout=None, trust_env=not is_local(url)
            )
            self._opened = (loop, client)
        return self._opened[1]


async def _joined(lines: AsyncIterator[str]) -> Any:
    """Join a streamed answer into the body of one that is not streamed."""
    text = ""
    reason = None
    usage = None
    size = 0
    async for line in lines:
        size += len(line)
        if size > MAX_BYTES:
            raise NoAnswer(f"an answer of over {MAX_BYTES} bytes", was_sent=True)
        data = line.removeprefix("data:").strip()
        if data == "[DONE]":  # some servers keep the connection open after it
            reason = reason or "stop"
            break
        part = as_object(_read_json(data.encode()))
        if part.get("error"):
            return part
        usage = part.get("usage") or usage
        choices = part.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            text += _content(as_object(as_object(choice).get("delta")).get("content")) or ""
            reason = as_object(choice).get("finish_reason") or reason
    if reason is None:
        raise NoAnswer("the stream ended before the reply did", was_sent=True)
    return {"choices": [{"finish_reason": reason, "message": {"content": text}}], "usage": usage}


def read_chat(body: Any, name: str) -> Reading[str]:
    """Read the text of the first choice in a chat reply. `name`: the model's, for messages."""
    body = as_object(body)
    choices = body.get("choices")
    usage = as_object(body.get("usage"))
    choice = choices[0] if isinstance(choices, list) and choices else None
    text = _content(as_object(as_object(choice).get("message")).get("content"))
    if body.get("error") or not isinstance(choice, Mapping) or text is None:
        return Reading()
    cached = _count(as_object(usage.get("prompt_tokens_details")).get("cached_tokens")) or 0
    reading = Reading(
        text, _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")), cached
    )
    reason = choice.get("finish_reason")
    if reason == "length":
        reading.problem = ModelError(f"{name}: the reply was cut off; raise max_tokens")
    elif reason == "content_filter":
        reading.problem = ModelError(f"{name}: the content filter stopped the reply")
    elif not text.strip():
        reading.problem = PassingError(f"{name}: the reply is empty (finish_reason {reason!r})")
    return reading


def read_vectors(body: Any, _: str) -> Reading[list[Any]]:
    """Read the items of an embedding reply, `{"index": 0, "embedding": [...]}`, unchecked."""
    body = as_object(body)
    items = body.get("data")
    usage = as_object(body.get("usage"))
    vectors = items if isinstance(items, list) else None
    return Reading(vectors, _count(usage.get("prompt_tokens")), 0)


def _content(content: Any) -> str | None:
    """Return the text of a text, a list of parts or null; None for any other content."""
    if isinstance(content, list):
        return "".join(str(as_object(part).get("text", "")) for part in content)
    if content is None:
        return ""
    return content if isinstance(content, str) else None


def _read_json(body: bytes) -> Any:
    """Decode a body; None if it is no JSON."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _count(value: Any) -> int | None:
    """Return the value if it is a count, a whole number from 0; else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
