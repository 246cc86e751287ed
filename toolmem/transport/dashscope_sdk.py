"""The `dashscope` SDK (2.x), kept to what it promises: one request per call, no global state, no tracebacks in logs.

What the SDK does on the wire, seen in 2.0.2: it returns errors instead of raising them, resends in silence after a
dropped connection (also one that was cut in the middle of work that is billed), raises TypeError on "200 OK" with an
error body, and logs each failure with its traceback on the logger `dashscope`. `api_key`, `base_address` and `session`
go with each call, so that two models may have two addresses.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from toolmem.config.extras import need
from toolmem.errors import ModelDenied
from toolmem.transport.exchange import Exchange, current, watched
from toolmem.transport.model_service import ModelService


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
