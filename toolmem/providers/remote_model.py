"""A remote model from its entry in the configuration: where it is, how it is called, how its requests are made."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, Generic, TypeVar

from toolmem.config.environment import key_variables
from toolmem.config.settings import EmbeddingSettings, LLMSettings
from toolmem.errors import ModelError
from toolmem.protocols import Clock, Tokenizer
from toolmem.providers.budget import Budget, Price
from toolmem.providers.endpoint import Endpoint, endpoint
from toolmem.providers.exchange import Exchange
from toolmem.providers.http_sessions import HttpSessions
from toolmem.providers.model_failures import failure
from toolmem.providers.request_queue import FIRST_PAUSE, Attempts


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


Entry = TypeVar("Entry", LLMSettings, EmbeddingSettings)


class RemoteModel(ABC, Generic[Entry]):
    """What every adapter of a remote model begins with.

    `settings`: the configuration's entry, `setting`: its dotted name, for messages (default: `<section>.default`).
    `price` and `budget` as in `transport.budget`; `first_pause`: seconds, as in `Attempts`.

    Raises ConfigError when it is made: no model name where the adapter has no default one, no key where one is needed
    (the message names the environment variable), an address that is none, or a model without a price under a budget in
    money. Nothing is imported or sent before the first request.
    """

    section: ClassVar[str]  # of the configuration: "llm", "embedding_model"
    protocol: ClassVar[type[ModelService]]
    default_model: ClassVar[str] = ""  # "": the configuration must name one

    _service: ModelService  # an adapter narrows it to its `protocol`

    def __init__(
        self,
        settings: Entry,
        *,
        tokenizer: Tokenizer,
        clock: Clock,
        setting: str = "",
        price: Price | None = None,
        budget: Budget | None = None,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        params, protocol = settings.params, self.protocol
        self._settings: Entry = settings
        self._tokenizer = tokenizer
        self._endpoint = endpoint(
            protocol.backend,
            settings.model_name or self.default_model,
            setting=setting or f"{self.section}.default",
            base_url=params.base_url,
            default_url=protocol.default_url,
            api_key=params.api_key,
            variables=key_variables(self.section, protocol.backend, openai=params.base_url is not None),
            timeout=params.timeout,
            keyless_here=protocol.keyless_here,
        )
        self._service = protocol(self._endpoint)
        self._attempts = Attempts(
            backend=self._endpoint.backend,
            model=self._endpoint.model,
            tokenizer=tokenizer,
            clock=clock,
            price=price,
            budget=budget,
            max_concurrency=params.max_concurrency,
            max_retries=params.max_retries,
            first_pause=first_pause,
            prepare=self._service.prepare,
        )
        self._queue = self._attempts.queue()

    async def close(self) -> None:
        """Close the connections. The adapter may be used again afterwards."""
        await self._service.close()
