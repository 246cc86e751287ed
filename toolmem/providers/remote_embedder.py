"""What the adapters of remote embedding models share: batches, checks, unit length, booking."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolmem.config.settings import EmbeddingSettings
from toolmem.errors import ConfigError, ReplyBroken
from toolmem.protocols import Clock, EmbedderIdentity, Meter, Purpose, Tokenizer
from toolmem.providers.budget import Budget, Price
from toolmem.providers.exchange import Exchange
from toolmem.providers.remote_model import RemoteModel
from toolmem.providers.request_queue import FIRST_PAUSE
from toolmem.readers.json_values import without_surrogates

OP = "embedding"  # under which requests are booked

# Length of the vectors where nothing is configured. DashScope: help.aliyun.com/en/model-studio/
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


class RemoteEmbedder(RemoteModel[EmbeddingSettings]):
    """Implements `protocols.Embedder`. Blank texts are not sent: they are zero rows.

    Every request is booked with `meter`, in `workspace`, under the op "embedding". Other arguments and errors: those
    of `RemoteModel`; ConfigError as well where the length of the model's vectors is neither known nor set.
    """

    section = "embedding_model"

    def __init__(
        self,
        settings: EmbeddingSettings,
        *,
        tokenizer: Tokenizer,
        clock: Clock,
        setting: str = "embedding_model.default",
        meter: Meter | None = None,
        workspace: str = "default",
        price: Price | None = None,
        budget: Budget | None = None,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        super().__init__(
            settings,
            tokenizer=tokenizer,
            clock=clock,
            setting=setting,
            price=price,
            budget=budget,
            first_pause=first_pause,
        )
        place = self._endpoint
        dimension = settings.params.dimensions or DIMENSIONS.get(place.model)
        if dimension is None:
            raise ConfigError(
                f"{setting}.params.dimensions: how long the vectors of {place.model!r} are is not known; set it"
            )
        self._setting = setting
        self._identity = EmbedderIdentity(place.backend, place.model, dimension)
        self._purpose = None if meter is None else Purpose(workspace, "", OP, "", meter)

    @property
    def identity(self) -> EmbedderIdentity:
        return self._identity

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._endpoint.name}, {self._identity.dimension})"

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32, shape (len(texts), dimension), rows of unit length; a blank text: a zero row.

        Batches of `max_batch_size` texts go out side by side, within the cap. Raises ModelError; then the batches that
        have not ended are cancelled.
        """
        result = np.zeros((len(texts), self._identity.dimension), dtype=np.float32)
        rows = [row for row, text in enumerate(texts) if text.strip()]
        size = self._settings.params.max_batch_size
        batches = [rows[start : start + size] for start in range(0, len(rows), size)]
        tasks = [
            asyncio.ensure_future(self._embed_batch([without_surrogates(texts[row]) for row in batch]))
            for batch in batches
        ]
        try:
            for batch, task in zip(batches, tasks, strict=True):
                result[batch] = await task
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return result

    async def _embed_batch(self, texts: list[str]) -> NDArray[np.float32]:
        async def send(exchange: Exchange) -> NDArray[np.float32]:
            found = await self._service.embed(exchange, texts, self._settings.params.dimensions)
            return self._unit(found, len(texts))

        vectors, _ = await self._attempts.make(send, "\n".join(texts), self._purpose, self._queue)
        return vectors

    def _unit(self, items: Any, count: int) -> NDArray[np.float32]:
        """Rows of unit length in the order of the texts. `items`: `{"index" or "text_index", "embedding"}`, in any."""
        name, dimension = self._endpoint.name, self._identity.dimension
        if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
            raise ReplyBroken(f"{name}: an answer without embeddings")
        pairs = [(item.get("index", item.get("text_index")), item.get("embedding")) for item in items]
        if sorted(index for index, _ in pairs if isinstance(index, int)) != list(range(count)):
            raise ReplyBroken(f"{name}: asked for {count} embeddings, got {len(pairs)} that do not fit")
        try:
            matrix = np.array([vector for _, vector in sorted(pairs, key=lambda pair: pair[0])], dtype=np.float64)
        except (TypeError, ValueError):
            raise ReplyBroken(f"{name}: an embedding that is no list of numbers") from None
        if matrix.ndim != 2 or matrix.shape[1] != dimension:
            got = matrix.shape[1] if matrix.ndim == 2 else "no"
            raise ReplyBroken(
                f"{name}: vectors of {got} numbers, expected {dimension}; set {self._setting}.params.dimensions",
                temporary=False,
                fatal=True,
            )
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise ReplyBroken(f"{name}: an embedding without a direction (all zero, or not finite)")
        unit: NDArray[np.float32] = (matrix / lengths).astype(np.float32)
        return unit
