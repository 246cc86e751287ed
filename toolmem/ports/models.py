"""Chat models, and what counts tokens for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from toolmem.ports.metering import Purpose


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply. `sent` is False where the prompt was built and counted, but nobody was asked."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    estimated: bool = False
    sent: bool = True


class LLM(Protocol):
    """A chat model that is given one prompt and gives one text."""

    @property
    def backend(self) -> str: ...

    @property
    def model(self) -> str: ...

    async def complete(self, prompt: str, purpose: Purpose, *, json_reply: bool = False) -> Completion:
        """Raises ModelError. Books every attempt with `purpose.meter`."""
        ...


class Tokenizer(Protocol):
    def count(self, text: str) -> int: ...
