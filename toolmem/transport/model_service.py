"""What the ways to send a request have in common, whatever protocol they speak."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from toolmem.errors import ModelError
from toolmem.transport.endpoint import Endpoint
from toolmem.transport.exchange import Exchange
from toolmem.transport.failures import failure
from toolmem.transport.http_sessions import HttpSessions


class ModelService(ABC):
    """Calls of one endpoint, over the sessions of its event loops."""

    backend: ClassVar[str]  # as the configuration calls it
    default_url: ClassVar[str]  # where no `base_url` is configured
    keyless_here: ClassVar[bool] = False  # may one on this machine be asked without a key?

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._sessions = HttpSessions(endpoint.base_url)

    async def prepare(self) -> None:
        """What takes time once and is no part of a request: the loop's session."""
        await self._sessions.get()

    async def close(self) -> None:
        """Close the connections. The service may be called again afterwards."""
        await self._sessions.close()

    def _failure(self, exchange: Exchange, error: Exception | None, prompt: str) -> ModelError | None:
        """As `failures.failure`, of this endpoint."""
        place = self._endpoint
        return failure(exchange, error, name=place.name, timeout=place.timeout, secret=place.key, prompt=prompt)
