"""Send requests to a remote model, within the budget; repeat those that fail temporarily."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from toolmem.errors import ModelError
from toolmem.llm.budget import Budget, Reservation
from toolmem.llm.failures import Answer, ContentFiltered, ParameterRefused, PassingError, error_of
from toolmem.llm.pool import current_batch
from toolmem.llm.tokens import estimated_tokens
from toolmem.llm.usage import LedgerRow, current_purpose
from toolmem.models.protocols import Clock

log = logging.getLogger("toolmem.llm")

Value = TypeVar("Value")

FIRST_PAUSE = 0.5  # seconds before the second attempt; each further one waits twice as long
MAX_PAUSE = 30.0
MAX_REFUSALS = 3  # equal refusals before the first answer, which end the run


class Endpoint(Struct, frozen=True):
    """The address and key of a model. Error messages never show the key."""

    backend: str
    model: str
    base_url: str
    key: str  # "": a service on this machine may need none
    timeout: float  # seconds for a whole request

    @property
    def name(self) -> str:
        return f"{self.backend}/{self.model}"


class NoAnswer(Exception):
    """The connection failed or was cut. `was_sent`: the service may have processed the request."""

    def __init__(self, reason: str, *, was_sent: bool) -> None:
        super().__init__(reason)
        self.was_sent = was_sent


class Service(Protocol):
    """Sends requests to a service. Bodies of answers have OpenAI's form. Methods raise NoAnswer."""

    async def chat(self, prompt: str, parameters: dict[str, Any]) -> Answer: ...

    async def embed(self, texts: list[str], dimensions: int | None) -> Answer: ...


class Reading(Struct, Generic[Value]):
    """What was read from a reply's body. A count of tokens is None if the body has none."""

    value: Value | None = None  # None: the body is no reply
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0
    problem: ModelError | None = None  # why the value cannot be used


Read: TypeAlias = Callable[[Any, str], Reading[Value]]  # reads a body; takes a name for messages


