"""What requests cost, by the configuration's price table (`prices`, per 1000 tokens of each model)."""

from __future__ import annotations

from collections.abc import Mapping

from toolmem.config.settings import Price


class PriceTable:
    """Called as `(model, prompt tokens, completion tokens, cached tokens)`; answers (cost, currency).

    Cached tokens are part of the prompt tokens and cost `cached_input`. A model that the table does not name has no
    price: (None, ""). Models are named exactly: a snapshot may have another price than its alias.
    """

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = dict(prices)

    def __contains__(self, model: object) -> bool:
        return model in self._prices

    def __call__(
        self, model: str, prompt_tokens: int, completion_tokens: int = 0, cached_tokens: int = 0
    ) -> tuple[float | None, str]:
        price = self._prices.get(model)
        if price is None:
            return None, ""
        cached = price.input if price.cached_input is None else price.cached_input
        new = prompt_tokens - cached_tokens
        return (new * price.input + cached_tokens * cached + completion_tokens * price.output) / 1000, price.currency

    def batch(self, model: str, prompt_tokens: int, completion_tokens: int = 0) -> tuple[float | None, str]:
        """What the same tokens cost in a batch; (None, "") where the table has no batch price of the model.

        A batch is answered within a day instead of at once, and the discount of the prefix cache does not come on top.
        """
        price = self._prices.get(model)
        if price is None or price.batch_input is None:
            return None, ""
        output = price.output if price.batch_output is None else price.batch_output
        return (prompt_tokens * price.batch_input + completion_tokens * output) / 1000, price.currency

    def stated(self, model: str) -> str:
        """The price as it can be shown beside a figure: per 1000 tokens, with its date; "" where there is none."""
        price = self._prices.get(model)
        if price is None:
            return ""
        kinds = [("cached", price.cached_input), ("batch", price.batch_input)]
        given = ", ".join(f"{kind} {each:g}" for kind, each in kinds if each is not None)
        into = f"{price.input:g} ({given})" if given else f"{price.input:g}"
        out = f"{price.output:g}" if price.batch_output is None else f"{price.output:g} (batch {price.batch_output:g})"
        dated = f", read {price.date}" if price.date else ""
        return f"{model}: {into} in, {out} out, {price.currency} per 1000 tokens{dated}"
