"""A model that is never asked: prompts are counted, priced and booked, and nothing is sent."""

from __future__ import annotations

from collections.abc import Callable

from toolmem.protocols import Clock, Completion, LedgerEntry, Purpose, Tokenizer

LEAST = 256  # tokens; shorter prefixes are not kept (help.aliyun.com/en/model-studio/context-cache; it varies by model)


class WarmPrefixCache:
    """Remembers the last prompt of each workspace, op and tool. Tokens of a prefix are counted by `tokenizer`."""

    def __init__(self, tokenizer: Tokenizer, least: int = LEAST) -> None:
        self._tokenizer = tokenizer
        self._least = least
        self._last: dict[tuple[str, str, str], str] = {}

    def served(self, prompt: str, purpose: Purpose) -> int:
        """Tokens of `prompt` that the cache serves; 0 where the prefix is shorter than `least`. Remembers `prompt`."""
        key = (purpose.workspace, purpose.op, purpose.tool)
        shared = prompt[: _alike(self._last.get(key, ""), prompt)]
        self._last[key] = prompt
        if len(shared) < self._least:  # a token has at least one character
            return 0
        tokens = self._tokenizer.count(shared)
        return tokens if tokens >= self._least else 0


def _alike(first: str, second: str) -> int:
    """How many characters both begin with."""
    differing = (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    return next(differing, min(len(first), len(second)))


# (model, prompt tokens, completion tokens, cached tokens) -> (cost or None where the model has no price, currency)
Price = Callable[[str, int, int, int], tuple[float | None, str]]


class DryRunLLM:
    """Implements `ports.LLM`. Every completion has `sent=False` and no text; whoever asked answers by other means.

    The cost is that of the prompt alone: how long the reply would be is not known. Entries are marked `estimated`,
    since the tokenizer counted them. A prompt for evaluation is the true prompt; a prompt for a summary holds
    verdicts that here did not come from the model, so that its count is an estimate of the real one as well.

    `cache`: books the tokens that a warm prefix cache would have served, at their price; without it none are cached.
    """

    backend = "dry_run"

    def __init__(
        self,
        model: str,
        tokenizer: Tokenizer,
        *,
        clock: Clock,
        price: Price | None = None,
        cache: WarmPrefixCache | None = None,
    ) -> None:
        self.model = model
        self._cache = cache
        self._tokenizer = tokenizer
        self._clock = clock
        self._price = price

    async def complete(self, prompt: str, purpose: Purpose, *, json_reply: bool = False) -> Completion:
        """Books the prompt with `outcome="not_sent"`; never raises ModelError."""
        tokens = self._tokenizer.count(prompt)
        cached = 0 if self._cache is None else min(self._cache.served(prompt, purpose), tokens)
        cost, currency = (None, "") if self._price is None else self._price(self.model, tokens, 0, cached)
        purpose.meter.book(
            LedgerEntry(
                time=self._clock.now(),
                workspace=purpose.workspace,
                flow=purpose.flow,
                op=purpose.op,
                tool=purpose.tool,
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
        )
        return Completion("", tokens, 0, cached, estimated=True, sent=False)
