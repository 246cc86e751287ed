"""Embedding models of any service that speaks OpenAI's protocol; by default DashScope's compatible mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolmem.embedding.remote_embedder import RemoteEmbedder
from toolmem.transport.exchange import Exchange
from toolmem.transport.openai_http import OpenAIService


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
