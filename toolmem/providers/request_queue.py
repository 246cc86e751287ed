"""How a request to a remote model is made: in its turn, within cap and budget, again where that may help, and booked.

Each attempt is one request on the wire. It waits for a place among those in flight and for its op's pacing gate, is
held against the budget, and is booked whatever comes of it. What may pass is tried again, up to `max_retries` times.
"""

from __future__ import annotations

import asyncio
import logging
import random
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from toolmem.errors import ModelDenied, ModelError
from toolmem.protocols import Clock, Purpose, Tokenizer
from toolmem.providers.budget import Budget, Price, Reservation
from toolmem.providers.exchange import Exchange
from toolmem.providers.pacing import PacingGate
from toolmem.providers.slots import Slots

if TYPE_CHECKING:
    from tenacity import RetryCallState

logger = logging.getLogger("toolmem.transport")

FIRST_PAUSE = 0.5  # seconds, before the second attempt
LONGEST_PAUSE = 30.0  # seconds
ALONE = 2.0  # seconds that the first request is waited for: a wrong key costs one request, not one per place in flight

T = TypeVar("T")

_run_began: ContextVar[float | None] = ContextVar("toolmem_run_began", default=None)


@contextmanager
def one_run(clock: Clock) -> Iterator[None]:
    """What is asked inside belongs to one run: where the service denies a request of it, no further one is sent."""
    if _run_began.get() is not None:
        yield
        return
    token = _run_began.set(clock.monotonic())
    try:
        yield
    finally:
        _run_began.reset(token)


class RequestQueue:
    """An op's way to a model: its pacing gate, and how often its requests are tried again."""

    def __init__(self, gate: PacingGate, max_retries: int) -> None:
        self.gate = gate
        self.max_retries = max_retries
        # Only the first of a paced op's requests takes a place in flight before its turn has come: the others would
        # keep the places from the ops that are paced apart.
        self.head = Slots(1)


