"""Changing the embedder, the steps that all backends share: embed every text anew beside the old vectors, then swap.

Writers may go on meanwhile: what they change is embedded once more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from toolmem.errors import Conflict
from toolmem.store.searching import unit_vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolmem.protocols import Embedder

BATCH = 256  # texts handed to the embedder at once
MAX_ROUNDS = 100  # of catching up with writers that go on meanwhile

Progress = Callable[[int, int], None]  # how many are done, of how many


class Reembedding(Protocol):
    """What a backend gives. Its documents are its own affair, but for their `text`."""

    async def lacking(self) -> int:
        """How many documents have no good vector of the new embedder yet."""
        ...

    def batches(self) -> AsyncIterator[Sequence[Any]]:
        """Those documents, up to BATCH at once."""
        ...

    async def take(self, documents: Sequence[Any], vectors: Sequence[NDArray[np.float32]]) -> None:
        """Their new vectors, of unit length."""
        ...

    async def swap(self) -> int | None:
        """Make the new vectors the store's, and answer how many there are; None where some are lacking again."""
        ...


async def reembed(job: Reembedding, embedder: Embedder, progress: Progress | None) -> int:
    """See `MemoryStore.reembed`."""
    for _ in range(MAX_ROUNDS):
        await embed_lacking(job, embedder, progress)
        swapped = await job.swap()
        if swapped is not None:
            return swapped
    raise Conflict("reembed: documents kept changing; stop the writers and run it again")


async def embed_lacking(job: Reembedding, embedder: Embedder, progress: Progress | None = None) -> None:
    """Embed what has no vector of the new embedder yet."""
    done, total = 0, await job.lacking()
    async for batch in job.batches():
        vectors = await embedder.embed([document.text for document in batch])
        await job.take(batch, [unit_vector(vector, embedder.identity, "embedder") for vector in vectors])
        done += len(batch)
        if progress is not None:
            progress(min(done, total), total)
