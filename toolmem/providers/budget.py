"""A limit on what a run may spend, checked before each request."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from toolmem.errors import BudgetReached, ConfigError

# (model, prompt tokens, completion tokens, cached tokens) -> (cost or None where the model has no price, currency)
Price = Callable[[str, int, int, int], tuple[float | None, str]]

_SLACK = 1e-9  # sums of prices are binary fractions: 0.1 three times must fit into 0.3


@dataclass(slots=True)
class Reservation:
    """What one request under way will at least cost."""

    tokens: int
    cost: float


class Budget:
    """Tokens and money of one run, shared by all its models. None: no limit.

    `reserve` counts the prompt of the next request with what is spent and what is under way, and raises BudgetReached
    where that is more than the limit. How long a reply will be is not known before: the limit can be passed by the
    replies of the requests in flight, and by no further request. `max_cost` is in the currency of the prices.
    """

    def __init__(
        self, max_tokens: int | None = None, max_cost: float | None = None, *, price: Price | None = None
    ) -> None:
        self.max_tokens = max_tokens
        self.max_cost = max_cost
        self.tokens = 0  # spent
        self.cost = 0.0  # spent
        self._price = price
        self._currency = ""
        self._reserved_tokens = 0
        self._reserved_cost = 0.0
        self._lock = threading.Lock()

    @property
    def limited(self) -> bool:
        return self.max_tokens is not None or self.max_cost is not None

    def check_model(self, model: str) -> None:
        """Raises ConfigError where the model's requests could not be held against `max_cost`."""
        self._cost_of(model, 0)

    def check(self, model: str, prompt_tokens: int) -> None:
        """Raises BudgetReached where `reserve` would; reserves nothing."""
        cost = self._cost_of(model, prompt_tokens)
        with self._lock:
            self._check(prompt_tokens, cost)

    def reserve(self, model: str, prompt_tokens: int) -> Reservation:
        """Set the prompt of the next request aside. Raises BudgetReached, and then nothing is set aside."""
        cost = self._cost_of(model, prompt_tokens)
        with self._lock:
            self._check(prompt_tokens, cost)
            self._reserved_tokens += prompt_tokens
            self._reserved_cost += cost
        return Reservation(prompt_tokens, cost)

    def settle(self, reservation: Reservation, tokens: int, cost: float | None) -> None:
        """The request has ended: what it did cost takes the place of what was set aside for it."""
        with self._lock:
            self._reserved_tokens -= reservation.tokens
            self._reserved_cost -= reservation.cost
            self.tokens += tokens
            self.cost += cost or 0.0

    def _check(self, prompt_tokens: int, cost: float) -> None:
        tokens = self.tokens + self._reserved_tokens
        if self.max_tokens is not None and tokens + prompt_tokens > self.max_tokens:
            raise BudgetReached(
                f"budget.max_tokens: {self.max_tokens:,} tokens; {tokens:,} are spent or under way, "
                f"and the prompt of the next request has {prompt_tokens:,}"
            )
        spent = self.cost + self._reserved_cost
        if self.max_cost is not None and spent + cost > self.max_cost * (1 + _SLACK) + _SLACK * 1e-3:
            raise BudgetReached(
                f"budget.max_cost: {self.max_cost:g} {self._currency}; {spent:.6g} is spent or under way, "
                f"and the prompt of the next request costs {cost:.6g}"
            )

    def _cost_of(self, model: str, prompt_tokens: int) -> float:
        if self.max_cost is None:
            return 0.0
        cost, currency = (None, "") if self._price is None else self._price(model, prompt_tokens, 0, 0)
        if cost is None:
            raise ConfigError(f"budget.max_cost: {model!r} has no price; add prices.'{model}' with input and output")
        with self._lock:
            self._currency = self._currency or currency
        if currency != self._currency:
            raise ConfigError(
                f"budget.max_cost: prices in {self._currency} and in {currency} ({model!r}) cannot be added"
            )
        return cost
