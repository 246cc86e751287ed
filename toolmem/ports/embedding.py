"""Texts into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    name: str  # "hashing", "dashscope", ...
    model: str
    dimension: int


class Embedder(Protocol):
    @property
    def identity(self) -> EmbedderIdentity: ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32, shape (len(texts), dimension), rows of unit length (a text without content: a zero row)."""
        ...
