"""DashScope's text embedding models, through the `dashscope` SDK."""

from __future__ import annotations

from typing import Any

from toolmem.config.environment import FALLBACKS
from toolmem.config.settings import EmbeddingSettings
from toolmem.embedding.remote_embedder import RemoteEmbedder
from toolmem.ports import Clock, Meter, Tokenizer
from toolmem.transport.attempts import FIRST_PAUSE
from toolmem.transport.budget import Budget, Price
from toolmem.transport.dashscope_sdk import DEFAULT_URL, DashScopeService
from toolmem.transport.endpoint import endpoint
from toolmem.transport.exchange import Exchange

BACKEND = "dashscope"
DEFAULT_MODEL = "text-embedding-v4"


class DashScopeEmbedder(RemoteEmbedder):
    """`settings`: the configuration's entry, `setting`: its dotted name, for messages.

    Raises ConfigError when it is made: no key (DASHSCOPE_API_KEY), an address that is none, unknown dimensions.
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
            settings.model_name or DEFAULT_MODEL,
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
        self._service = DashScopeService(place)

    async def _ask(self, exchange: Exchange, texts: list[str]) -> list[tuple[int, Any]]:
        parameters: dict[str, Any] = {"text_type": "document"}
        if self._params.dimensions is not None:  # v1 and v2 do not know this parameter
            parameters["dimension"] = self._params.dimensions
        answer = await self._service.embed(exchange, texts, parameters)
        usage = answer.get("usage") or {}
        exchange.take_usage(usage.get("total_tokens"), 0)
        return self._pairs(answer["output"].get("embeddings"), "text_index")

    async def _prepare(self) -> None:
        await self._service.prepare()

    async def close(self) -> None:
        await self._service.close()
