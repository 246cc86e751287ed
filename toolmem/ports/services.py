"""What an op may ask for."""

from __future__ import annotations

from typing import Any, Protocol

from toolmem.ports.clock import Clock
from toolmem.ports.embedding import Embedder
from toolmem.ports.guidance import GuidanceWriter
from toolmem.ports.judging import Judge
from toolmem.ports.store import MemoryStore


class ConfiguredOp(Protocol):
    """An op as the configuration bound it: what decides which adapters it gets."""

    @property
    def key(self) -> str: ...

    @property
    def settings(self) -> Any:
        """toolmem.config's OpSettings: names of the llm, the embedding model, the store; language, prompt file."""
        ...

    @property
    def params(self) -> Any: ...


class Services(Protocol):
    """Adapters as the configuration chose them for an op."""

    @property
    def clock(self) -> Clock: ...

    @property
    def settings(self) -> Any:
        """toolmem.config.Settings"""
        ...

    async def store(self, op: ConfiguredOp) -> MemoryStore: ...
    def untrusted(self, store: str = "default") -> str:
        """Why nothing that this open store holds may reach a prompt; "" where it may."""
        ...

    async def judge(self, op: ConfiguredOp) -> Judge: ...
    async def writer(self, op: ConfiguredOp) -> GuidanceWriter: ...
    async def embedder(self, op: ConfiguredOp) -> Embedder: ...
    def fan_out(self, op: ConfiguredOp) -> int:
        """How many requests of this op may be under way at once."""
        ...

    def interval(self, op: ConfiguredOp) -> float:
        """Seconds between two requests of this op to a model; 0: not paced."""
        ...

    def price(
        self, model: str, prompt_tokens: int, completion_tokens: int, cached_tokens: int
    ) -> tuple[float | None, str]:
        """(cost, currency); None where the model has no price."""
        ...
