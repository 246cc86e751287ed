"""DashScope: Alibaba's Qwen models and its text embedding models, through the `dashscope` SDK."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from toolmem.config.extras import need
from toolmem.errors import ModelDenied
from toolmem.providers.exchange import Exchange, current, watched
from toolmem.providers.remote_embedder import RemoteEmbedder
from toolmem.providers.remote_llm import RemoteLLM
from toolmem.providers.remote_model import ModelService


class DashScopeService(ModelService):
    """The SDK is imported at the first call (0.3 to 0.9 s)."""

    backend = "dashscope"
    default_url = "https://dashscope.aliyuncs.com/api/v1"

    async def chat(self, exchange: Exchange, prompt: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to one user message: `{"output": {"choices": [...]}, "usage": {...}}`. Raises ModelError."""
        sdk = _sdk()
        call = sdk.AioGeneration.call
        messages = [{"role": "user", "content": prompt}]
        return await self._call(exchange, call, prompt, messages=messages, result_format="message", **parameters)

    async def embed(self, exchange: Exchange, texts: list[str], parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """`{"output": {"embeddings": [...]}, "usage": {...}}`. Raises ModelError.

        The SDK has no asynchronous `TextEmbedding`; this is the base class of its asynchronous ones, with the task and
        function that `TextEmbedding.call` sends. A thread around the blocking call could not be cancelled.
        """
        sdk = _sdk()
        from dashscope.client.base_api import BaseAioApi

        return await self._call(
            exchange,
            BaseAioApi.call,
            "\n".join(texts),
            input={"texts": texts},
            task_group="embeddings",
            task=sdk.TextEmbedding.task,
            function="text-embedding",
            **parameters,
        )

    async def _call(self, exchange: Exchange, call: Any, prompt: str, **request: Any) -> Mapping[str, Any]:
        error: Exception | None = None
        answer: Any = None
        session = await self._sessions.get()
        with watched(exchange):
            try:
                answer = await call(
                    model=self._endpoint.model,
                    api_key=self._endpoint.key,
                    base_address=self._endpoint.base_url,
                    request_timeout=self._endpoint.timeout,
                    session=session,
                    **request,
                )
            except Exception as raised:
                error = raised
        if error is None and exchange.status == 200 and isinstance(answer.get("output"), Mapping):
            return answer  # type: ignore[no-any-return]
        typed = self._failure(exchange, error, prompt)
        if typed is None and error is not None and type(error).__module__.startswith("dashscope."):
            typed = ModelDenied(f"{self._endpoint.name}: the SDK refuses the call: {type(error).__name__}: {error}")
        raise (typed or error or AssertionError("an answer that is neither a reply nor an error")) from None

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
    _service: DashScopeService

    async def _ask(self, exchange: Exchange, texts: list[str]) -> list[tuple[int, Any]]:
        parameters: dict[str, Any] = {"text_type": "document"}
        if self._settings.params.dimensions is not None:  # v1 and v2 do not know this parameter
            parameters["dimension"] = self._settings.params.dimensions
        answer = await self._service.embed(exchange, texts, parameters)
        usage = answer.get("usage") or {}
        exchange.take_usage(usage.get("total_tokens"), 0)
        return self._pairs(answer["output"].get("embeddings"), "text_index")


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
