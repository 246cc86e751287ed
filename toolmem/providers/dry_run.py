"""A model that is never asked: prompts are counted, priced and booked, and nothing is sent."""

from __future__ import annotations

from collections.abc import Callable

from toolmem.protocols import Clock, Completion, Purpose, Tokenizer
from toolmem.providers.budget import Price


class DryRunLLM:
    """Implements `protocols.LLM`. Every completion has `sent=False` and no text; whoever asked answers by other means.

    The cost is that of the prompt alone: how long the reply would be is not known. Entries are marked `estimated`,
    since the tokenizer counted them. A prompt for evaluation is the true prompt; a prompt for a summary holds
    verdicts that here did not come from the model, so that its count is an estimate of the real one as well.

    `cached` counts the tokens of a prompt that a prefix cache would have served, booked at their price; default: none.
    """

    backend = "dry_run"

    def __init__(
        self,
        model: str,
        tokenizer: Tokenizer,
        *,
        clock: Clock,
        price: Price | None = None,
        cached: Callable[[str, Purpose], int] | None = None,
    ) -> None:
        self.model = model
        self._cached = cached
        self._tokenizer = tokenizer
        self._clock = clock
        self._price = price

    async def complete(self, prompt: str, purpose: Purpose, *, json_reply: bool = False) -> Completion:
        """Books the prompt with `outcome="not_sent"`; never raises ModelError."""
        tokens = self._tokenizer.count(prompt)
        cached = 0 if self._cached is None else min(self._cached(prompt, purpose), tokens)
        cost, currency = (None, "") if self._price is None else self._price(self.model, tokens, 0, cached)
        purpose.book(
            time=self._clock.now(),
            backend=self.backend,
            model=self.model,
            prompt_tokens=tokens,
            completion_tokens=0,
            cached_tokens=cached,
            estimated=True,
            outcome="not_sent",
            seconds=0.0,
            cost=cost,
            currency=currency,
        )
        return Completion("", tokens, 0, cached, estimated=True, sent=False)
