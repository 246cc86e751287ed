"""What happened on the wire during one attempt, as the HTTP client saw it, whatever an SDK makes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiohttp


@dataclass(slots=True)
class Exchange:
    """One attempt. Token counts are None where the reply did not say."""

    began: datetime
    waited: float = 0.0  # seconds before it, in the queue
    seconds: float = 0.0  # that it took
    starts: int = 0  # requests begun on the wire
    sent: bool = False  # the request's headers left this machine
    status: int | None = None  # None: no answer
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    error: BaseException | None = None  # why there was no answer
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0
    estimated: bool = False  # some count is the tokenizer's

    @property
    def may_be_billed(self) -> bool:
        """The provider may have done the work: it said so, or nobody knows."""
        return self.sent and self.status in (None, 200)

    def take_usage(self, prompt: Any, completion: Any, cached: Any = None) -> None:
        """Token counts as a reply gives them; what is no count is not believed."""
        self.prompt_tokens = _count(prompt)
        self.completion_tokens = _count(completion)
        self.cached_tokens = min(_count(cached) or 0, self.prompt_tokens or 0)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


class SentTwiceError(Exception):
    """An SDK was about to send a request a second time without telling; refused, since each attempt takes its turn."""


class AnswerTooLargeError(Exception):
    """The server sends more than a model has to say."""


class RedirectedError(Exception):
    """The server points elsewhere."""


_current: ContextVar[Exchange | None] = ContextVar("toolmem_exchange", default=None)


def current() -> Exchange | None:
    """The exchange that the running task is in the middle of."""
    return _current.get()


@contextmanager
def watched(exchange: Exchange) -> Iterator[None]:
    """HTTP requests that are made inside are noted in `exchange`."""
    token = _current.set(exchange)
    try:
        yield
    finally:
        _current.reset(token)


def trace() -> aiohttp.TraceConfig:
    """Hooks of a session that note every request in the exchange of its task."""
    import aiohttp

    config = aiohttp.TraceConfig()
    config.on_request_start.append(_noting(_started))
    config.on_request_headers_sent.append(_noting(_sent))
    config.on_request_redirect.append(_redirected)
    config.on_request_end.append(_noting(_answered))
    config.on_request_exception.append(_noting(_failed))
    config.on_response_chunk_received.append(_noting(_received))
    return config


def _noting(note: Callable[[Exchange, Any], None]) -> Callable[[Any, Any, Any], Awaitable[None]]:
    async def hook(session: Any, context: Any, params: Any) -> None:
        exchange = _current.get()
        if exchange is not None:
            note(exchange, params)

    return hook


def _started(exchange: Exchange, params: Any) -> None:
    exchange.starts += 1
    if exchange.starts > 1:
        raise SentTwiceError


def _sent(exchange: Exchange, params: Any) -> None:
    exchange.sent = True


async def _redirected(session: Any, context: Any, params: Any) -> None:
    raise RedirectedError(str(params.response.headers.get("Location", ""))[:200])


def _answered(exchange: Exchange, params: Any) -> None:
    exchange.status = params.response.status
    exchange.headers = params.response.headers


def _failed(exchange: Exchange, params: Any) -> None:
    exchange.error = exchange.error or params.exception


def _received(exchange: Exchange, params: Any) -> None:
    exchange.body = params.chunk
