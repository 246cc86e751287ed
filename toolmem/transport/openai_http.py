"""The OpenAI-compatible protocol, as far as it is used here: one POST with a JSON body, one JSON answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolmem.transport.exchange import Exchange, watched
from toolmem.transport.model_service import ModelService


class OpenAIService(ModelService):
    """HTTP client: aiohttp, which comes with dashscope and elasticsearch[async]."""

    backend = "openai_compatible"
    default_url = "https://dashscope.aliyuncs.com/compatible-mode/v1"
    keyless_here = True

    async def post(self, exchange: Exchange, path: str, body: Mapping[str, Any], prompt: str) -> Mapping[str, Any]:
        """The JSON object of a "200 OK" that is no error. Raises ModelError."""
        import aiohttp

        error: Exception | None = None
        answer: Any = None
        key = self._endpoint.key
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        session = await self._sessions.get()
        with watched(exchange):
            try:
                async with session.post(
                    f"{self._endpoint.base_url}{path}",
                    data=json.dumps({"model": self._endpoint.model, **body}, ensure_ascii=False).encode(),
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(total=self._endpoint.timeout),
                ) as response:
                    content = await response.read()
                    answer = json.loads(content) if response.status == 200 else None
            except Exception as raised:
                error = raised
        if isinstance(answer, Mapping) and not answer.get("error"):
            return answer
        typed = self._failure(exchange, error, prompt)
        raise (typed or error or AssertionError("an answer that is neither a reply nor an error")) from None
