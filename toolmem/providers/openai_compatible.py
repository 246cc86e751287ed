"""Any service that speaks OpenAI's chat protocol; by default DashScope's compatible mode."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolmem.providers.exchange import Exchange, watched
from toolmem.providers.remote_embedder import RemoteEmbedder
from toolmem.providers.remote_llm import RemoteLLM
from toolmem.providers.remote_model import ModelService


class OpenAIService(ModelService):
    """HTTP client: aiohttp, which comes with dashscope and elasticsearch[async]."""

    backend = "openai_compatible"
    default_url = "https://dashscope.aliyuncs.com/compatible-mode/v1"
    keyless_here = True

    async def post(self, exchange: Exchange, path: str, body: Mapping[str, Any], prompt: str) -> Mapping[str, Any]:
        """The JSON object of a "200 OK" that is no error. Raises ModelError."""
        import aiohttp

        error: Exception | None = None
        answer: Any = None
        key = self._endpoint.key
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        session = await self._sessions.get()
        with watched(exchange):
            try:
                async with session.post(
                    f"{self._endpoint.base_url}{path}",
                    data=json.dumps({"model": self._endpoint.model, **body}, ensure_ascii=False).encode(),
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(total=self._endpoint.timeout),
                ) as response:
                    content = await response.read()
                    answer = json.loads(content) if response.status == 200 else None
            except Exception as raised:
                error = raised
        if isinstance(answer, Mapping) and not answer.get("error"):
            return answer
        typed = self._failure(exchange, error, prompt)
        raise (typed or error or AssertionError("an answer that is neither a reply nor an error")) from None


class OpenAICompatibleEmbedder(RemoteEmbedder):
    """The key: OPENAI_API_KEY or FLOW_EMBEDDING_API_KEY, where the configuration has none. A service on this machine
    may be asked without one."""

    protocol = OpenAIService
    _service: OpenAIService

    async def _ask(self, exchange: Exchange, texts: list[str]) -> list[tuple[int, Any]]:
        body: dict[str, Any] = {"input": texts, "encoding_format": "float"}
        if self._settings.params.dimensions is not None:
            body["dimensions"] = self._settings.params.dimensions
        answer = await self._service.post(exchange, "/embeddings", body, "\n".join(texts))
        usage = answer.get("usage")
        if isinstance(usage, Mapping):
            exchange.take_usage(usage.get("prompt_tokens", usage.get("total_tokens")), 0)
        return self._pairs(answer.get("data"), "index")


class OpenAICompatibleLLM(RemoteLLM):
    """The key: OPENAI_API_KEY or FLOW_LLM_API_KEY, where the configuration has none. A service on this machine may be
    asked without one."""

    protocol = OpenAIService
    _service: OpenAIService

    async def _ask(self, exchange: Exchange, prompt: str, structured: bool) -> Mapping[str, Any]:
        body = {"messages": [{"role": "user", "content": prompt}], **self._parameters(structured)}
        answer = await self._service.post(exchange, "/chat/completions", body, prompt)
        usage = answer.get("usage")
        if isinstance(usage, Mapping):
            details = usage.get("prompt_tokens_details")
            cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
            exchange.take_usage(usage.get("prompt_tokens"), usage.get("completion_tokens"), cached)
        return self._first_choice(answer.get("choices"))
