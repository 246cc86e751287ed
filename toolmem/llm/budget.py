"""The cost of requests by the price table, and a limit that is checked before each request."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from toolmem.config.sections import BudgetSection, Price
from toolmem.errors import BudgetReached, ConfigError

_SLACK = 1e-9  # three times 0.1 must fit into 0.3

Reservation = tuple[int, float]  # tokens and cost of the prompt of a request under way


class Budget:
    """The limits of a process on tokens and cost, shared by all its models.

    A request starts only if its prompt, requests under way and past requests together are within
    the limits. The length of a reply is not known in advance, so replies may exceed the limits.
    Then no further request starts.
    """

    def __init__(self, limits: BudgetSection, prices: Mapping[str, Price]) -> None:
        self._limits = limits
        self._prices = prices
        self._tokens = 0  # spent or under way
        self._cost = 0.0
        self._currency = ""
        self._lock = threading.Lock()

    def price(
        self, model: str, prompt_tokens: int, completion_tokens: int = 0, cached_tokens: int = 0
    ) -> tuple[float | None, str]:
        """Return (cost, currency) of a request; (None, "") if the model has no price.

        `cached_tokens`: how many of `prompt_tokens` the service had in its cache.
        """
        price = self._prices.get(model)
        if price is None:
            return None, ""
        cached = price.input if price.cached_input is None else price.cached_input
        read = (prompt_tokens - cached_tokens) * price.input + cached_tokens * cached
        return (read + completion_tokens * price.output) / 1000, price.currency

    def check_model(self, model: str, setting: str) -> None:
        """Raise ConfigError if `max_cost` is set and a model has no price in the common currency.

        The first model that is checked sets this currency. `setting`: where a model is configured.
        """
        if self._limits.max_cost is None:
            return
        price = self._prices.get(model)
        if price is None:
            problem = f"budget.max_cost: {setting} is {model!r}, which has no price"
            raise ConfigError([f"{problem}; set prices.[{model}].input and .output"])
        with self._lock:
            self._currency = self._currency or price.currency
            if price.currency != self._currency:
                names = f"{self._currency} and {price.currency} ({model!r})"
                raise ConfigError([f"budget.max_cost: prices in {names} cannot be added"])

    def reserve(self, model: str, prompt_tokens: int) -> Reservation:
        """Reserve the prompt's tokens and their cost. Raises BudgetReached if they pass a limit."""
        cost = self.price(model, prompt_tokens)[0] or 0.0
        limits = self._limits
        with self._lock:
            if limits.max_tokens is not None and self._tokens + prompt_tokens > limits.max_tokens:
                raise BudgetReached(
                    f"budget.max_tokens={limits.max_tokens}: {self._tokens} tokens are spent or "
                    f"under way, and the next prompt has {prompt_tokens}"
                )
            if limits.max_cost is not None and self._cost + cost > limits.max_cost + _SLACK:
                raise BudgetReached(
                    f"budget.max_cost={limits.max_cost:g} {self._currency}: {self._cost:.6g} is "
                    f"spent or under way, and the next prompt costs {cost:.6g}"
                )
            self._tokens += prompt_tokens
            self._cost += cost
        return prompt_tokens, cost

    def settle(self, reservation: Reservation, tokens: int, cost: float | None) -> None:
        """Replace the reservation of a request that has ended by its real tokens and cost."""
        with self._lock:
            self._tokens += tokens - reservation[0]
            self._cost += (cost or 0.0) - reservation[1]