class Client:
    """Sends requests to one model, from all threads and ops.

    The first request is sent alone and the others wait for its answer, so that a wrong key costs
    one request. After an answer that any request would get, the rest of its batch is not sent.
    """

    def __init__(
        self, endpoint: Endpoint, service: Service, budget: Budget, clock: Clock, max_retries: int
    ) -> None:
        self.endpoint = endpoint
        self.service = service
        self._budget = budget
        self._clock = clock
        self._max_retries = max_retries
        self._is_answered = False  # the service answered, and not with a denial
        self._refusals: list[str] = []  # before the first answer

    async def request(
        self, prompt: str, send: Callable[[], Awaitable[Answer]], read: Read[Value]
    ) -> Value:
        """Call `send`, again if that may help; return what `read` finds in the answer's body.

        `prompt`: all text that is sent, to estimate its tokens. Raises ModelError.
        """
        purpose = current_purpose.get()
        retries = self._max_retries
        if purpose is not None and purpose.max_retries is not None:
            retries = purpose.max_retries
        for number in range(retries):
            try:
                return await self._send_first_alone(_Attempt(prompt, send, read))
            except PassingError as error:
                await self._pause(number, error)
        return await self._send_first_alone(_Attempt(prompt, send, read))

    async def _pause(self, number: int, error: PassingError) -> None:
        batch = current_batch.get()
        if error.retry_after is not None and batch is not None:
            batch.pool.hold(error.retry_after)  # all requests of the pool wait
        else:
            seconds = min(FIRST_PAUSE * 2.0**number, MAX_PAUSE) * random.uniform(0.5, 1.0)
            log.info("%s; again in %.2g s", error, error.retry_after or seconds)
            await self._clock.sleep(error.retry_after or seconds)
        if batch is not None:
            await batch.pool.wait_for_turn(batch.interval)

    async def _send_first_alone(self, attempt: _Attempt[Value]) -> Value:
        batch = current_batch.get()
        if batch is not None and not self._is_answered:
            async with batch.pool.first:
                if not self._is_answered:
                    return await self._send(attempt)
        return await self._send(attempt)

    async def _send(self, attempt: _Attempt[Value]) -> Value:
        batch = current_batch.get()
        if batch is not None and batch.denied is not None:
            raise ModelError(f"not sent: {batch.denied}", fatal=True)
        started = self._clock.now()
        began = self._clock.monotonic()
        reserved = self._budget.reserve(self.endpoint.model, estimated_tokens(attempt.prompt))
        try:
            value = await self._exchange(attempt)
            self._is_answered = True
            return value
        except ModelError as error:
            attempt.outcome = type(error).__name__
            error = self._checked_refusal(error, attempt)
            if error.fatal and batch is not None:
                batch.denied = error
            raise error from None
        except asyncio.CancelledError:
            attempt.outcome = "cancelled"
            raise
        finally:
            seconds = round(self._clock.monotonic() - began, 3)
            self._settle(attempt, reserved, started, seconds)

    def _checked_refusal(self, error: ModelError, attempt: _Attempt[Any]) -> ModelError:
        """Return the error: a fatal one if all first requests were refused for this reason."""
        if isinstance(error, PassingError | ContentFiltered) or attempt.may_be_billed:
            self._is_answered = True  # the service accepted the key
        elif not (self._is_answered or error.fatal or isinstance(error, ParameterRefused)):
            self._refusals = [*self._refusals, str(error)][-MAX_REFUSALS:]
            if self._refusals == [str(error)] * MAX_REFUSALS:
                return ModelError(f"{error} (the same for {MAX_REFUSALS} requests)", fatal=True)
        return error

    async def _exchange(self, attempt: _Attempt[Value]) -> Value:
        name = self.endpoint.name
        timeout = self.endpoint.timeout
        try:
            async with asyncio.timeout(timeout):
                answer = await attempt.send()
        except TimeoutError:
            raise PassingError(f"{name}: no answer within {timeout:g} s") from None
        except NoAnswer as error:
            attempt.may_be_billed = error.was_sent
            raise PassingError(f"{name}: {error}") from None
        attempt.may_be_billed = answer.status == 200
        if answer.status == 200:
            attempt.reading = attempt.read(answer.body, name)
        reading = attempt.reading
        if reading.value is None:
            raise error_of(answer, name, secret=self.endpoint.key, prompt=attempt.prompt)
        if reading.problem is not None:
            raise reading.problem
        return reading.value

    def _settle(
        self, attempt: _Attempt[Any], reserved: Reservation, started: datetime, seconds: float
    ) -> None:
        """Record the cost: nothing for a refused request, an estimate where a reply was lost."""
        reading = attempt.reading
        model = self.endpoint.model
        purpose = current_purpose.get()
        prompt_tokens, completion_tokens = reading.prompt_tokens, reading.completion_tokens
        is_estimated = attempt.may_be_billed and None in (prompt_tokens, completion_tokens)
        if prompt_tokens is None:
            prompt_tokens = estimated_tokens(attempt.prompt) if is_estimated else 0
        if completion_tokens is None:
            text = reading.value if isinstance(reading.value, str) else ""
            completion_tokens = estimated_tokens(text)
        cached = min(reading.cached_tokens, prompt_tokens)
        cost, currency = self._budget.price(model, prompt_tokens, completion_tokens, cached)
        self._budget.settle(reserved, prompt_tokens + completion_tokens, cost)
        if purpose is None:
            return
        row = LedgerRow(
            time=started,
            flow=purpose.flow,
            op=purpose.op,
            tool=purpose.tool,
            backend=self.endpoint.backend,
            model=model,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            cached_tokens=cached,
            estimated=is_estimated,
            outcome=attempt.outcome,
            seconds=seconds,
            cost=cost,
            currency=currency,
        )
        purpose.record(row)


class _Attempt(Struct, Generic[Value]):
    """One request as it is sent. Each gets a row in the ledger, whatever its outcome."""

    prompt: str
    send: Callable[[], Awaitable[Answer]]
    read: Read[Value]
    reading: Reading[Value] = msgspec.field(default_factory=Reading)
    may_be_billed: bool = True
    outcome: str = "ok"
