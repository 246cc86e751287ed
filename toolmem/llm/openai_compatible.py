"""Any service that speaks OpenAI's chat protocol; by default DashScope's compatible mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolmem.llm.remote_llm import RemoteLLM
from toolmem.transport.exchange import Exchange
from toolmem.transport.openai_http import OpenAIService


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
