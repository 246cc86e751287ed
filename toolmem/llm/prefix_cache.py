"""What a service's prefix cache would serve, had it kept the last prompt of each op and tool: an upper bound.

A service that caches prefixes (Model Studio's implicit cache, for one) bills the part of a prompt that repeats the
beginning of an earlier one at a lower price, if it still has it, which it does not promise. Here it always has it. So a
policy that reads the same calls again is charged as little as it could be.
"""

from __future__ import annotations

from toolmem.ports import Purpose, Tokenizer

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
