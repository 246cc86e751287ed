"""A remote model from its entry in the configuration: where it is, how it is called, how its requests are made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar
from urllib.parse import urlsplit

from toolmem.config.environment import key_variables
from toolmem.config.hidden_values import masked
from toolmem.config.settings import EmbeddingSettings, LLMSettings
from toolmem.errors import ConfigError, ModelError
from toolmem.protocols import Clock, Tokenizer
from toolmem.providers.budget import Budget, Price
from toolmem.providers.exchange import Exchange, watched
from toolmem.providers.http_sessions import HttpSessions
from toolmem.providers.model_failures import failure
from toolmem.providers.request_queue import FIRST_PAUSE, Attempts
from toolmem.readers.loopback import is_loopback

if TYPE_CHECKING:
    import aiohttp


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One service. `repr` does not show the key."""

    backend: str
    model: str
    base_url: str = field(repr=False)
    key: str = field(repr=False)  # "": a service on this machine that asks for none
    timeout: float  # seconds, of a whole request

    @property
    def name(self) -> str:
        """As it is called in messages."""
        return f"{self.backend}/{self.model}"


class ModelService(ABC):
    """The protocol of one endpoint's chat and embedding models, over the sessions of its event loops."""

    backend: ClassVar[str]  # as the configuration calls it
    default_url: ClassVar[str]  # where no `base_url` is configured
    keyless_here: ClassVar[bool] = False  # may one on this machine be asked without a key?

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._sessions = HttpSessions(endpoint.base_url)
        self.json_mode = True  # until the service says that it has none

    async def prepare(self) -> None:
        """What takes time once and is no part of a request: the loop's session."""
        await self._sessions.get()

    async def close(self) -> None:
        """Close the connections. The service may be called again afterwards."""
        await self._sessions.close()

    @abstractmethod
    async def chat(self, exchange: Exchange, prompt: str, parameters: Mapping[str, Any]) -> Any:
        """Send one user message; answers the reply's choices and notes the usage. Raises ModelError."""

    @abstractmethod
    async def embed(self, exchange: Exchange, texts: list[str], dimensions: int | None) -> Any:
        """Send one batch; answers the reply's list of embeddings and notes the usage. Raises ModelError."""

    @abstractmethod
    def _is_reply(self, exchange: Exchange, answer: Any) -> bool:
        """Whether what came without an exception is a reply, and no error in its place."""

    def _refusal(self, error: Exception | None) -> ModelError | None:
        """The typed error of what failed before anything was on the wire; None: a defect of ours."""
        return None

    async def _ask(
        self, exchange: Exchange, prompt: str, request: Callable[[aiohttp.ClientSession], Awaitable[Any]]
    ) -> Any:
        error: Exception | None = None
        answer: Any = None
        session = await self._sessions.get()
        with watched(exchange):
            try:
                answer = await request(session)
            except Exception as raised:
                error = raised
        if error is None and self._is_reply(exchange, answer):
            return answer
        place = self._endpoint
        typed = failure(exchange, error, name=place.name, timeout=place.timeout, secret=place.key, prompt=prompt)
        typed = typed or self._refusal(error)
        raise (typed or error or AssertionError("an answer that is neither a reply nor an error")) from None


Entry = TypeVar("Entry", LLMSettings, EmbeddingSettings)


class RemoteModel(Generic[Entry]):
    """What every adapter of a remote model begins with.

    `settings`: the configuration's entry, `setting`: its dotted name, for messages (default: `<section>.default`).
    `price` and `budget` as in `providers.budget`; `first_pause`: seconds, as in `Attempts`.

    Raises ConfigError when it is made: no model name where the adapter has no default one, no key where one is needed
    (the message names the environment variable), an address that is none, or a model without a price under a budget in
    money. Nothing is imported or sent before the first request.
    """

    section: ClassVar[str]  # of the configuration: "llm", "embedding_model"
    protocol: ClassVar[type[ModelService]]
    default_model: ClassVar[str] = ""  # "": the configuration must name one

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
        params = settings.params
        self._settings: Entry = settings
        self._tokenizer = tokenizer
        self._endpoint = self._checked(setting or f"{self.section}.default")
        self._service = self.protocol(self._endpoint)
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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._endpoint.name})"

    async def close(self) -> None:
        """Close the connections. The adapter may be used again afterwards."""
        await self._service.close()

    def _checked(self, setting: str) -> Endpoint:
        """Where the model is, and with which key. Raises ConfigError, with every problem at once."""
        params, backend = self._settings.params, self.protocol.backend
        model = self._settings.model_name or self.default_model
        url = (params.base_url or self.protocol.default_url).rstrip("/")
        key = "" if params.api_key is None else params.api_key.get_secret_value().strip()
        problems = [] if model else [f"{setting}.model_name: {backend} needs the name of a model"]
        problems += _of_address(url, setting)
        if not key and not (self.protocol.keyless_here and is_loopback(urlsplit(url).hostname or "")):
            first, *others = key_variables(self.section, backend, openai=params.base_url is not None)
            variables = f"{first} (or {', '.join(others)})" if others else first
            problems.append(
                f"{setting}.params.api_key: no key for {backend}; set the environment variable {variables}, "
                f"or {setting}.params.api_key"
            )
        elif not key.isascii() or not key.isprintable():
            problems.append(f"{setting}.params.api_key: the key holds characters that no HTTP header can carry")
        if problems:
            raise ConfigError(problems)
        return Endpoint(backend, model, url, key, params.timeout)


def _of_address(url: str, setting: str) -> list[str]:
    address, shown = urlsplit(url), masked(url)
    if address.scheme not in ("http", "https") or not address.hostname:
        return [f"{setting}.params.base_url: expected an address with http:// or https://, got {shown!r}"]
    if address.username is not None or address.query or address.fragment:
        return [f"{setting}.params.base_url: expected an address without user, '?' and '#', got {shown!r}"]
    return []
