"""DashScope's text embedding models, through the `dashscope` SDK."""

from __future__ import annotations

from typing import Any

from toolmem.embedding.remote_embedder import RemoteEmbedder
from toolmem.transport.dashscope_sdk import DashScopeService
from toolmem.transport.exchange import Exchange


class DashScopeEmbedder(RemoteEmbedder):
    """The key: DASHSCOPE_API_KEY, where the configuration has none."""

    protocol = DashScopeService
    default_model = "text-embedding-v4"
    _service: DashScopeService

    async def _ask(self, exchange: Exchange, texts: list[str]) -> list[tuple[int, Any]]:
        parameters: dict[str, Any] = {"text_type": "document"}
        if self._settings.params.dimensions is not None:  # v1 and v2 do not know this parameter
            parameters["dimension"] = self._settings.params.dimensions
        answer = await self._service.embed(exchange, texts, parameters)
        usage = answer.get("usage") or {}
        exchange.take_usage(usage.get("total_tokens"), 0)
        return self._pairs(answer["output"].get("embeddings"), "text_index")
