"""DashScope: Alibaba's Qwen models and its text embedding models, through the `dashscope` SDK."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from toolmem.config.extras import need
from toolmem.errors import ModelDenied
from toolmem.providers.exchange import Exchange, current
from toolmem.providers.remote_embedder import RemoteEmbedder
from toolmem.providers.remote_llm import RemoteLLM
from toolmem.providers.remote_model import ModelService


class DashScopeService(ModelService):
    """The SDK is imported at the first call (0.3 to 0.9 s)."""

    backend = "dashscope"
    default_url = "https://dashscope.aliyuncs.com/api/v1"

    async def chat(self, exchange: Exchange, prompt: str, parameters: Mapping[str, Any]) -> Any:
        messages = [{"role": "user", "content": prompt}]
        call = _sdk().AioGeneration.call
        answer = await self._call(exchange, call, prompt, messages=messages, result_format="message", **parameters)
        usage = answer.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        if usage.get("input_tokens"):  # the SDK puts 0 where the service says nothing
            exchange.take_usage(usage["input_tokens"], usage.get("output_tokens"), details.get("cached_tokens"))
        return answer["output"].get("choices")

    async def embed(self, exchange: Exchange, texts: list[str], dimensions: int | None) -> Any:
        """The SDK has no asynchronous `TextEmbedding`; this is the base class of its asynchronous ones, with the task
        and function that `TextEmbedding.call` sends. A thread around the blocking call could not be cancelled.
        """
        sdk = _sdk()
        from dashscope.client.base_api import BaseAioApi

        answer = await self._call(
            exchange,
            BaseAioApi.call,
            "\n".join(texts),
            input={"texts": texts},
            task_group="embeddings",
            task=sdk.TextEmbedding.task,
            function="text-embedding",
            text_type="document",
            **({} if dimensions is None else {"dimension": dimensions}),  # v1 and v2 do not know this parameter
        )
        exchange.take_usage((answer.get("usage") or {}).get("total_tokens"), 0)
        return answer["output"].get("embeddings")

    async def _call(self, exchange: Exchange, call: Any, prompt: str, **request: Any) -> Any:
        place = self._endpoint
        given = {"model": place.model, "api_key": place.key, "base_address": place.base_url, **request}
        return await self._ask(
            exchange, prompt, lambda session: call(request_timeout=place.timeout, session=session, **given)
        )

    def _is_reply(self, exchange: Exchange, answer: Any) -> bool:
        return exchange.status == 200 and isinstance(answer.get("output"), Mapping)

    def _refusal(self, error: Exception | None) -> ModelDenied | None:
        if not type(error).__module__.startswith("dashscope."):
            return None
        return ModelDenied(f"{self._endpoint.name}: the SDK refuses the call: {type(error).__name__}: {error}")

    async def prepare(self) -> None:
        """Import the SDK, and open the loop's session."""
        _sdk()
        await super().prepare()


@cache
def _sdk() -> Any:
    need("the backend dashscope", "dashscope")
    import dashscope

    logging.getLogger("dashscope").addFilter(_not_ours)
    return dashscope


def _not_ours(record: logging.LogRecord) -> bool:
    """Our requests are reported by the errors they raise; what the SDK logs of them may show prompts."""
    return current() is None


class DashScopeEmbedder(RemoteEmbedder):
    """The key: DASHSCOPE_API_KEY, where the configuration has none."""

    protocol = DashScopeService
    default_model = "text-embedding-v4"


class DashScopeLLM(RemoteLLM):
    """The key: DASHSCOPE_API_KEY, where the configuration has none."""

    protocol = DashScopeService
    default_model = "qwen-plus"
