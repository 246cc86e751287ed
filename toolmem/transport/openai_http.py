"""The OpenAI-compatible protocol, as far as it is used here: one POST with a JSON body, one JSON answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolmem.transport.endpoint import Endpoint
from toolmem.transport.exchange import Exchange, watched
from toolmem.transport.failures import failure
from toolmem.transport.http_sessions import HttpSessions

DEFAULT_URL = "https://dashscope.aliyuncs.com/compatible-mode/v1"


class OpenAIService:
    """Calls of one endpoint. HTTP client: aiohttp, which comes with dashscope and elasticsearch[async]."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._sessions = HttpSessions(endpoint.base_url)

    async def post(self, exchange: Exchange, path: str, body: Mapping[str, Any], prompt: str) -> Mapping[str, Any]:
        """The JSON object of a "200 OK" that is no error. Raises ModelError."""
        import aiohttp

        error: Exception | None = None
        answer: Any = None
        session = await self._sessions.get()
        with watched(exchange):
            try:
                async with session.post(
                    f"{self._endpoint.base_url}{path}",
                    data=json.dumps({"model": self._endpoint.model, **body}, ensure_ascii=False).encode(),
                    headers={"Authorization": f"Bearer {self._endpoint.key}", "Content-Type": "application/json"},
                    timeout=aiohttp.ClientTimeout(total=self._endpoint.timeout),
                ) as response:
                    content = await response.read()
                    answer = json.loads(content) if response.status == 200 else None
            except Exception as raised:
                error = raised
        if isinstance(answer, Mapping) and not answer.get("error"):
            return answer
        typed = failure(
            exchange,
            error,
            name=self._endpoint.name,
            timeout=self._endpoint.timeout,
            secret=self._endpoint.key,
            prompt=prompt,
        )
        raise (typed or error or AssertionError("an answer that is neither a reply nor an error")) from None

    async def prepare(self) -> None:
        """Open the loop's session, if that has not been done."""
        await self._sessions.get()

    async def close(self) -> None:
        await self._sessions.close()
