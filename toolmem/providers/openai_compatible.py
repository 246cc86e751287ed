"""Any service that speaks OpenAI's chat protocol; by default DashScope's compatible mode."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolmem.providers.exchange import Exchange
from toolmem.providers.remote_embedder import RemoteEmbedder
from toolmem.providers.remote_llm import RemoteLLM
from toolmem.providers.remote_model import ModelService

if TYPE_CHECKING:
    import aiohttp


class OpenAIService(ModelService):
    """HTTP by aiohttp."""

    backend = "openai_compatible"
    default_url = "https://dashscope.aliyuncs.com/compatible-mode/v1"
    keyless_here = True

    async def chat(self, exchange: Exchange, prompt: str, parameters: Mapping[str, Any]) -> Any:
        body = {"messages": [{"role": "user", "content": prompt}], **parameters}
        answer = await self._post(exchange, "/chat/completions", body, prompt)
        usage = _mapping(answer.get("usage"))
        if usage:
            cached = _mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
            exchange.take_usage(usage.get("prompt_tokens"), usage.get("completion_tokens"), cached)
        return answer.get("choices")

    async def embed(self, exchange: Exchange, texts: list[str], dimensions: int | None) -> Any:
        given = {} if dimensions is None else {"dimensions": dimensions}
        body = {"input": texts, "encoding_format": "float", **given}
        answer = await self._post(exchange, "/embeddings", body, "\n".join(texts))
        usage = _mapping(answer.get("usage"))
        if usage:
            exchange.take_usage(usage.get("prompt_tokens", usage.get("total_tokens")), 0)
        return answer.get("data")

    async def _post(self, exchange: Exchange, path: str, body: Mapping[str, Any], prompt: str) -> Any:
        import aiohttp

        key = self._endpoint.key
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}

        async def request(session: aiohttp.ClientSession) -> Any:
            async with session.post(
                f"{self._endpoint.base_url}{path}",
                data=json.dumps({"model": self._endpoint.model, **body}, ensure_ascii=False).encode(),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=self._endpoint.timeout),
            ) as response:
                content = await response.read()
                return json.loads(content) if response.status == 200 else None

        return await self._ask(exchange, prompt, request)

    def _is_reply(self, exchange: Exchange, answer: Any) -> bool:
        return isinstance(answer, Mapping) and not answer.get("error")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


class OpenAICompatibleEmbedder(RemoteEmbedder):
    """The key: OPENAI_API_KEY or FLOW_EMBEDDING_API_KEY, where the configuration has none. A service on this machine
    may be asked without one.
    """

    protocol = OpenAIService


class OpenAICompatibleLLM(RemoteLLM):
    """The key: OPENAI_API_KEY or FLOW_LLM_API_KEY, where the configuration has none. A service on this machine may be
    asked without one.
    """

    protocol = OpenAIService