class Attempts:
    """Requests to one model, whoever asks; shared by all flows of the process.

    `max_concurrency`: requests in flight. `max_retries`: of a request that failed in a way that may pass, with pauses
    that double from `first_pause` seconds (drawn between half and all of it), or as long as the server's Retry-After
    says, which holds back everybody who asks this model. `price` and `budget` as in `budget`. The very first request
    goes alone; where the service denies one, those that are waiting, and all later ones of the same run (`one_run`),
    are denied with it and are not sent. `prepare` (imports, a session) is done before a request's turn: it would eat up
    the interval to the next one.
    """

    def __init__(
        self,
        *,
        backend: str,
        model: str,
        tokenizer: Tokenizer,
        clock: Clock,
        price: Price | None = None,
        budget: Budget | None = None,
        max_concurrency: int = 8,
        max_retries: int = 3,
        first_pause: float = FIRST_PAUSE,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.backend = backend
        self.model = model
        self._tokenizer = tokenizer
        self._clock = clock
        self._price = price
        self._budget = budget if budget is not None and budget.limited else None
        self._slots = Slots(max_concurrency)
        self._max_retries = max_retries
        self._first_pause = first_pause
        self._prepare = prepare
        self._gates: weakref.WeakSet[PacingGate] = weakref.WeakSet()
        self._held_until = 0.0
        self._first = Slots(1)
        self._answered = False  # anything but a denial
        self._denied: tuple[float, ModelDenied] | None = None  # when, on the clock's monotonic time
        if self._budget is not None:
            self._budget.check_model(model)

    def queue(self, gate: PacingGate | None = None, max_retries: int | None = None) -> RequestQueue:
        """A way to this model; without a gate unpaced, held back by Retry-After alone."""
        gate = gate if gate is not None else PacingGate(0.0, self._clock)
        self._gates.add(gate)
        held = self._held_until - self._clock.monotonic()
        if held > 0:
            gate.hold_back(held)
        return RequestQueue(gate, self._max_retries if max_retries is None else max_retries)

    async def make(
        self, send: Callable[[Exchange], Awaitable[T]], prompt: str, purpose: Purpose | None, queue: RequestQueue
    ) -> tuple[T, Exchange]:
        """The value that `send` answered, with the exchange that brought it. `prompt`: all text that is sent.

        Raises ModelError. Token counts of the exchange are set: from the reply, else by the tokenizer.
        """
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt  # who asks no model waits for none

        again = AsyncRetrying(
            stop=stop_after_attempt(queue.max_retries + 1),
            retry=retry_if_exception(_may_pass),
            wait=self._pause,
            sleep=self._clock.sleep,
            before_sleep=self._report,
            reraise=True,
        )
        return await again(self._attempt, send, prompt, purpose, queue)

    async def _attempt(
        self, send: Callable[[Exchange], Awaitable[T]], prompt: str, purpose: Purpose | None, queue: RequestQueue
    ) -> tuple[T, Exchange]:
        tokens = 0 if self._budget is None else self._tokenizer.count(prompt)
        if self._budget is not None:
            self._budget.check(self.model, tokens)
        asked = self._clock.monotonic()
        began = _run_began.get()
        self._check_denied(asked if began is None else began)
        async with self._turn(queue):
            self._check_denied(asked if began is None else began)
            reserved = None if self._budget is None else self._budget.reserve(self.model, tokens)
            exchange = Exchange(began=self._clock.now(), waited=self._clock.monotonic() - asked)
            outcome = "ok"
            try:
                value = await send(exchange)
                self._answered = True
            except BaseException as error:
                outcome = f"error: {type(error).__name__}"
                self._learn(error)
                raise
            finally:
                exchange.seconds = self._clock.monotonic() - asked - exchange.waited
                self._count(exchange, prompt)
                self._book(exchange, purpose, reserved, outcome)
            return value, exchange

    def _count(self, exchange: Exchange, prompt: str) -> None:
        """Fill in the prompt tokens that may be billed and that no reply told.

        A request that was refused costs nothing; one whose reply was lost may have been worked on.
        """
        if exchange.prompt_tokens is None and exchange.may_be_billed:
            exchange.prompt_tokens = self._tokenizer.count(prompt)
            exchange.estimated = True

    def _book(self, exchange: Exchange, purpose: Purpose | None, reserved: Reservation | None, outcome: str) -> None:
        prompt_tokens, completion_tokens = exchange.prompt_tokens or 0, exchange.completion_tokens or 0
        cost, currency = (
            (None, "")
            if self._price is None
            else self._price(self.model, prompt_tokens, completion_tokens, exchange.cached_tokens)
        )
        if self._budget is not None and reserved is not None:
            self._budget.settle(reserved, prompt_tokens + completion_tokens, cost)
        if purpose is not None:
            purpose.book(
                time=exchange.began,
                backend=self.backend,
                model=self.model,
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens,
                cached_tokens=exchange.cached_tokens,
                estimated=exchange.estimated,
                outcome=outcome,
                seconds=exchange.seconds,
                waited=exchange.waited,
                cost=cost,
                currency=currency,
            )

    def _check_denied(self, since: float) -> None:
        if self._denied is not None and self._denied[0] >= since:
            raise ModelDenied(str(self._denied[1]))

    def _learn(self, error: BaseException) -> None:
        if isinstance(error, ModelDenied):
            self._denied = (self._clock.monotonic(), error)
        elif isinstance(error, ModelError):
            self._answered = True
            if error.retry_after:
                self._hold_back(error.retry_after)

    @asynccontextmanager
    async def _turn(self, queue: RequestQueue) -> AsyncIterator[None]:
        async with AsyncExitStack() as held:
            async with AsyncExitStack() as waiting:
                if queue.gate.interval > 0:
                    await waiting.enter_async_context(queue.head)
                await held.enter_async_context(self._slots)
                if not self._answered and await self._goes_first():
                    held.callback(self._first.release)
                if self._prepare is not None:
                    await self._prepare()
                await queue.gate.turn()
            yield

    async def _goes_first(self) -> bool:
        """Wait for the first request's answer, but not for long; True: there is none under way, so this is it."""
        try:
            # Not wait_for: on Python 3.11 it loses a cancellation that comes as the wait ends, and the run goes on.
            async with asyncio.timeout(ALONE):
                await self._first.acquire()
        except TimeoutError:
            return False
        if self._answered:
            self._first.release()
        return not self._answered

    def _hold_back(self, seconds: float) -> None:
        until = self._clock.monotonic() + seconds
        if until > self._held_until + 0.5 * seconds:  # many requests in flight are told at once
            logger.warning("%s/%s: no request for %.3g s, as the service asks", self.backend, self.model, seconds)
        self._held_until = max(self._held_until, until)
        for gate in list(self._gates):
            gate.hold_back(seconds)

    def _pause(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        if isinstance(error, ModelError) and error.retry_after:
            return 0.0  # the gate holds back
        longest = min(self._first_pause * 2.0 ** (state.attempt_number - 1), LONGEST_PAUSE)
        return longest * random.uniform(0.5, 1.0)

    def _report(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        pause = state.next_action.sleep if state.next_action is not None else 0.0
        logger.info("attempt %d failed, again in %.2g s: %s", state.attempt_number, pause, error)


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, ModelError) and error.temporary and not error.fatal
