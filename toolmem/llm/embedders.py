"""Open the embedders of a configuration. Remote ones send batches and check the vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from toolmem.config.sections import EmbeddingSection
from toolmem.errors import ConfigError, ModelError
from toolmem.llm.budget import Budget
from toolmem.llm.client import Client
from toolmem.llm.encoder import DIMENSION, PackagedEncoder, can_encode, unit_rows
from toolmem.llm.hashing import HashingEmbedder
from toolmem.llm.models import open_client
from toolmem.llm.openai import read_vectors
from toolmem.llm.pool import event_loop
from toolmem.models.protocols import Clock, Embedder
from toolmem.models.records import EmbedderIdentity
from toolmem.text.forms import as_object

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Lengths of vectors, if none is configured. DashScope: help.aliyun.com/en/model-studio/
# text-embedding-synchronous-api; OpenAI: platform.openai.com/docs/guides/embeddings.
DIMENSIONS = {
    "text-embedding-v4": 1024,
    "text-embedding-v3": 1024,
    "text-embedding-v2": 1536,
    "text-embedding-v1": 1536,
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}


class RemoteEmbedder:
    """Implements `Embedder` with a service. Blank texts are not sent; their vectors are zeros."""

    def __init__(self, client: Client, section: EmbeddingSection, dimension: int) -> None:
        self._client = client
        self._params = section.params
        self.identity = EmbedderIdentity(client.endpoint.backend, client.endpoint.model, dimension)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, one per text. Raises ModelError. It blocks: never in a coroutine."""
        future = asyncio.run_coroutine_threadsafe(self._embed(texts), event_loop())
        try:
            return future.result()
        finally:
            future.cancel()  # after Ctrl-C

    async def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        rows = [row for row, text in enumerate(texts) if text.strip()]
        size = self._params.max_batch_size
        batches = [rows[start : start + size] for start in range(0, len(rows), size)]
        slots = asyncio.Semaphore(self._params.max_concurrency)
        result = np.zeros((len(texts), self.identity.dimension), dtype=np.float32)

        async def fill(batch: list[int]) -> None:
            async with slots:
                result[batch] = await self._batch([texts[row] for row in batch])

        await asyncio.gather(*map(fill, batches))
        return result

    async def _batch(self, texts: list[str]) -> NDArray[np.float32]:
        """Rows in the order of the texts. Items have `index` or `text_index`, and `embedding`."""
        import numpy as np

        send = partial(self._client.service.embed, texts, self._params.dimensions)
        items = await self._client.request("\n".join(texts), send, read_vectors)
        pairs = [
            (each.get("index", each.get("text_index")), each.get("embedding"))
            for each in map(as_object, items)
        ]
        name = self._client.endpoint.name
        count = len(texts)
        if sorted(index for index, _ in pairs if isinstance(index, int)) != list(range(count)):
            raise ModelError(f"{name}: asked for {count} embeddings, got {len(pairs)} others")
        try:
            vectors = [vector for _, vector in sorted(pairs)]
            matrix = np.array(vectors, dtype=np.float64).reshape(count, -1)
        except (TypeError, ValueError):
            raise ModelError(f"{name}: an embedding that is no list of numbers") from None
        if (length := matrix.shape[1]) != self.identity.dimension:
            problem = f"{name}: vectors of {length} numbers, expected {self.identity.dimension}"
            raise ModelError(f"{problem}; set params.dimensions", fatal=True)
        if not np.isfinite(matrix).all() or not matrix.any(axis=1).all():
            raise ModelError(f"{name}: an embedding that is all zero, or not finite")
        return unit_rows(matrix)


def open_embedder(
    section: EmbeddingSection, setting: str, budget: Budget, clock: Clock
) -> Embedder:
    """Open an embedder. Raises ConfigError; `setting` names the section in its message."""
    if section.backend == "multilingual" and can_encode():
        return PackagedEncoder()
    if section.backend in ("multilingual", "hashing"):
        return HashingEmbedder(section.params.dimensions or DIMENSION)
    client = open_client(section, setting, budget, clock)
    dimension = section.params.dimensions or DIMENSIONS.get(section.model_name)
    if dimension is None:
        problem = f"{setting}.params.dimensions: missing; how long are the vectors of "
        raise ConfigError([f"{problem}{section.model_name!r}?"])
    return RemoteEmbedder(client, section, dimension)
