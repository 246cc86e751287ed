"""Alibaba's Qwen models (and others it hosts) through the `dashscope` SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolmem.config.environment import FALLBACKS
from toolmem.config.settings import LLMSettings
from toolmem.llm.remote_llm import RemoteLLM
from toolmem.ports import Clock, Tokenizer
from toolmem.transport.attempts import FIRST_PAUSE
from toolmem.transport.budget import Budget, Price
from toolmem.transport.dashscope_sdk import DEFAULT_URL, DashScopeService
from toolmem.transport.endpoint import endpoint
from toolmem.transport.exchange import Exchange

BACKEND = "dashscope"
DEFAULT_MODEL = "qwen-plus"


class DashScopeLLM(RemoteLLM):
    """`settings`: the configuration's entry, `setting`: its dotted name, for messages.

    Raises ConfigError when it is made: no key (DASHSCOPE_API_KEY), an address that is none, or a model without a price
    under a budget in money. Nothing is imported or sent before the first request.
    """

    def __init__(
        self,
        settings: LLMSettings,
        *,
        tokenizer: Tokenizer,
        clock: Clock,
        setting: str = "llm.default",
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
            variables=FALLBACKS["llm", BACKEND, "api_key"],
            timeout=params.timeout,
        )
        super().__init__(
            place, params, tokenizer=tokenizer, clock=clock, price=price, budget=budget, first_pause=first_pause
        )
        self._service = DashScopeService(place)

    async def _ask(self, exchange: Exchange, prompt: str, structured: bool) -> Mapping[str, Any]:
        answer = await self._service.chat(exchange, prompt, self._parameters(structured))
        usage = answer.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        if usage.get("input_tokens"):  # the SDK puts 0 where the service says nothing
            exchange.take_usage(usage["input_tokens"], usage.get("output_tokens"), details.get("cached_tokens"))
        return self._first_choice(answer["output"].get("choices"))

    async def _prepare(self) -> None:
        await self._service.prepare()

    async def close(self) -> None:
        await self._service.close()
