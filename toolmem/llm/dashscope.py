"""Alibaba's Qwen models (and others it hosts) through the `dashscope` SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolmem.llm.remote_llm import RemoteLLM
from toolmem.transport.dashscope_sdk import DashScopeService
from toolmem.transport.exchange import Exchange


class DashScopeLLM(RemoteLLM):
    """The key: DASHSCOPE_API_KEY, where the configuration has none."""

    protocol = DashScopeService
    default_model = "qwen-plus"
    _service: DashScopeService

    async def _ask(self, exchange: Exchange, prompt: str, structured: bool) -> Mapping[str, Any]:
        answer = await self._service.chat(exchange, prompt, self._parameters(structured))
        usage = answer.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        if usage.get("input_tokens"):  # the SDK puts 0 where the service says nothing
            exchange.take_usage(usage["input_tokens"], usage.get("output_tokens"), details.get("cached_tokens"))
        return self._first_choice(answer["output"].get("choices"))
