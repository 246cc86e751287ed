"""A remote model from its entry in the configuration: where it is, how it is called, how its requests are made."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, Generic, TypeVar

from toolmem.config.environment import key_variables
from toolmem.config.settings import EmbeddingSettings, LLMSettings
from toolmem.ports import Clock, Tokenizer
from toolmem.transport.attempts import FIRST_PAUSE, Attempts
from toolmem.transport.budget import Budget, Price
from toolmem.transport.endpoint import endpoint
from toolmem.transport.model_service import ModelService

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
        self._lane = self._attempts.lane()

    async def close(self) -> None:
        """Close the connections. The adapter may be used again afterwards."""
        await self._service.close()
