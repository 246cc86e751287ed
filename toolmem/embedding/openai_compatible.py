"""Embedding models of any service that speaks OpenAI's protocol; by default DashScope's compatible mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolmem.config.environment import FALLBACKS
from toolmem.config.settings import EmbeddingSettings
from toolmem.embedding.remote_embedder import RemoteEmbedder
from toolmem.ports import Clock, Meter, Tokenizer
from toolmem.transport.attempts import FIRST_PAUSE
from toolmem.transport.budget import Budget, Price
from toolmem.transport.endpoint import endpoint
from toolmem.transport.exchange import Exchange
from toolmem.transport.openai_http import DEFAULT_URL, OpenAIService

BACKEND = "openai_compatible"


class OpenAICompatibleEmbedder(RemoteEmbedder):
    """`settings`: the configuration's entry, `setting`: its dotted name, for messages.

    Raises ConfigError when it is made: no model name, no key (FLOW_EMBEDDING_API_KEY), an address that is none,
    unknown dimensions.
    """

    def __init__(
        self,
        settings: EmbeddingSettings,
        *,
        tokenizer: Tokenizer,
        clock: Clock,
        setting: str = "embedding_model.default",
        meter: Meter | None = None,
        workspace: str = "default",
        price: Price | None = None,
        budget: Budget | None = None,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        params = settings.params
        place = endpoint(
            BACKEND,
            settings.model_name,
            setting=setting,
            base_url=params.base_url,
            default_url=DEFAULT_URL,
            api_key=params.api_key,
            variables=FALLBACKS["embedding_model", BACKEND, "api_key"],
            timeout=params.timeout,
        )
        super().__init__(
            place,
            params,
            tokenizer=tokenizer,
            clock=clock,
            setting=setting,
            meter=meter,
            workspace=workspace,
            price=price,
            budget=budget,
            first_pause=first_pause,
        )
        self._service = OpenAIService(place)

    async def _ask(self, exchange: Exchange, texts: list[str]) -> list[tuple[int, Any]]:
        body: dict[str, Any] = {"input": texts, "encoding_format": "float"}
        if self._params.dimensions is not None:
            body["dimensions"] = self._params.dimensions
        answer = await self._service.post(exchange, "/embeddings", body, "\n".join(texts))
        usage = answer.get("usage")
        if isinstance(usage, Mapping):
            exchange.take_usage(usage.get("prompt_tokens", usage.get("total_tokens")), 0)
        return self._pairs(answer.get("data"), "index")

    async def _prepare(self) -> None:
        await self._service.prepare()

    async def close(self) -> None:
        await self._service.close()
