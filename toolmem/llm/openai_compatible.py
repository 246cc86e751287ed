"""Any service that speaks OpenAI's chat protocol; by default DashScope's compatible mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolmem.config.environment import FALLBACKS
from toolmem.config.settings import LLMSettings
from toolmem.llm.remote_llm import RemoteLLM
from toolmem.ports import Clock, Tokenizer
from toolmem.transport.attempts import FIRST_PAUSE
from toolmem.transport.budget import Budget, Price
from toolmem.transport.endpoint import endpoint
from toolmem.transport.exchange import Exchange
from toolmem.transport.openai_http import DEFAULT_URL, OpenAIService

BACKEND = "openai_compatible"


class OpenAICompatibleLLM(RemoteLLM):
    """`settings`: the configuration's entry, `setting`: its dotted name, for messages.

    Raises ConfigError when it is made: no model name, no key (FLOW_LLM_API_KEY; any text will do where the service
    asks for none), an address that is none, or a model without a price under a budget in money.
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
            settings.model_name,
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
        self._service = OpenAIService(place)

    async def _ask(self, exchange: Exchange, prompt: str, structured: bool) -> Mapping[str, Any]:
        body = {"messages": [{"role": "user", "content": prompt}], **self._parameters(structured)}
        answer = await self._service.post(exchange, "/chat/completions", body, prompt)
        usage = answer.get("usage")
        if isinstance(usage, Mapping):
            details = usage.get("prompt_tokens_details")
            cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
            exchange.take_usage(usage.get("prompt_tokens"), usage.get("completion_tokens"), cached)
        return self._first_choice(answer.get("choices"))

    async def _prepare(self) -> None:
        await self._service.prepare()

    async def close(self) -> None:
        await self._service.close()
